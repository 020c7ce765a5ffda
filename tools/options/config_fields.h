#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weights/checkpoint/checkpoint.h"

namespace minimind {

// One hyper-parameter for people and machines to read.
struct ConfigField {
  std::string name;  // its Hugging Face name
  nlohmann::ordered_json value;
  std::string source;  // where it came from, in words
};

// All that mean something for this checkpoint: those of experts only where it has some.
std::vector<ConfigField> config_fields(const Checkpoint& checkpoint);

// "what v2 uses: num_attention_heads 8, num_key_value_heads 2": what neither the file nor the caller said and what may
// be otherwise in a model of the same shapes. Empty when there is no such thing.
std::string assumptions(const Checkpoint& checkpoint);

// What is to be said of each LoRA that was merged, a line each.
std::vector<std::string> lora_notes(const Checkpoint& checkpoint);

// The number of weights.
std::size_t parameter_count(const Checkpoint& checkpoint);

// "f16", or "f16, f32" when tensors differ; the type of most numbers first.
std::string stored_types(const Checkpoint& checkpoint);

}  // namespace minimind
