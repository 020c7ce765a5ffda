#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/json_schema/automaton.h"
#include "runtime/text/code_points.h"

namespace minimind {

// A number in decimal: digits * 10^exponent, with a sign. There are neither leading nor trailing zeros in `digits`,
// which is empty for zero.
struct Decimal {
  bool negative = false;
  std::string digits;
  int exponent = 0;

  bool operator==(const Decimal&) const = default;
  bool is_zero() const { return digits.empty(); }
};

// Reads a number as JSON spells it. std::nullopt if its exponent has over 6 digits.
std::optional<Decimal> decimal_of(std::string_view number);

// The text without an exponent and without zeros at the end of a fraction; std::nullopt if it is too long.
std::optional<std::string> plain_text(const Decimal& value);

// The sets of texts of JSON numbers of which a schema's numbers are made. A reader turns most texts into doubles: a set
// holds no text of which the rounded value is outside of it.
enum class NumberTexts : std::uint8_t {
  any,      // every number that fits a double: up to 40 digits before and after the point, exponents of two digits
  integer,  // whole numbers, among them 1.0 and 1e2
  plain,    // without an exponent
  plain_integer,  // digits only
  exact,          // without an exponent, of at most 15 digits, which a double tells from all others
};
const Automaton& numbers(NumberTexts texts);  // valid for good

// Numbers that are not whole.
Automaton fractions();

struct NumberBound {
  Decimal value;
  bool exclusive = false;
};

// Numbers of at least or at most a bound. Those with an exponent are only in it where the bound is zero, or
// `scientific`, if they have one digit other than 0 before the point, as programs write them.
Automaton numbers_from(const NumberBound& bound, bool scientific);
Automaton numbers_to(const NumberBound& bound, bool scientific);

// Multiples of a number above zero. std::nullopt if the divisor has too many remainders for an automaton: without zeros
// at its ends it may be at most 5,000.
std::optional<Automaton> multiples_of(const Decimal& divisor);

// The least number above zero that both divide. std::nullopt if it has over 15 digits.
std::optional<Decimal> least_common_multiple(const Decimal& a, const Decimal& b);

// Multiples of a number of any remainders, followed digit by digit, of NumberTexts::exact.
class Multiples {
 public:
  explicit Multiples(const Decimal& divisor);

  // After some of a number's characters.
  struct Place {
    std::uint64_t remainder = 0;  // of the digits so far
    std::optional<int>
        decimals;  // how many of them are after the point, if it was read; not those beyond the divisor's

    auto operator<=>(const Place&) const = default;
  };
  // std::nullopt if no multiple starts so.
  std::optional<Place> after(Place place, char32_t character) const;
  bool ends_at(const Place& place) const { return divides(place.remainder, 1, place.decimals); }
  // The fewest characters after which a multiple ends that the automaton takes from its state. std::nullopt if there
  // are none.
  std::optional<std::uint64_t> characters_to_end(const Automaton& automaton, Automaton::State state,
                                                 const Place& place) const;

 private:
  struct Reached;
  bool divides(std::uint64_t remainder, std::uint64_t count, std::optional<int> decimals) const;

  std::uint64_t modulus_;  // of a number's digits, if `decimals_` of them are after the point
  int decimals_;
};

// The texts of these numbers: without an exponent where that is short, and as `spelling` has each.
struct SpelledNumber {
  Decimal value;
  std::string spelling;
};
Automaton numbers_equal(const std::vector<SpelledNumber>& numbers);

// Returns the spellings of a character of the set inside a JSON string, each as the sets of its bytes. With
// `every_escape` also those that are not needed, such as \u0061 for a; otherwise those of Python's json.dumps: as it
// is, or escaped if it must be or is beyond ASCII.
std::vector<std::vector<ByteSet>> json_character_spellings(const CodePoints& set, bool every_escape);

// Returns the character that the bytes inside a JSON string start with, if it has such a spelling; otherwise, and for a
// control as \u00HH without `every_escape`, it takes no bytes.
struct SpelledCharacter {
  char32_t character = 0;
  std::size_t bytes = 0;
};
SpelledCharacter json_character(std::string_view bytes, bool every_escape);

}  // namespace minimind
