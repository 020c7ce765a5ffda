#include "runtime/json_schema/json_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "runtime/grammar/work.h"
#include "runtime/json_schema/pattern.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr std::size_t most_number_digits = 40;  // on either side of the point
constexpr std::size_t most_exact_digits = 15;   // which a double keeps apart from every other such number
constexpr std::uint64_t most_remainders = 5'000;
constexpr std::uint64_t beyond_exact = 1'000'000'000'000'000;  // 10^most_exact_digits
constexpr int most_zeros = 40;  // that a number without an exponent may end or start with

// The automaton of the states that `step(state, character)` reaches from `start`; it returns std::nullopt where nothing
// follows.
template <class State, class Step, class Accepts>
Automaton explore(const State& start, Step step, Accepts accepts) {
  Automaton::Draft draft;
  std::map<State, Automaton::State> numbers;
  std::vector<State> states;
  const auto number = [&](const State& state) {
    const auto [place, added] = numbers.try_emplace(state, static_cast<Automaton::State>(states.size()));
    if (added) {
      states.push_back(state);
      draft.add(accepts(state));
    }
    return place->second;
  };
  number(start);
  for (std::size_t i = 0; i < states.size(); ++i) {
    spend(12);
    for (const char c : std::string_view("-.0123456789")) {
      const State from = states[i];
      const std::optional<State> to = step(from, c);
      if (!to) continue;
      const auto point = static_cast<char32_t>(c);
      const Automaton::State target = number(*to);
      draft.edges[i].push_back({point, point, target});
    }
  }
  return Automaton(draft);
}

// A number without an exponent, read from its sign on.
struct PlainNumber {
  enum class Part : std::uint8_t { start, sign, zero, whole, point, fraction };
  Part part = Part::start;

  bool complete() const { return part == Part::zero || part == Part::whole || part == Part::fraction; }

  std::optional<PlainNumber> after(char c) const {
    const bool digit = c >= '0' && c <= '9';
    switch (part) {
      case Part::start:
        if (c == '-') return PlainNumber{Part::sign};
        [[fallthrough]];
      case Part::sign:
        if (digit) return PlainNumber{c == '0' ? Part::zero : Part::whole};
        return std::nullopt;
      case Part::whole:
        if (digit) return *this;
        [[fallthrough]];
      case Part::zero:
        if (c == '.') return PlainNumber{Part::point};
        return std::nullopt;
      case Part::point:
      case Part::fraction:
        if (digit) return PlainNumber{Part::fraction};
        return std::nullopt;
    }
    return std::nullopt;
  }
};

// A comparison of the magnitude of a number being read with that of a bound.
struct Comparison {
  PlainNumber number;
  bool negative = false;
  std::size_t whole_digits = 0;     // capped above those of the bound
  std::size_t fraction_digits = 0;  // likewise
  int order = 0;                    // of the digits so far: -1 below the bound's, 0 equal, 1 above

  auto key() const { return std::tuple(number.part, negative, whole_digits, fraction_digits, order); }
  bool operator<(const Comparison& other) const { return key() < other.key(); }
};

class Comparator {
 public:
  explicit Comparator(const Decimal& bound) {
    const auto size = static_cast<int>(bound.digits.size());
    // Digits before the point; one more than any number has is as many as a million more.
    constexpr int beyond_all = static_cast<int>(most_number_digits) + 1;
    const int whole = std::clamp(size + bound.exponent, -beyond_all, std::max(size, beyond_all));
    if (whole > 0) {
      whole_ = bound.digits.substr(0, static_cast<std::size_t>(std::min(whole, size)));
      if (whole > size) whole_.append(static_cast<std::size_t>(whole - size), '0');
    }
    if (whole < 0) fraction_.assign(static_cast<std::size_t>(-whole), '0');
    if (whole < size) fraction_ += bound.digits.substr(static_cast<std::size_t>(std::max(whole, 0)));
  }

