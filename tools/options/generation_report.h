#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

namespace minimind {

// 0 where no time went by.
double per_second(std::size_t count, double seconds);

// What --json says of drafts: {"drafted", "accepted", "acceptance_rate"}; the rate is null where nothing was drafted.
nlohmann::ordered_json speculation_json(std::size_t drafted, std::size_t accepted);

}  // namespace minimind
