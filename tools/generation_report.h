#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

namespace minimind {

// 0 where no time went by.
double per_second(std::size_t count, double seconds);

// How many batches of one decoding ran: the first generated token comes out of the prompt's logits.
std::size_t decoded_tokens(std::size_t generated);

// What --json says of drafts: {"drafted", "accepted", "acceptance_rate"}; the rate is null where nothing was drafted.
nlohmann::ordered_json speculation_json(std::size_t drafted, std::size_t accepted);

}  // namespace minimind
