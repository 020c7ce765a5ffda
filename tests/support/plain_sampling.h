#pragma once

#include "runtime/generate/sampler.h"

namespace minimind {

// Nothing but temperature 1.
inline SamplingOptions plain_sampling() {
  SamplingOptions options;
  options.temperature = 1;
  options.top_k = 0;
  options.top_p = 1;
  return options;
}

}  // namespace minimind
