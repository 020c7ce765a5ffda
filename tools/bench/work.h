#pragma once

#include <cstddef>

#include "runtime/engine/kv_cache.h"
#include "runtime/engine/model.h"

namespace minimind {

// The bytes of all weights of a model, as held.
std::size_t weight_bytes(const Model& model);

// Those that decoding one token reads: of a mixture's experts only as many as a token goes through, of the embedding
// one row, if it is not the output as well.
std::size_t weight_bytes_per_token(const Model& model);

// The mean over `tokens` tokens decoded behind `depth` others of the bytes of keys and values read and written.
double cache_bytes_per_token(const Config& config, KvType type, std::size_t depth, std::size_t tokens);

// Whether matrices of its layers are multiplied as 8-bit integers.
bool multiplies_int8(const Model& model);

// Of a prompt of so many tokens: a multiplication and an addition for each weight of the layers and each token, and for
// causal attention. Only the last token's logits are wanted, so that the last layer's weights but for those of keys and
// values count once, as the output's do.
double prompt_flops(const Model& model, std::size_t tokens);

}  // namespace minimind
