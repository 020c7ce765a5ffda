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

// A number as JSON writes it: digits * 10^exponent.
struct Decimal {
  std::int64_t digits = 0;
  int exponent = 0;
};

// The shortest decimal that a double of this value is read from. The value is finite.
Decimal decimal_of(double value);

struct NumberBounds {
  struct Bound {
    Decimal value;
    bool exclusive = false;
  };
  std::optional<Bound> low, high;
};

// The integers within the bounds, in decimal and without leading zeros. A side without a bound ends at 15 digits, or
// with std::int64_t where the other bound lies beyond. Nothing when there is none.
std::optional<GrammarBuilder::Sequence> integers_between(GrammarBuilder& builder, const NumberBounds& bounds);

// The numbers within the bounds that have at most 6 digits behind the point and 15 in all, without an exponent: few
// enough that no two of them are the same double. Nothing when there is none.
std::optional<GrammarBuilder::Sequence> numbers_between(GrammarBuilder& builder, const NumberBounds& bounds);

// The parts that grammars of JSON texts are made of. There is no white space but for one blank, which may be left out,
// after each : and comma, so that a model cannot write blanks for ever.
class JsonGrammar {
 public:
  using Sequence = GrammarBuilder::Sequence;

  explicit JsonGrammar(GrammarBuilder& builder) : builder_(builder) {}

  GrammarBuilder& builder() { return builder_; }

  // Any JSON value, any object, any array.
  Sequence value();
  Sequence object();
  Sequence array();

  // A string of min to max characters: code points, however they are written. Surrogates are escaped in pairs only.
  Sequence string(std::size_t min = 0, std::optional<std::size_t> max = std::nullopt);

  // One character inside a string: any, however it is written; or one of the set, which is not empty, written as it is
  // or, where JSON demands an escape, with the shortest one.
  Sequence any_character();
  Sequence character(const CodePoints& set);

  // Up to 15 digits before the point and 16 behind it and an exponent of up to two digits, so that a double holds it;
  // an integer is up to 15 digits, which a double holds exactly. There is no -0.
  Sequence number();
  Sequence integer();

  // Exactly this value, its strings as they are.
  Sequence literal(const nlohmann::ordered_json& value);

  // "key": value
  Sequence member(const Sequence& key, const Sequence& value);

  // min to max (or any number) of `item`, between commas.
  Sequence list(const Sequence& item, std::size_t min, std::optional<std::size_t> max);

  // A comma, and what may follow it.
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

// What an object may hold beside its properties: names other than `excluded`, written without escapes.
struct JsonOtherProperties {
  JsonGrammar::Sequence value;
  std::vector<std::string> excluded;
  std::size_t min = 0;  // these two only where there are no properties
  std::optional<std::size_t> max;
};

// Objects with the properties in this order, those not required perhaps left out, and then others, if any. Throws Error
// when a name to exclude is longer than 1000 bytes.
JsonGrammar::Sequence object_of(JsonGrammar& grammar, const std::vector<JsonProperty>& properties,
                                const std::optional<JsonOtherProperties>& others);

}  // namespace minimind
