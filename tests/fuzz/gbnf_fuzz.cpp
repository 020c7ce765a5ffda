#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "runtime/grammar/gbnf.h"
#include "runtime/grammar/state.h"
#include "weights/base/error.h"

// Reads the input as a GBNF grammar, and follows a text through it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    GrammarState state(std::make_shared<const Grammar>(parse_grammar(text, "fuzz")));
    for (const char byte : std::string_view("aab{\"x\": [1, 你]}\n")) state.advance({&byte, 1});
  } catch (const Error&) {
  }
  return 0;
}
