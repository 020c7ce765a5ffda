#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/grammar/builder.h"
#include "runtime/grammar/code_points.h"

namespace minimind {

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

}  // namespace minimind
