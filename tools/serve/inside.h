#pragma once

#include <cstddef>

#include "runtime/chat/chat_json.h"
#include "runtime/engine/model.h"
#include "tools/openai/request.h"
#include "tools/openai/text_model.h"

namespace minimind {

// The limits of /v1/inside. A model's weights of attention, of all layers, heads and pairs of tokens, are the answer's
// largest part.
inline constexpr std::size_t most_tokens_inside = 256, most_weights_inside = std::size_t{1} << 20;
inline constexpr std::size_t most_positions_inside = 16, most_parts_inside = 64;

// Answers /v1/inside: how a text comes about in the model. `weights` are those that the model had when the request was
// taken, which may be replaced meanwhile. Runs a pass of its own on this thread. `body` has
//   prompt or messages    as in completions, with what changes the prompt of a chat
//   positions             tokens of the text to look at; left out: the last one
//   candidates, neurons   how many tokens may follow, and neurons of each layer
//   without               parts that are switched off, {"layer", "head"}, {"layer", "neuron"} or {"layer", "expert"}
//   temperature, repeat_penalty, and the parameters that drop tokens
// Throws RequestError and Cancelled.
ChatJson inside_json(const TextModel& model, const Model& weights, const ChatJson& body, RequestDefaults defaults);

}  // namespace minimind
