#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/tokenizer/files.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/fuzz/mutate_json.h"
#include "tests/support/read_bytes.h"

// Reads the input as a tokenizer.json, and encodes and decodes a text with it: also long runs, which show work that is
// done again at each byte.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  static const std::string runs = std::string(20'000, ' ') + std::string(20'000, 'a');
  read_bytes_at_path(data, size, [](const std::string& path) {
    const Tokenizer tokenizer(read_tokenizer(path));
    tokenizer.decode(tokenizer.encode_with_special("你好 hello  12\n<|im_end|>the\xFF" + runs), false);
  });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  constexpr std::string_view words[] = {"added_tokens",
                                        "id",
                                        "content",
                                        "single_word",
                                        "lstrip",
                                        "rstrip",
                                        "normalized",
                                        "special",
                                        "normalizer",
                                        "NFC",
                                        "NFKC",
                                        "Lowercase",
                                        "pre_tokenizer",
                                        "ByteLevel",
                                        "Split",
                                        "Digits",
                                        "Sequence",
                                        "pretokenizers",
                                        "pattern",
                                        "Regex",
                                        "behavior",
                                        "Isolated",
                                        "add_prefix_space",
                                        "use_regex",
                                        "trim_offsets",
                                        "post_processor",
                                        "TemplateProcessing",
                                        "single",
                                        "pair",
                                        "SpecialToken",
                                        "special_tokens",
                                        "ids",
                                        "tokens",
                                        "decoder",
                                        "model",
                                        "BPE",
                                        "type",
                                        "dropout",
                                        "unk_token",
                                        "byte_fallback",
                                        "ignore_merges",
                                        "fuse_unk",
                                        "vocab",
                                        "merges",
                                        "Ġ",
                                        "truncation",
                                        "padding"};
  return minimind::mutate_json(data, size, max_size, seed, words);
}
