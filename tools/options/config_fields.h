#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {

// Returns the source of a Config field's value: "rows of embed_tokens", "config.json", "--heads", "assumed: what v2
// uses".
Fact source_of(std::string_view field, const ConfigSource& source);

// One hyper-parameter, for people and programs.
struct ConfigField {
  std::string name;  // its Hugging Face name
  nlohmann::ordered_json value;
  Fact source;  // see source_of()
};

// Returns all fields that apply to this checkpoint: those of experts only if it has some.
std::vector<ConfigField> config_fields(const Checkpoint& checkpoint);

// Returns the assumed fields that may differ in a model of the same tensors, such as "what v2 uses: rope_theta 1000000,
// rms_norm_eps 1e-05". Empty if there are none.
std::string assumptions(const Checkpoint& checkpoint);

// Returns the stored types, such as "f16" or "f16, f32", the type of most values first.
std::string stored_types(const Checkpoint& checkpoint);

}  // namespace minimind
