#pragma once

#include "runtime/engine/load_model.h"
#include "tests/support/golden.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {

inline Model load_golden_model(const GoldenCase& golden, WeightType type = std::nullopt,
                               Compute compute = Compute::f32) {
  OpenOptions options;
  if (golden.yarn) options.overrides.yarn = true;
  if (golden.lora_path) options.loras.push_back({*golden.lora_path, 1});
  return load_model(open_checkpoint(golden.model_path, options), type, 1, compute);
}

}  // namespace minimind
