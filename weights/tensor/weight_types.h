#pragma once

#include <string>
#include <vector>

#include "weights/tensor/dtype.h"

namespace minimind {

enum class WeightsAre { in_file, in_memory };

// Returns true for the types that matrices can be converted to: the float types and those that quantize writes, and in
// memory also q8_r.
bool is_weight_type(DType type, WeightsAre where = WeightsAre::in_file);

// Returns the names of all of them, in the order of DType.
std::vector<std::string> weight_type_names(WeightsAre where = WeightsAre::in_file);

// Parses one of them. Throws UsageError for anything else.
DType parse_weight_type(const std::string& name, WeightsAre where = WeightsAre::in_file);

}  // namespace minimind