  std::optional<Comparison> step(Comparison state, char c) const {
    const auto next = state.number.after(c);
    if (!next) return std::nullopt;
    state.number = *next;
    using Part = PlainNumber::Part;
    if (c == '-') state.negative = true;
    if (next->part == Part::whole) {
      if (state.order == 0 && state.whole_digits < whole_.size()) state.order = sign(c - whole_[state.whole_digits]);
      state.whole_digits = std::min(state.whole_digits + 1, whole_.size() + 1);
    }
    if (next->part == Part::point) state.order = order_of_whole(state);
    if (next->part == Part::fraction && state.order == 0) {
      const char digit = state.fraction_digits < fraction_.size() ? fraction_[state.fraction_digits] : '0';
      state.order = sign(c - digit);
      state.fraction_digits = std::min(state.fraction_digits + 1, fraction_.size());
    }
    // Once the digits differ, how many there were no longer matters.
    if (next->part == Part::fraction && state.order != 0) state.fraction_digits = 0;
    if (next->part >= Part::point) state.whole_digits = 0;
    return state;
  }

  // Returns the order of the magnitudes of a complete number and the bound.
  int order(const Comparison& state) const {
    using Part = PlainNumber::Part;
    int order = state.order;
    if (state.number.part == Part::zero || state.number.part == Part::whole) order = order_of_whole(state);
    const std::size_t read = state.number.part == Part::fraction ? state.fraction_digits : 0;
    return order == 0 && read < fraction_.size() ? -1 : order;
  }

 private:
  static int sign(int difference) { return (difference > 0) - (difference < 0); }

  int order_of_whole(const Comparison& state) const {
    if (state.whole_digits != whole_.size()) return state.whole_digits < whole_.size() ? -1 : 1;
    return state.order;
  }

  std::string whole_, fraction_;
};

std::string limited(std::string_view digits) {
  return std::string(digits) + "{0," + std::to_string(most_number_digits - 1) + "}";
}

std::string whole_pattern() {
  return "(?:0|[1-9]" + limited("[0-9]") + ")";
}

std::string fraction_pattern(std::string_view digits) {
  return "(?:\\." + std::string(digits) + limited(digits) + ")";
}

// For sets of texts that are made once.
Automaton whole_text(const std::string& pattern) {
  const UncountedWork once;
  return pattern_automaton(pattern, Matching::whole);
}

// Numbers without an exponent with at most this many digits after leading zeros.
Automaton make_of_digits_at_most(std::size_t count) {
  const std::string most = std::to_string(count);
  // The look-ahead counts the digits: a point and the zeros before the first other digit are free.
  return whole_text("-?(?=[0.]*(?:[0-9]\\.?){0," + most + "}$)(?:0|[1-9][0-9]*)(?:\\.[0-9]{1," + most + "})?");
}

// Made once: a schema with many numbers needs them often.
const Automaton& of_number_digits() {
  static const Automaton automaton = make_of_digits_at_most(most_number_digits);
  return automaton;
}
const Automaton& of_exact_digits() {
  static const Automaton automaton = make_of_digits_at_most(most_exact_digits);
  return automaton;
}

Automaton beyond(const NumberBound& bound, bool above) {
  const Comparator comparator(bound.value);
  Automaton result = explore(
      Comparison(), [&](const Comparison& state, char c) { return comparator.step(state, c); },
      [&](const Comparison& state) {
        if (!state.number.complete()) return false;
        int order = comparator.order(state);  // of the magnitudes
        if (bound.value.is_zero()) {
          order = state.negative ? -order : order;
        } else if (state.negative != bound.value.negative) {
          order = state.negative ? -1 : 1;
        } else if (state.negative) {
          order = -order;
        }
        return order == 0 ? !bound.exclusive : (order > 0) == above;
      });
  if (!bound.exclusive) return result & numbers(NumberTexts::plain);
  // Digits that a double does not keep could round a number to the bound.
  return result & (bound.value.is_zero() ? of_number_digits() : of_exact_digits());
}

// The numbers with an exponent on one side of zero.
const Automaton& with_exponent(bool negative, bool zero_too) {
  const auto make = [](const std::string& start) {
    return whole_text(start + whole_pattern() + fraction_pattern("[0-9]") + "?[eE][+-]?[0-9]{1,2}");
  };
  const std::string not_zero = "(?=[0.]*[1-9])";
  static const std::array<Automaton, 4> automata{make(not_zero), make(""), make("-" + not_zero), make("-")};
  return automata[2 * negative + zero_too];
}

