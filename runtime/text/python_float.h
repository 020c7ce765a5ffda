#pragma once

#include <string>

namespace minimind {

// Returns a float as Python's repr() writes it: the shortest digits that read back as `number`.
std::string python_float(double number);

}  // namespace minimind
