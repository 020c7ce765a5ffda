#include "runtime/grammar/json_grammar.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/utf8.h"
#include "weights/io/error.h"
#include "weights/io/quote.h"

namespace minimind {
namespace {

using Sequence = GrammarBuilder::Sequence;
using Wide = __int128;
using Limits = std::numeric_limits<std::int64_t>;

constexpr std::int64_t fifteen_digits = 999'999'999'999'999;
constexpr std::size_t most_decimals = 6;

// Digits with a point before the last `decimals` digits.
class DigitRanges {
 public:
  DigitRanges(GrammarBuilder& builder, std::size_t decimals) : builder_(builder), decimals_(decimals) {}

  // The numbers between two numbers of equally many digits.
  Sequence between(std::string_view low, std::string_view high) {
    if (low.empty()) return {};
    if (low.front() == high.front()) {
      return digits(low.front(), low.front(), low.size(), between(low.substr(1), high.substr(1)));
    }
    char first = low.front(), last = high.front();
    std::vector<Sequence> alternatives;
    const std::string zeros(low.size() - 1, '0'), nines(low.size() - 1, '9');
    if (low.substr(1) != zeros) {
      alternatives.push_back(digits(first, first, low.size(), between(low.substr(1), nines)));
      ++first;
    }
    if (high.substr(1) != nines) {
      alternatives.push_back(digits(last, last, low.size(), between(zeros, high.substr(1))));
      --last;
    }
    if (first <= last) alternatives.push_back(digits(first, last, low.size(), between(zeros, nines)));
    return builder_.choice(alternatives);
  }

 private:
  // A digit, the first of `left` remaining digits, and the following symbols.
  Sequence digits(char first, char last, std::size_t left, const Sequence& rest) {
    const Sequence point = left - 1 == decimals_ && decimals_ > 0 ? builder_.literal(".") : Sequence();
    const CodePoints set(static_cast<char32_t>(first), static_cast<char32_t>(last));
    return GrammarBuilder::concatenate({builder_.characters(set), point, rest});
  }

