#include "runtime/generate/sampling_off.h"

namespace minimind {

SamplingOptions sampling_off() {
  GenerationParameters parameters;
  for (const GenerationParameter& parameter : generation_parameters) {
    if (parameter.is_number()) parameter.set(parameters, parameter.off);
  }
  return parameters.sampling;
}

}  // namespace minimind
