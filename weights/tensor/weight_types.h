#pragma once

#include <string>
#include <vector>

#include "weights/tensor/dtype.h"

namespace minimind {

// Returns true for the types that matrices can be converted to: the float types and those that quantize writes.
bool is_weight_type(DType type);

// Returns the names of all weight types, in the order of DType.
std::vector<std::string> weight_type_names();

// Parses one of them. Throws UsageError for anything else.
DType parse_weight_type(const std::string& name);

}  // namespace minimind