  GrammarBuilder& builder_;
  std::size_t decimals_;
};

// 0 <= low <= high; both without their point.
void add_magnitudes(GrammarBuilder& builder, std::uint64_t low, std::uint64_t high, std::size_t decimals,
                    const Sequence& sign, std::vector<Sequence>& alternatives) {
  DigitRanges ranges(builder, decimals);
  const std::string lowest = fmt::format("{:0{}}", low, decimals + 1),
                    highest = fmt::format("{:0{}}", high, decimals + 1);
  for (std::size_t size = lowest.size(); size <= highest.size(); ++size) {
    const std::string from = size == lowest.size() ? lowest : "1" + std::string(size - 1, '0');
    const std::string to = size == highest.size() ? highest : std::string(size, '9');
    alternatives.push_back(GrammarBuilder::concatenate({sign, ranges.between(from, to)}));
  }
}

void add_range(GrammarBuilder& builder, std::int64_t low, std::int64_t high, std::size_t decimals,
               std::vector<Sequence>& alternatives) {
  const auto magnitude = [](std::int64_t value) { return std::uint64_t{0} - static_cast<std::uint64_t>(value); };
  if (low < 0) {
    const std::uint64_t nearest = high < 0 ? magnitude(high) : 1;
    add_magnitudes(builder, nearest, magnitude(low), decimals, builder.literal("-"), alternatives);
  }
  if (high >= 0) {
    add_magnitudes(builder, static_cast<std::uint64_t>(std::max<std::int64_t>(low, 0)),
                   static_cast<std::uint64_t>(high), decimals, {}, alternatives);
  }
}

// The largest integer that is at most value * 10^shift, and whether it is equal. Beyond 10^30, which no text reaches,
// some such number of equal sign.
struct Floor {
  Wide value;
  bool exact;
};

Floor floor_of(const Decimal& decimal, int shift) {
  constexpr Wide huge = Wide{1'000'000'000'000'000} * 1'000'000'000'000'000;
  Floor result{decimal.digits, true};
  int exponent = decimal.exponent + shift;
  for (; exponent > 0 && result.value < huge && result.value > -huge; --exponent) result.value *= 10;
  for (; exponent < 0; ++exponent) {
    const Wide rest = (result.value % 10 + 10) % 10;
    result = {(result.value - rest) / 10, result.exact && rest == 0};
  }
  return result;
}

// The range that a bound allows for numbers with this many decimals, without their point.
Wide lowest(const NumberBounds::Bound& bound, int decimals) {
  const Floor floor = floor_of(bound.value, decimals);
  return floor.exact && !bound.exclusive ? floor.value : floor.value + 1;
}

Wide highest(const NumberBounds::Bound& bound, int decimals) {
  const Floor floor = floor_of(bound.value, decimals);
  return floor.exact && bound.exclusive ? floor.value - 1 : floor.value;
}

std::optional<Sequence> choice_of(GrammarBuilder& builder, const std::vector<Sequence>& alternatives) {
  if (alternatives.empty()) return std::nullopt;
  return builder.choice(alternatives);
}

}  // namespace

Decimal decimal_of(double value) {
  std::array<char, 64> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t e = text.find('e');
  Decimal decimal;
  bool behind_point = false;
  for (const char c : text.substr(0, e)) {
    if (c == '.') behind_point = true;
    if (c < '0' || c > '9') continue;
    decimal.digits = decimal.digits * 10 + (c - '0');  // at most 17 of them
    if (behind_point) --decimal.exponent;
  }
  if (text.starts_with('-')) decimal.digits = -decimal.digits;
  int exponent = 0;
  const bool plus = text[e + 1] == '+';
  std::from_chars(text.data() + e + (plus ? 2 : 1), text.data() + text.size(), exponent);
  decimal.exponent += exponent;
  return decimal;
}

std::optional<Sequence> integers_between(GrammarBuilder& builder, const NumberBounds& bounds) {
  Wide low = bounds.low ? lowest(*bounds.low, 0) : Wide{-fifteen_digits};
  Wide high = bounds.high ? highest(*bounds.high, 0) : Wide{fifteen_digits};
  if (!bounds.low && high < low) low = Limits::min();
  if (!bounds.high && high < low) high = Limits::max();
  low = std::max<Wide>(low, Limits::min());
  high = std::min<Wide>(high, Limits::max());
  std::vector<Sequence> alternatives;
  if (low <= high) add_range(builder, static_cast<std::int64_t>(low), static_cast<std::int64_t>(high), 0, alternatives);
  return choice_of(builder, alternatives);
}

std::optional<Sequence> numbers_between(GrammarBuilder& builder, const NumberBounds& bounds) {
  std::vector<Sequence> alternatives;
  for (std::size_t decimals = 0; decimals <= most_decimals; ++decimals) {
    const auto shift = static_cast<int>(decimals);
    Wide low = -fifteen_digits, high = fifteen_digits;
    if (bounds.low) low = std::max(low, lowest(*bounds.low, shift));
    if (bounds.high) high = std::min(high, highest(*bounds.high, shift));
    if (low > high) continue;
    add_range(builder, static_cast<std::int64_t>(low), static_cast<std::int64_t>(high), decimals, alternatives);
  }
  return choice_of(builder, alternatives);
}

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

// `first_digits` is the inside of a set: the choices for the first digit.
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
  // A minus before a zero only with a fraction: readers disagree on whether -0 is an integer.
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

namespace {

constexpr std::size_t longest_name = 1000;

// The continuations of a prefix that the sorted `names` share, `prefix` bytes long, such that the whole differs from
// each name. Names that a string without escapes cannot spell need no exclusion: nothing continues at their first such
// character.
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
  Sequence first, more;  // the continuations of an empty object, and of a non-empty object
  if (others) {
    for (const std::string& name : others->excluded) {
      if (name.size() > longest_name) {
        throw Error(fmt::format("property {} is too long, expected at most {} bytes with additionalProperties",
                                quote(name), longest_name));
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
