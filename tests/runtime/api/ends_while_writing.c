/* Ends while another thread writes a text. Its threads are gone then: nothing of the library may wait for them. */
#include <minimind.h>
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

static DWORD WINAPI step_forever(void* model) {
  while (minimind_step(model, NULL) == MINIMIND_OK)
    ;
  abort();
}

int main(int argc, char** argv) {
  minimind_model* model = NULL;
  minimind_generation* text = NULL;
  minimind_error error;
  minimind_model_options options;
  minimind_request request;
  minimind_default_model_options(&options, sizeof options);
  options.threads = 4;
  if (argc != 2 || minimind_open(argv[1], &options, &model, &error) != MINIMIND_OK) return 1;
  minimind_default_request(&request, sizeof request);
  request.text = "\xE6\x98\xA5";
  request.text_size = 3;
  request.max_tokens = 30000;
  request.ignore_eos = 1;
  if (minimind_submit(model, &request, &text) != MINIMIND_OK) return 1;
  CreateThread(NULL, 0, step_forever, model, 0, NULL);
  minimind_output output = {.size = sizeof output};
  do {
    Sleep(10);
    if (minimind_poll(text, &output) != MINIMIND_OK) return 1;
  } while (output.id_count == 0);
  puts("ends");
  return 0;
}
