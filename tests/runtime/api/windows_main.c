/* Gives main() its arguments in UTF-8 on Windows, where a program that is compiled with -municode starts here. */
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <windows.h>

int main(int argc, char** argv);

int wmain(int argc, wchar_t** wide) {
  char** argv = calloc((size_t)argc + 1, sizeof *argv);
  for (int i = 0; i < argc; ++i) {
    const int size = WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, NULL, 0, NULL, NULL);
    argv[i] = malloc((size_t)size);
    WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, argv[i], size, NULL, NULL);
  }
  _setmode(1, _O_BINARY);
  return main(argc, argv);
}
