#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/jinja/jinja.h"
#include "runtime/jinja/show.h"
#include "weights/io/error.h"

// Parses and runs the input as a template. Refusing it with an Error is right; a crash, a hang or a huge allocation is
// not.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  static const jinja::Value variables = jinja::parse_json(
      R"({"messages": [{"role": "user", "content": "你好\n"}, {"role": "assistant", "content": "<think>a</think>b"}],
          "tools": [{"function": {"name": "f", "parameters": {"a": 1.5}}}], "x": [1, "a", null], "t": true})",
      "variables");
  const jinja::Limits limits{.steps = 20'000, .depth = 300, .bytes = 1 << 20, .output = 1 << 20};
  try {
    JinjaTemplate({reinterpret_cast<const char*>(data), size}, "fuzz").render(*variables.dict(), 0, limits);
  } catch (const Error&) {
  }
  return 0;
}
