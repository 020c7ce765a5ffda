#include "weights/tensor/weight_types.h"

#include <fmt/core.h>

#include "weights/io/error.h"
#include "weights/io/quote.h"
#include "weights/io/suggestion.h"

namespace minimind {

std::vector<std::string> weight_type_names() {
  std::vector<std::string> names;
  for (const DTypeRow& row : dtype_rows) {
    if (row.is_weight_type) names.emplace_back(row.name);
  }
  return names;
}

DType parse_weight_type(const std::string& name) {
  for (const DTypeRow& row : dtype_rows) {
    if (row.is_weight_type && row.name == name) return row.type;
  }
  throw UsageError(fmt::format("the weight type is {}, expected {}", quote(name), alternatives(weight_type_names())));
}

}  // namespace minimind
