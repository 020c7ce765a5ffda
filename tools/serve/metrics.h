#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "tools/serve/engine_counts.h"

namespace minimind {

// Returns the counts in Prometheus' text format. `answers` are counted by route and status.
std::string metrics_text(const std::map<std::pair<std::string, int>, std::uint64_t>& answers,
                         const EngineCounts& counts);

}  // namespace minimind
