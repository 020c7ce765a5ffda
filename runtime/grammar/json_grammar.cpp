#include "runtime/grammar/json_grammar.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace minimind {
namespace {

using Sequence = JsonGrammar::Sequence;

CodePoints digits() {
  return CodePoints('0', '9');
}

CodePoints raw_characters() {
  return CodePoints(0, 0x1F).add('"').add('\\').complement();
}

Sequence joined(const std::vector<Sequence>& parts) {
  return GrammarBuilder::concatenate(parts);
}

std::string escape_of(char32_t c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  }
}

}  // namespace

GrammarBuilder::RuleId JsonGrammar::values() {
  if (value_) return *value_;
  value_ = builder_.declare("any value");
  object_ = builder_.declare("any object");
  array_ = builder_.declare("any array");
  const Sequence value = builder_.reference(*value_);
  builder_.define(
      *object_,
      {joined({builder_.literal("{"), list(member(string(), value), 0, std::nullopt), builder_.literal("}")})});
  builder_.define(*array_, {joined({builder_.literal("["), list(value, 0, std::nullopt), builder_.literal("]")})});
  builder_.define(*value_, {builder_.reference(*object_), builder_.reference(*array_), string(), number(),
                            builder_.literal("true"), builder_.literal("false"), builder_.literal("null")});
  return *value_;
}

Sequence JsonGrammar::value() {
  return builder_.reference(values());
}

Sequence JsonGrammar::object() {
  values();
  return builder_.reference(*object_);
}

Sequence JsonGrammar::array() {
  values();
  return builder_.reference(*array_);
}

Sequence JsonGrammar::string(std::size_t min, std::optional<std::size_t> max) {
  const auto quoted_characters = [&] {
    return joined({builder_.literal("\""), builder_.repeat(any_character(), min, max), builder_.literal("\"")});
  };
  if (min > 0 || max) return quoted_characters();
  if (!string_) {
    string_ = builder_.declare("any string");
    builder_.define(*string_, {quoted_characters()});
  }
  return builder_.reference(*string_);
}

// `first_digits` is the inside of a set: the choices for one digit.
Sequence JsonGrammar::hexadecimal(std::string_view first_digits, std::size_t free_digits) {
  const auto both_cases = [](std::string_view choices) {
    CodePoints set;
    for (const char c : choices) {
      set.add(static_cast<char32_t>(c));
      if (c >= 'a') set.add(static_cast<char32_t>(c - 'a' + 'A'));
    }
    return set;
  };
  const Sequence any = builder_.characters(both_cases("0123456789abcdef"));
  return joined({builder_.characters(both_cases(first_digits)), builder_.repeat(any, free_digits, free_digits)});
}

Sequence JsonGrammar::any_character() {
  if (any_character_) return builder_.reference(*any_character_);
  const Sequence u = builder_.literal("\\u"), d = builder_.characters(CodePoints('d', 'd').add('D'));
  CodePoints short_escapes;
  for (const char c : std::string_view("\"\\/bfnrt")) short_escapes.add(static_cast<char32_t>(c));
  any_character_ = builder_.declare("any character");
  builder_.define(
      *any_character_,
      {builder_.characters(raw_characters()), joined({builder_.literal("\\"), builder_.characters(short_escapes)}),
       joined({u, hexadecimal("0123456789abcef", 3)}), joined({u, d, hexadecimal("01234567", 2)}),
       joined({u, d, hexadecimal("89ab", 2), u, d, hexadecimal("cdef", 2)})});
  return builder_.reference(*any_character_);
}

Sequence JsonGrammar::character(const CodePoints& set) {
  const CodePoints raw = raw_characters();
  std::vector<Sequence> alternatives;
  const CodePoints as_they_are = set.without(raw.complement());
  if (!as_they_are.empty()) alternatives.push_back(builder_.characters(as_they_are));
  const CodePoints escaped = set.without(raw);
  for (const CodePoints::Range& range : escaped.ranges()) {
    for (char32_t c = range.first; c <= range.last; ++c) alternatives.push_back(builder_.literal(escape_of(c)));
  }
  return builder_.choice(alternatives);
}

Sequence JsonGrammar::integer() {
  const Sequence digit = builder_.characters(digits());
  const Sequence positive = joined({builder_.characters(CodePoints('1', '9')), builder_.repeat(digit, 0, 14)});
  return builder_.choice({builder_.literal("0"), joined({builder_.optional(builder_.literal("-")), positive})});
}

Sequence JsonGrammar::number() {
  const Sequence digit = builder_.characters(digits()), first = builder_.characters(CodePoints('1', '9'));
  const Sequence fraction = joined({builder_.literal("."), builder_.repeat(digit, 1, 16)});
  const Sequence sign = builder_.optional(builder_.characters(CodePoints().add('+').add('-')));
  const Sequence exponent =
      joined({builder_.characters(CodePoints().add('e').add('E')), sign, first, builder_.optional(digit)});
  const Sequence before_point =
      builder_.choice({builder_.literal("0"), joined({first, builder_.repeat(digit, 0, 14)})});
  const Sequence after = joined({builder_.optional(fraction), builder_.optional(exponent)});
  // A minus before a zero only where a fraction follows: -0 is an integer to some and none to others.
  return builder_.choice({joined({before_point, after}),
                          joined({builder_.literal("-"), first, builder_.repeat(digit, 0, 14), after}),
                          joined({builder_.literal("-0"), fraction, builder_.optional(exponent)})});
}

Sequence JsonGrammar::comma() {
  return joined({builder_.literal(","), builder_.optional(builder_.literal(" "))});
}

Sequence JsonGrammar::member(const Sequence& key, const Sequence& value) {
  return joined({key, builder_.literal(":"), builder_.optional(builder_.literal(" ")), value});
}

Sequence JsonGrammar::list(const Sequence& item, std::size_t min, std::optional<std::size_t> max) {
  if (max == std::size_t{0}) return {};
  const auto less_one = [](std::size_t count) { return count > 0 ? count - 1 : 0; };
  const Sequence more =
      builder_.repeat(joined({comma(), item}), less_one(min), max ? std::optional(less_one(*max)) : std::nullopt);
  const Sequence some = joined({item, more});
  return min == 0 ? builder_.optional(some) : some;
}

Sequence JsonGrammar::literal(const nlohmann::ordered_json& value) {
  if (value.is_array() || value.is_object()) {
    std::vector<Sequence> parts{builder_.literal(value.is_array() ? "[" : "{")};
    for (const auto& [key, element] : value.items()) {
      if (parts.size() > 1) parts.push_back(comma());
      const Sequence its = literal(element);
      parts.push_back(value.is_array() ? its : member(builder_.literal(nlohmann::json(key).dump()), its));
    }
    parts.push_back(builder_.literal(value.is_array() ? "]" : "}"));
    return joined(parts);
  }
  return builder_.literal(value.dump());
}

}  // namespace minimind