// The numbers with an exponent whose mantissas have at most the digits that are compared exactly, if the bound is
// exclusive; otherwise at most those that a number may have.
const Automaton& of_mantissa_digits(bool exclusive) {
  const auto make = [](int most) { return whole_text(fmt::format("-?[0-9.]{{1,{}}}[eE][0-9+-]*", most)); };
  static const std::array<Automaton, 2> automata{make(most_number_digits + 2), make(most_exact_digits + 1)};
  return automata[exclusive];
}

// The mantissas of one digit before the point that are over the digits of a bound, below them, or equal.
std::string mantissas(const std::string& digits, int order) {
  const auto with_point = [](std::string text) { return text.size() > 1 ? text.insert(1, "\\.") : text; };
  if (order == 0) return with_point(digits) + (digits.size() > 1 ? "0*" : "(?:\\.0+)?");
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const char digit = digits[i], least = i == 0 ? '1' : '0';
    const char first = order > 0 ? static_cast<char>(digit + 1) : least;
    const char last = order > 0 ? '9' : static_cast<char>(digit - 1);
    const std::string same = digits.substr(0, i);
    if (order < 0 && i > 0) parts.push_back(with_point(same));  // the digits that are missing are not all zeros
    if (first > last) continue;
    const std::string set = std::string("[") + first + "-" + last + "]";
    if (i == 0) {
      parts.push_back(set + "(?:\\.[0-9]+)?");
    } else {
      parts.push_back(same.substr(0, 1) + "\\." + same.substr(1) + set + "[0-9]*");
    }
  }
  if (order > 0) parts.push_back(with_point(digits) + (digits.size() > 1 ? "" : "\\.") + "0*[1-9][0-9]*");
  return fmt::format("(?:{})", fmt::join(parts, "|"));
}

// The exponents from `first` to `last`, as far as they have two digits.
std::string exponents(int first, int last) {
  constexpr int most = 99;
  std::vector<std::string> parts;
  for (int exponent = std::max(first, -most); exponent <= std::min(last, most); ++exponent) {
    const int size = std::abs(exponent);
    const std::string sign = exponent < 0 ? "-" : exponent > 0 ? "\\+?" : "[+-]?";
    parts.push_back(fmt::format("{}{}{}", sign, size < 10 ? "0?" : "", size));
  }
  return fmt::format("[eE](?:{})", fmt::join(parts, "|"));
}

// The numbers with an exponent, and one digit other than 0 before the point, on a side of a bound other than 0.
Automaton scientific_on_side(const NumberBound& bound, bool above) {
  const UncountedWork once;  // which is kept for all that have the bound, and whose size is that of a few digits
  constexpr int all = 1000;
  const Decimal& value = bound.value;
  const bool larger = above != value.negative;  // of the magnitudes
  const int exponent = std::clamp(static_cast<int>(value.digits.size()) - 1 + value.exponent, -all, all);
  const std::string sign = value.negative ? "-" : "", other_sign = value.negative ? "" : "-";
  const std::string any = "[1-9](?:\\.[0-9]+)?";
  std::string at_bound = mantissas(value.digits, larger ? 1 : -1);
  if (!bound.exclusive) at_bound = "(?:" + at_bound + "|" + mantissas(value.digits, 0) + ")";
  std::vector<std::string> parts;
  const auto add = [&](const std::string& numbers, int first, int last) {
    if (first <= 99 && last >= -99 && first <= last) parts.push_back(numbers + exponents(first, last));
  };
  add(sign + at_bound, exponent, exponent);
  add(sign + any, larger ? exponent + 1 : -all, larger ? all : exponent - 1);
  if (!larger) add(other_sign + any, -all, all);
  if (parts.empty()) return {};
  return pattern_automaton(fmt::format("{}", fmt::join(parts, "|")), Matching::whole) &
         of_mantissa_digits(bound.exclusive);
}

Automaton on_side(const NumberBound& bound, bool above, bool scientific) {
  Automaton result = beyond(bound, above);
  if (bound.value.is_zero()) return result | with_exponent(!above, !bound.exclusive);
  return scientific ? result | scientific_on_side(bound, above) : result;
}

}  // namespace

