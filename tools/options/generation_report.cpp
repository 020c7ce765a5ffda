#include "tools/options/generation_report.h"

#include <nlohmann/json.hpp>

namespace minimind {

double per_second(std::size_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

nlohmann::ordered_json speculation_json(std::size_t drafted, std::size_t accepted) {
  nlohmann::ordered_json rate;
  if (drafted > 0) rate = static_cast<double>(accepted) / static_cast<double>(drafted);
  return {{"drafted", drafted}, {"accepted", accepted}, {"acceptance_rate", rate}};
}

}  // namespace minimind
