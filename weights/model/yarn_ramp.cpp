#include "weights/model/yarn_ramp.h"

namespace minimind {
namespace {

YarnRamp own_ramp(const Config& config) {
  return yarn_ramp(config, config.rope_scaling->ramp_end);
}

}  // namespace

// If the ramp's end is before its start, transformers' ramp falls.
bool has_usual_yarn_ramp(const Config& config) {
  const YarnRamp ramp = own_ramp(config);
  return ramp.low <= ramp.high && ramp.high == yarn_ramp(config, RopeScaling::RampEnd::head_dim).high;
}

bool has_minimind_yarn_ramp(const Config& config) {
  return own_ramp(config).high == yarn_ramp(config, RopeScaling::RampEnd::half_head_dim).high;
}

}  // namespace minimind
