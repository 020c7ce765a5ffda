#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/grammar/builder.h"
#include "runtime/grammar/code_points.h"

namespace minimind {

// A number in JSON: digits * 10^exponent.
struct Decimal {
  std::int64_t digits = 0;
  int exponent = 0;
};

// Returns the shortest decimal that reads back as this value, which must be finite.
Decimal decimal_of(double value);

struct NumberBounds {
  struct Bound {
    Decimal value;
    bool exclusive = false;
  };
  std::optional<Bound> low, high;
};

// The integers within the bounds, in decimal and without leading zeros. A side without a bound ends at 15 digits, or at
// std::int64_t's limit if the other bound is beyond 15 digits. std::nullopt if there is none.
std::optional<GrammarBuilder::Sequence> integers_between(GrammarBuilder& builder, const NumberBounds& bounds);

// The numbers within the bounds that have at most 6 digits after the point and 15 in all, without an exponent, so that
// no two of them are equal as doubles. std::nullopt if there is none.
std::optional<GrammarBuilder::Sequence> numbers_between(GrammarBuilder& builder, const NumberBounds& bounds);

// The parts of grammars of JSON texts. The only whitespace is one optional space after each : and comma, so that a
// model cannot write spaces for ever.
class JsonGrammar {
 public:
  using Sequence = GrammarBuilder::Sequence;

  explicit JsonGrammar(GrammarBuilder& builder) : builder_(builder) {}

  GrammarBuilder& builder() { return builder_; }

  // Any JSON value, any object, any array.
  Sequence value();
  Sequence object();
  Sequence array();

  // A string of min to max characters: code points, in any spelling. Surrogates are escaped in pairs only.
  Sequence string(std::size_t min = 0, std::optional<std::size_t> max = std::nullopt);

  // One character inside a string: any character in any spelling; or one of the set, which must not be empty, unescaped
  // or, if JSON requires an escape, with the shortest escape.
  Sequence any_character();
  Sequence character(const CodePoints& set);

  // Up to 15 digits before the point and 16 after it, and an exponent of up to two digits, so that it fits a double. An
  // integer has up to 15 digits, which a double represents exactly. There is no -0.
  Sequence number();
  Sequence integer();

  // Exactly this value, its strings verbatim.
  Sequence literal(const nlohmann::ordered_json& value);

  // "key": value
  Sequence member(const Sequence& key, const Sequence& value);

  // min to max (or any number) of `item`, separated by commas.
  Sequence list(const Sequence& item, std::size_t min, std::optional<std::size_t> max);

  // A comma, and the item after it.
  Sequence comma();

 private:
  GrammarBuilder::RuleId values();
  Sequence hexadecimal(std::string_view first_digits, std::size_t free_digits);

  GrammarBuilder& builder_;
  std::optional<GrammarBuilder::RuleId> value_, object_, array_, string_, any_character_;
};

struct JsonProperty {
  std::string name;
  JsonGrammar::Sequence value;
  bool required = false;
};

// Further properties of an object: names other than `excluded`, written without escapes.
struct JsonOtherProperties {
  JsonGrammar::Sequence value;
  std::vector<std::string> excluded;
  std::size_t min = 0;  // min and max only if there are no properties
  std::optional<std::size_t> max;
};

// Objects with the properties in this order, of which the optional ones may be omitted, and then `others`, if any.
// Throws Error if a name to exclude is longer than 1000 bytes.
JsonGrammar::Sequence object_of(JsonGrammar& grammar, const std::vector<JsonProperty>& properties,
                                const std::optional<JsonOtherProperties>& others);

}  // namespace minimind
