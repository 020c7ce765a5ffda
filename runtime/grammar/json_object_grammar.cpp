#include "runtime/grammar/json_object_grammar.h"

#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "runtime/text/utf8.h"
#include "weights/io/error.h"
#include "weights/io/quote.h"

namespace minimind {
namespace {

using Sequence = JsonGrammar::Sequence;

constexpr std::size_t longest_name = 1000;

CodePoints raw_characters() {
  return CodePoints(0, 0x1F).add('"').add('\\').complement();
}

// What may follow a beginning that the sorted `names`, of which `prefix` bytes are gone, share, so that the whole is
// none of them. Names that a string without escapes cannot be are no concern: their first such character is followed by
// nothing.
Sequence none_of(GrammarBuilder& builder, const std::vector<std::string_view>& names, std::size_t prefix) {
  std::map<char32_t, std::vector<std::string_view>> by_next;
  bool is_a_name = false;
  std::vector<Sequence> alternatives;
  std::map<char32_t, std::size_t> sizes;
  for (const std::string_view name : names) {
    if (name.size() == prefix) {
      is_a_name = true;
      continue;
    }
    const Utf8Char next = first_utf8(name.substr(prefix));
    if (!raw_characters().contains(next.code_point)) continue;
    by_next[next.code_point].push_back(name);
    sizes[next.code_point] = next.size;
  }
  CodePoints nexts;
  for (const auto& [next, longer] : by_next) {
    nexts.add(next);
    alternatives.push_back(builder.concatenate(
        {builder.characters(CodePoints().add(next)), none_of(builder, longer, prefix + sizes[next])}));
  }
  const Sequence anything = builder.repeat(builder.characters(raw_characters()), 0, std::nullopt);
  alternatives.push_back(builder.concatenate({builder.characters(raw_characters().without(nexts)), anything}));
  if (!is_a_name) alternatives.push_back({});
  return builder.choice(alternatives);
}

}  // namespace

Sequence object_of(JsonGrammar& grammar, const std::vector<JsonProperty>& properties,
                   const std::optional<JsonOtherProperties>& others) {
  GrammarBuilder& builder = grammar.builder();
  Sequence first, more;  // what may follow where nothing has been written yet, and where something has
  if (others) {
    for (const std::string& name : others->excluded) {
      if (name.size() > longest_name) {
        throw Error(fmt::format("property {} is longer than {} bytes, which is too much beside additionalProperties",
                                minimind::quoted(name), longest_name));
      }
    }
    const std::vector<std::string_view> excluded(others->excluded.begin(), others->excluded.end());
    const Sequence quote = builder.literal("\"");
    const Sequence key = builder.concatenate({quote, none_of(builder, excluded, 0), quote});
    const Sequence member = builder.group(grammar.member(key, others->value));
    first = grammar.list(member, others->min, others->max);
    more = builder.repeat(builder.concatenate({grammar.comma(), member}), 0, std::nullopt);
  }
  for (auto property = properties.rbegin(); property != properties.rend(); ++property) {
    const Sequence key = builder.literal(nlohmann::json(property->name).dump());
    const Sequence member = builder.group(grammar.member(key, property->value));
    const Sequence as_first = builder.concatenate({member, more});
    const Sequence as_another = builder.concatenate({grammar.comma(), member, more});
    first = builder.group(property->required ? as_first : builder.choice({as_first, first}));
    more = builder.group(property->required ? as_another : builder.choice({as_another, more}));
  }
  return builder.concatenate({builder.literal("{"), first, builder.literal("}")});
}

}  // namespace minimind
