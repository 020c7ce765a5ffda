#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/grammar/builder.h"

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

}  // namespace minimind
