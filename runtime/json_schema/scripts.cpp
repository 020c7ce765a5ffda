#include "runtime/json_schema/scripts.h"

#include <algorithm>
#include <vector>

#include "runtime/json_schema/script_table.h"

namespace minimind {
namespace {

// Calls use(word) with the words of a text that is separated by spaces.
template <class Use>
void for_each_word(std::string_view text, Use use) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::optional<CodePoints> characters_of_script(std::string_view name) {
  for (const Script& script : scripts) {
    bool named = false;
    for_each_word(script.names, [&](std::string_view known) { named = named || known == name; });
    if (!named) continue;
    std::vector<CodePoints::Range> ranges;
    for_each_word(script.ranges, [&](std::string_view range) {
      const std::size_t dash = std::min(range.find('-'), range.size());
      const char32_t first = *hexadecimal(range.substr(0, dash));
      ranges.push_back({first, dash == range.size() ? first : *hexadecimal(range.substr(dash + 1))});
    });
    return CodePoints(std::move(ranges));
  }
  return std::nullopt;
}

}  // namespace minimind
