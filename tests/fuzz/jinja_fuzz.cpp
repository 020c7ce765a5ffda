#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/jinja/jinja.h"
#include "weights/base/error.h"

namespace {

using namespace minimind;

jinja::Value object(std::initializer_list<std::pair<const char*, jinja::Value>> entries) {
  jinja::Budget budget{jinja::Limits()};
  jinja::Dict dict;
  for (const auto& [key, value] : entries) dict.set(key, value);
  return jinja::make_dict(std::move(dict), budget);
}

jinja::Value list(std::vector<jinja::Value> items) {
  jinja::Budget budget{jinja::Limits()};
  return jinja::make_list(std::move(items), budget);
}

jinja::Dict make_variables() {
  jinja::Dict variables;
  variables.set("messages", list({object({{"role", "user"}, {"content", "你好\n"}}),
                                  object({{"role", "assistant"}, {"content", "<think>a</think>b"}})}));
  variables.set("tools", list({object({{"function", object({{"name", "f"}, {"parameters", object({{"a", 1.5}})}})}})}));
  variables.set("x", list({std::int64_t{1}, "a", jinja::None{}}));
  variables.set("t", true);
  return variables;
}

}  // namespace

// Parses and runs the input as a template. An Error is correct; a crash, a hang or a huge allocation is a bug.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const jinja::Dict variables = make_variables();
  const jinja::Limits limits{.steps = 20'000, .depth = 300, .bytes = 1 << 20, .output = 1 << 20};
  try {
    JinjaTemplate({reinterpret_cast<const char*>(data), size}, "fuzz").render(variables, 0, limits);
  } catch (const Error&) {
  }
  return 0;
}