std::optional<Decimal> decimal_of(std::string_view number) {
  Decimal decimal;
  std::size_t at = 0;
  if (number.starts_with('-')) {
    decimal.negative = true;
    ++at;
  }
  bool after_point = false;
  for (; at < number.size() && number[at] != 'e' && number[at] != 'E'; ++at) {
    if (number[at] == '.') {
      after_point = true;
      continue;
    }
    if (after_point) --decimal.exponent;
    if (!decimal.digits.empty() || number[at] != '0') decimal.digits += number[at];
  }
  if (at < number.size()) {
    ++at;
    if (at < number.size() && number[at] == '+') ++at;
    const auto exponent = number_in<int>(number.substr(at));
    if (!exponent || *exponent > 999'999 || *exponent < -999'999) return std::nullopt;
    decimal.exponent += *exponent;
  }
  while (decimal.digits.ends_with('0')) {
    decimal.digits.pop_back();
    ++decimal.exponent;
  }
  if (decimal.digits.empty()) decimal = Decimal();
  return decimal;
}

const Automaton& numbers(NumberTexts texts) {
  const auto make = [](const std::string& rest) { return whole_text("-?" + whole_pattern() + rest); };
  switch (texts) {
    case NumberTexts::any: {
      static const Automaton automaton = make(fraction_pattern("[0-9]") + "?(?:[eE][+-]?[0-9]{1,2})?");
      return automaton;
    }
    case NumberTexts::integer: {
      static const Automaton automaton = make(fraction_pattern("0") + "?(?:[eE]\\+?[0-9]{1,2})?");
      return automaton;
    }
    case NumberTexts::plain: {
      static const Automaton automaton = make(fraction_pattern("[0-9]") + "?");
      return automaton;
    }
    case NumberTexts::exact:
      return of_exact_digits();
    case NumberTexts::plain_integer:
      break;
  }
  static const Automaton automaton = make("");
  return automaton;
}

Automaton fractions() {
  // A fraction beyond the digits of a double would round to a whole number.
  return whole_text("-?" + whole_pattern() + "(?=\\.0*[1-9])" + fraction_pattern("[0-9]")) & of_exact_digits();
}

Automaton numbers_from(const NumberBound& bound, bool scientific) {
  return on_side(bound, true, scientific);
}

Automaton numbers_to(const NumberBound& bound, bool scientific) {
  return on_side(bound, false, scientific);
}

namespace {

// A number being divided: the remainder of its digits so far but the zeros at their end, up to as many as the divisor
// ends with, and the digits after the point so far.
struct Division {
  PlainNumber number;
  std::uint64_t remainder = 0;
  int zeros = 0;
  int decimals = 0;

  auto key() const { return std::tuple(number.part, remainder, zeros, decimals); }
  bool operator<(const Division& other) const { return key() < other.key(); }
};

}  // namespace

std::optional<Automaton> multiples_of(const Decimal& divisor) {
  const bool is_short = divisor.digits.size() <= 9 && divisor.exponent <= most_zeros && divisor.exponent >= -most_zeros;
  if (divisor.is_zero() || !is_short) return std::nullopt;
  const std::uint64_t modulus = std::stoull(divisor.digits);
  if (modulus > most_remainders) return std::nullopt;
  const int decimals = std::max(-divisor.exponent, 0), zeros = std::max(divisor.exponent, 0);
  const auto add_whole = [&](Division& state, std::uint64_t digit) {
    if (digit == 0 && state.zeros < zeros) {
      ++state.zeros;
      return;
    }
    // Of zeros at the end, the first is one of the digits before them.
    const int passed = digit == 0 ? 1 : state.zeros + 1;
    for (int i = 0; i < passed; ++i) state.remainder = state.remainder * 10 % modulus;
    state.remainder = (state.remainder + digit) % modulus;
    if (digit != 0) state.zeros = 0;
  };
  const auto step = [&](Division state, char c) -> std::optional<Division> {
    const auto next = state.number.after(c);
    if (!next) return std::nullopt;
    state.number = *next;
    if (c == '-' || c == '.') return state;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (next->part == PlainNumber::Part::zero) {
      state.zeros = zeros;
    } else if (next->part != PlainNumber::Part::fraction) {
      add_whole(state, digit);
    } else if (state.decimals < decimals) {
      state.remainder = (state.remainder * 10 + digit) % modulus;
      ++state.decimals;
    } else if (digit != 0) {
      return std::nullopt;
    }
    return state;
  };
  const auto accepts = [&](Division state) {
    if (!state.number.complete() || state.zeros < zeros) return false;
    for (; state.decimals < decimals; ++state.decimals) state.remainder = state.remainder * 10 % modulus;
    return state.remainder == 0;
  };
  return explore(Division(), step, accepts) & of_exact_digits();
}

