#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

namespace minimind {

// Returns count / seconds; 0 if seconds is 0.
double per_second(std::size_t count, double seconds);

// Returns the object for drafts in --json: {"drafted", "accepted", "acceptance_rate"}; the rate is null if nothing was
// drafted.
nlohmann::ordered_json speculation_json(std::size_t drafted, std::size_t accepted);

}  // namespace minimind
