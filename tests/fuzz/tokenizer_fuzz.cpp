#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/tokenizer/files.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/support/read_bytes.h"

// Reads the input as a tokenizer.json, and encodes and decodes a text with it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  read_bytes_at_path(data, size, [](const std::string& path) {
    const Tokenizer tokenizer(read_tokenizer(path));
    tokenizer.decode(tokenizer.encode_with_special("你好 hello  12\n<|im_end|>the\xFF"), false);
  });
  return 0;
}