namespace {

// Without zeros at its end, which are counted. std::nullopt beyond 15 digits.
std::optional<std::uint64_t> digits_of(const Decimal& number) {
  const bool is_short = number.digits.size() <= most_exact_digits && std::abs(number.exponent) <= most_zeros;
  return is_short ? std::optional(std::stoull(number.digits)) : std::nullopt;
}

// The product; std::nullopt if it is over `most`.
std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b, std::uint64_t most) {
  return a == 0 || b <= most / a ? std::optional(a * b) : std::nullopt;
}

std::optional<std::uint64_t> with_zeros(std::uint64_t digits, int zeros) {
  std::optional<std::uint64_t> result = digits;
  for (int i = 0; i < zeros && result; ++i) result = product(*result, 10, 1000 * beyond_exact);
  return result;
}

}  // namespace

std::optional<Decimal> least_common_multiple(const Decimal& a, const Decimal& b) {
  const int exponent = std::min(a.exponent, b.exponent);
  const auto left = digits_of(a), right = digits_of(b);
  if (!left || !right) return std::nullopt;
  const auto first = with_zeros(*left, a.exponent - exponent), second = with_zeros(*right, b.exponent - exponent);
  if (!first || !second) return std::nullopt;
  const auto both = product(*first, *second / std::gcd(*first, *second), 1000 * beyond_exact);
  if (!both) return std::nullopt;
  auto result = decimal_of(std::to_string(*both));
  result->exponent += exponent;
  return digits_of(*result) ? result : std::nullopt;
}

// Without remainders that no number of 15 digits has.
Multiples::Multiples(const Decimal& divisor)
    : modulus_(with_zeros(digits_of(divisor).value(), std::max(divisor.exponent, 0)).value_or(10 * beyond_exact)),
      decimals_(std::max(-divisor.exponent, 0)) {
  modulus_ = std::min(modulus_, 10 * beyond_exact);
}

// Whether one of `count` numbers in a row, of which the first has this remainder, is divided.
bool Multiples::divides(std::uint64_t remainder, std::uint64_t count, std::optional<int> decimals) const {
  std::uint64_t modulus = modulus_;
  for (int i = decimals.value_or(0); i < decimals_; ++i) modulus /= std::gcd(modulus, std::uint64_t{10});
  const std::uint64_t over = remainder % modulus;
  return over == 0 || modulus - over < count;
}

std::optional<Multiples::Place> Multiples::after(Place place, char32_t character) const {
  if (character == '-') return place;
  if (character == '.') return Place{place.remainder, 0};
  if (place.decimals == decimals_) return character == '0' ? std::optional(place) : std::nullopt;
  if (place.decimals) ++*place.decimals;
  place.remainder = (place.remainder * 10 + (character - '0')) % modulus_;
  return place;
}

// A state after the digits of `count` numbers in a row, of which the first has the remainder of `place`.
struct Multiples::Reached {
  Automaton::State state;
  Place place;
  std::uint64_t count;

  auto operator<=>(const Reached&) const = default;
};

