#include "weights/model/config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace minimind {

YarnRamp yarn_ramp(const Config& config, RopeScaling::RampEnd end) {
  const RopeScaling& yarn = *config.rope_scaling;
  const double d = static_cast<double>(config.head_dim);
  const auto pair_that_turns = [&](double times) {
    return d * std::log(yarn.original_max_position_embeddings / (times * 2 * std::numbers::pi)) /
           (2 * std::log(config.rope_theta));
  };
  const double last = end == RopeScaling::RampEnd::half_head_dim ? d / 2 - 1 : d - 1;
  return {std::max(std::floor(pair_that_turns(yarn.beta_fast)), 0.0),
          std::min(std::ceil(pair_that_turns(yarn.beta_slow)), last)};
}

}  // namespace minimind
