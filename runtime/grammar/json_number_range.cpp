#include "runtime/grammar/json_number_range.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace minimind {
namespace {

using Sequence = GrammarBuilder::Sequence;
using Wide = __int128;
using Limits = std::numeric_limits<std::int64_t>;

constexpr std::int64_t fifteen_digits = 999'999'999'999'999;
constexpr std::size_t most_decimals = 6;

// Digits with a point before the last `decimals` of them.
class DigitRanges {
 public:
  DigitRanges(GrammarBuilder& builder, std::size_t decimals) : builder_(builder), decimals_(decimals) {}

  // What lies between two numbers of equally many digits.
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
  // A digit with `left` digits from it on, and what follows it.
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

// The largest integer that is not above value * 10^shift, and whether it is equal. Beyond 10^30, which no text reaches,
// some such number of the same sign.
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

// What a bound allows of numbers with so many decimals, without their point.
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

}  // namespace minimind
