#pragma once

#include <limits>

namespace minimind {

// Of f32: twice the largest relative error of one rounding.
inline constexpr double epsilon = std::numeric_limits<float>::epsilon();

}  // namespace minimind