// Length by length. Once a number's digits differ from those of all bounds, every digit leads to the same state, so
// that all numbers of a length are one range, and few states are met. Others count as without an end.
std::optional<std::uint64_t> Multiples::characters_to_end(const Automaton& automaton, Automaton::State state,
                                                          const Place& place) const {
  constexpr std::uint64_t most_characters = 60;
  constexpr std::size_t most_reached = 4'000;
  constexpr Automaton::State none = ~0u;
  std::vector<Reached> reached{{state, place, 1}}, next;
  std::set<Reached> known;
  for (std::uint64_t length = 0; length <= most_characters && !reached.empty(); ++length, reached.swap(next)) {
    next.clear();
    for (const Reached& from : reached) {
      spend(8);
      if (automaton.accepts_at(from.state) && divides(from.place.remainder, from.count, from.place.decimals))
        return length;
    }
    const auto add = [&](Automaton::State to, const std::optional<Place>& after, std::uint64_t count) {
      if (to == none || !after || known.size() >= most_reached) return;
      if (const Reached one{to, *after, count}; known.insert(one).second) next.push_back(one);
    };
    for (const Reached& from : reached) {
      const auto [begin, end] = automaton.edges(from.state);
      const bool only_zeros = from.place.decimals == decimals_;
      std::array<Automaton::State, 10> after_digit;
      after_digit.fill(none);
      for (const Automaton::Edge* edge = begin; edge != end; ++edge) {
        for (char32_t c = std::max(edge->first, U'0'); c <= std::min(edge->last, U'9'); ++c)
          after_digit[c - '0'] = edge->to;
      }
      const auto same = [&](Automaton::State to) { return to == after_digit.front(); };
      for (const char32_t other : {U'-', U'.'}) {
        if (const auto to = automaton.next(from.state, other)) add(*to, after(from.place, other), from.count);
      }
      if (only_zeros) {
        add(after_digit.front(), from.place, from.count);
      } else if (std::ranges::all_of(after_digit, same)) {
        add(after_digit.front(), after(from.place, '0'), from.count * 10);
      } else if (from.count == 1) {
        for (std::size_t digit = 0, last = 0; digit < 10; digit = last) {
          while (last < 10 && after_digit[last] == after_digit[digit]) ++last;
          add(after_digit[digit], after(from.place, static_cast<char32_t>('0' + digit)), last - digit);
        }
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> plain_text(const Decimal& value) {
  const auto size = static_cast<int>(value.digits.size());
  const int whole = size + value.exponent, fraction = -value.exponent;
  constexpr auto most = static_cast<int>(most_number_digits);
  if (whole > most || fraction > most) return std::nullopt;
  std::string digits = value.digits;
  if (whole > size) digits.append(static_cast<std::size_t>(whole - size), '0');
  if (whole < 1) digits.insert(0, static_cast<std::size_t>(1 - whole), '0');
  if (fraction > 0) digits.insert(digits.size() - static_cast<std::size_t>(fraction), ".");
  return (value.negative ? "-" : "") + digits;
}

namespace {

// The texts of numbers as a trie. After a number without an exponent any zeros of a fraction follow, which those that
// have nothing else after them share.
class NumberTrie {
 public:
  void add(std::string text, bool zeros_follow) { texts_.emplace_back(std::move(text), zeros_follow); }

  Automaton build() {
    std::sort(texts_.begin(), texts_.end());
    nodes_.emplace_back();
    for (const auto& [text, zeros_follow] : texts_) insert(text, zeros_follow);
    for (std::size_t node = 0; node < nodes_.size(); ++node) pass_zeros_on(nodes_[node]);
    return emit();
  }

 private:
  static constexpr std::size_t no_point = ~std::size_t{0};
  struct Node {
    std::vector<std::pair<char, std::size_t>> children;  // in order
    bool accepts = false, zeros_follow = false;
    std::size_t decimals = no_point;
  };

  // Texts are sorted: a shared prefix is that of the text before.
  void insert(const std::string& text, bool zeros_follow) {
    spend(1 + text.size());
    std::size_t at = 0;
    for (const char c : text) {
      if (nodes_[at].children.empty() || nodes_[at].children.back().first != c) {
        nodes_[at].children.emplace_back(c, nodes_.size());
        const std::size_t decimals = nodes_[at].decimals;
        nodes_.push_back({{}, false, false, c == '.' ? 0 : decimals == no_point ? no_point : decimals + 1});
      }
      at = nodes_[at].children.back().second;
    }
    nodes_[at].accepts = true;
    nodes_[at].zeros_follow = nodes_[at].zeros_follow || zeros_follow;
  }

  // Children have larger numbers.
  void pass_zeros_on(const Node& node) {
    if (!node.zeros_follow || node.decimals == most_number_digits) return;
    for (const auto& [c, child] : node.children) {
      if (c != (node.decimals == no_point ? '.' : '0')) continue;
      nodes_[child].zeros_follow = true;
      nodes_[child].accepts = c == '0';
    }
  }

  Automaton emit() {
    Automaton::Draft draft;
    std::vector<Automaton::State> states(nodes_.size());
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (node == 0 || !nodes_[node].children.empty()) states[node] = draft.add(nodes_[node].accepts);
    }
    // Those without children, by how many zeros may follow: the last is that of no zeros, before it is that of a point.
    std::vector<Automaton::State> tails;
    for (std::size_t decimals = 0; decimals <= most_number_digits; ++decimals) tails.push_back(draft.add(decimals > 0));
    const Automaton::State whole = draft.add(true), end = draft.add(true);
    for (std::size_t decimals = 0; decimals < most_number_digits; ++decimals) {
      draft.edges[tails[decimals]].push_back({'0', '0', tails[decimals + 1]});
    }
    draft.edges[whole].push_back({'.', '.', tails[0]});
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const Node& its = nodes_[node];
      if (node > 0 && its.children.empty()) continue;
      std::vector<Automaton::Edge>& edges = draft.edges[states[node]];
      const bool in_fraction = its.decimals != no_point;
      const char zero = in_fraction ? '0' : '.';
      bool has_zero = false;
      for (const auto& [c, child] : its.children) {
        const Node& next = nodes_[child];
        Automaton::State to = states[child];
        if (next.children.empty())
          to = !next.zeros_follow ? end : next.decimals == no_point ? whole : tails[next.decimals];
        const auto character = static_cast<char32_t>(c);
        edges.push_back({character, character, to});
        has_zero = has_zero || c == zero;
      }
      const std::size_t after = in_fraction ? its.decimals + 1 : 0;
      if (!its.zeros_follow || has_zero || after > most_number_digits) continue;
      edges.push_back({static_cast<char32_t>(zero), static_cast<char32_t>(zero), tails[after]});
    }
    return Automaton(draft);
  }

  std::vector<std::pair<std::string, bool>> texts_;
  std::vector<Node> nodes_;
};

}  // namespace

Automaton numbers_equal(const std::vector<SpelledNumber>& numbers) {
  NumberTrie trie;
  for (const SpelledNumber& number : numbers) {
    trie.add(number.spelling, false);
    if (const auto text = plain_text(number.value)) trie.add(*text, true);
    if (number.value.is_zero()) trie.add("-0", true);
  }
  return trie.build();
}

namespace {

using Spelling = std::vector<ByteSet>;

// The escapes of two bytes: the letter, and the character that it means.
constexpr std::array<std::pair<char, char32_t>, 8> letter_escapes{
    {{'"', '"'}, {'\\', '\\'}, {'/', '/'}, {'b', '\b'}, {'f', '\f'}, {'n', '\n'}, {'r', '\r'}, {'t', '\t'}}};

ByteSet byte(char c) {
  return ByteSet().set(static_cast<unsigned char>(c));
}

ByteSet hexadecimal_digits(unsigned first, unsigned last) {
  ByteSet set;
  for (unsigned digit = first; digit <= last; ++digit) {
    set.set(static_cast<unsigned char>("0123456789abcdef"[digit]));
    set.set(static_cast<unsigned char>("0123456789ABCDEF"[digit]));
  }
  return set;
}

// The numbers of a range in `digits` hexadecimal digits.
void add_hexadecimal(std::uint32_t first, std::uint32_t last, int digits, const Spelling& before,
                     std::vector<Spelling>& result) {
  if (digits == 0) {
    result.push_back(before);
    return;
  }
  const int shift = 4 * (digits - 1);
  const std::uint32_t rest = (std::uint32_t{1} << shift) - 1;
  const std::uint32_t low = first >> shift, high = last >> shift;
  const auto with = [&](std::uint32_t from, std::uint32_t to, std::uint32_t begin, std::uint32_t end) {
    Spelling next = before;
    next.push_back(hexadecimal_digits(from, to));
    add_hexadecimal(begin, end, digits - 1, next, result);
  };
  if (low == high) return with(low, low, first & rest, last & rest);
  std::uint32_t from = low, to = high;
  if ((first & rest) != 0) {
    with(low, low, first & rest, rest);
    ++from;
  }
  if ((last & rest) != rest) --to;
  if (from <= to) with(from, to, 0, rest);
  if ((last & rest) != rest) with(high, high, 0, last & rest);
}

Spelling escape_u(Spelling before) {
  before.push_back(byte('\\'));
  before.push_back(byte('u'));
  return before;
}

void add_pairs(std::uint32_t high_first, std::uint32_t high_last, std::uint32_t low_first, std::uint32_t low_last,
               std::vector<Spelling>& result) {
  std::vector<Spelling> highs;
  add_hexadecimal(0xD800 + high_first, 0xD800 + high_last, 4, escape_u({}), highs);
  for (Spelling& high : highs) {
    add_hexadecimal(0xDC00 + low_first, 0xDC00 + low_last, 4, escape_u(std::move(high)), result);
  }
}

// As \uHHHH, or as two of them beyond U+FFFF.
void add_escapes(char32_t first, char32_t last, std::vector<Spelling>& result) {
  constexpr std::uint32_t all = 0x3FF;
  if (first < 0x10000) add_hexadecimal(first, std::min<char32_t>(last, 0xFFFF), 4, escape_u({}), result);
  if (last < 0x10000) return;
  std::uint32_t from = (first < 0x10000 ? 0x10000 : first) - 0x10000, to = last - 0x10000;
  if (from >> 10 == to >> 10) return add_pairs(from >> 10, from >> 10, from & all, to & all, result);
  std::uint32_t high_first = from >> 10, high_last = to >> 10;
  if ((from & all) != 0) {
    add_pairs(high_first, high_first, from & all, all, result);
    ++high_first;
  }
  const bool partial = (to & all) != all;
  if (high_first + (partial ? 1 : 0) <= high_last) {
    add_pairs(high_first, partial ? high_last - 1 : high_last, 0, all, result);
  }
  if (partial) add_pairs(high_last, high_last, 0, to & all, result);
}

// Reads a code unit as \uHHHH.
std::optional<char32_t> code_unit(std::string_view bytes) {
  return bytes.size() >= 6 && bytes.starts_with("\\u") ? hexadecimal(bytes.substr(2, 4)) : std::nullopt;
}

}  // namespace

SpelledCharacter json_character(std::string_view bytes, bool every_escape) {
  if (bytes.empty() || bytes[0] == '"') return {};
  if (bytes[0] != '\\') {
    const Utf8Char next = first_utf8(bytes);
    if (next.state != Utf8State::complete || next.code_point < ' ') return {};
    return {next.code_point, next.size};
  }
  for (const auto& [letter, character] : letter_escapes) {
    if (bytes.size() < 2 || bytes[1] != letter || (letter == '/' && !every_escape)) continue;
    return {character, 2};
  }
  const auto unit = code_unit(bytes);
  // Without every escape, those of controls that have no letter are left out here, as well as the others below 0x80.
  if (!unit || (!every_escape && *unit < 0x80) || (*unit >= 0xDC00 && *unit < 0xE000)) return {};
  if (*unit < 0xD800 || *unit >= 0xE000) return {*unit, 6};
  const auto low = code_unit(bytes.substr(6));
  if (!low || *low < 0xDC00 || *low >= 0xE000) return {};
  return {0x10000 + ((*unit - 0xD800) << 10) + (*low - 0xDC00), 12};
}

std::vector<std::vector<ByteSet>> json_character_spellings(const CodePoints& set, bool every_escape) {
  const CodePoints needs_escape = CodePoints(0, 0x1F).add('"').add('\\');
  std::vector<Spelling> result = utf8_sequences(set.without(needs_escape));
  ByteSet letters;
  CodePoints rest = every_escape ? set : set.without(CodePoints(needs_escape).add(0x80, last_code_point).complement());
  for (const auto& [letter, character] : letter_escapes) {
    if (!rest.contains(character)) continue;
    letters.set(static_cast<unsigned char>(letter));
    if (!every_escape) rest = rest.without(CodePoints().add(character));
  }
  if (letters.any()) result.push_back({byte('\\'), letters});
  for (const CodePoints::Range& range : rest.ranges()) add_escapes(range.first, range.last, result);
  return result;
}

}  // namespace minimind
