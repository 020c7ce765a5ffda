/* Continues a text, then answers a question, with what is written shown at once:
 *
 *   cc example.c $(pkg-config --cflags --libs minimind) -o example
 *   ./example out/full_sft_768.pth '秦始皇的功绩包括' '[{"role": "user", "content": "你好"}]'
 */
#include <minimind.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(minimind_status status, const char* message) {
  if (status == MINIMIND_OK) return;
  fprintf(stderr, "%s\n", message);
  exit(1);
}

/* Writes a text, and returns when it has ended. */
static void write_text(minimind_model* model, const minimind_request* request) {
  minimind_generation* text = NULL;
  minimind_output output = {.size = sizeof output};
  check(minimind_submit(model, request, &text), minimind_model_error(model));
  do {
    check(minimind_step(model, NULL), minimind_model_error(model));
    check(minimind_poll(text, &output), minimind_generation_error(text));
    fwrite(output.text, 1, output.text_size, stdout);
    fflush(stdout);
  } while (output.finish == MINIMIND_RUNNING);
  minimind_release(text);
  printf("\n");
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: example MODEL PROMPT MESSAGES\n");
    return 2;
  }
  minimind_model* model = NULL;
  minimind_error error;
  minimind_model_options options;
  minimind_default_model_options(&options, sizeof options);
  check(minimind_open(argv[1], &options, &model, &error), error.message);

  minimind_request request;
  minimind_default_request(&request, sizeof request);
  request.temperature = 0;
  request.max_tokens = 32;
  request.text = argv[2];
  request.text_size = strlen(argv[2]);
  write_text(model, &request);

  /* The prompt of a chat holds the tags of its template, to which no more is added. */
  char prompt[4096];
  int32_t ids[4096];
  size_t size = 0;
  check(minimind_chat_prompt(model, argv[3], strlen(argv[3]), NULL, 0, -1, prompt, sizeof prompt, &size),
        minimind_model_error(model));
  check(minimind_encode(model, prompt, size, MINIMIND_ENCODE_SPECIAL, ids, 4096, &request.id_count),
        minimind_model_error(model));
  request.text = NULL;
  request.ids = ids;
  request.chat = 1;
  write_text(model, &request);
  minimind_close(model);
  return 0;
}
