#include "tools/options/config_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tools/terminal/language.h"
#include "weights/io/json_fields.h"
#include "weights/model/config_json.h"
#include "weights/tensor/shape.h"

namespace minimind {
namespace {

using Json = nlohmann::ordered_json;

std::string_view option_of_field(std::string_view field) {
  if (field == "num_attention_heads") return "--heads";
  if (field == "num_key_value_heads") return "--kv-heads";
  if (field == "num_experts_per_tok") return "--experts-per-token";
  return "--rope-scaling";
}

Json rope_scaling_value(const std::optional<RopeScaling>& scaling) {
  if (!scaling) return nullptr;
  if (scaling->kind == RopeScaling::Kind::linear) return {{"type", "linear"}, {"factor", scaling->factor}};
  return {{"type", "yarn"},
          {"factor", scaling->factor},
          {"original_max_position_embeddings", scaling->original_max_position_embeddings},
          {"beta_fast", scaling->beta_fast},
          {"beta_slow", scaling->beta_slow},
          {"attention_factor", scaling->attention_factor}};
}

// Returns true for an assumed field that changes the logits of a model that was trained with another value. Every
// tokenizer of MiniMind has the same eos_token_id, and positions past the assumed ones are computed, too.
bool changes_logits(std::string_view field) {
  return field != "eos_token_id" && field != "max_position_embeddings";
}

}  // namespace

Fact source_of(std::string_view field, const ConfigSource& source) {
  switch (source.kind) {
    case ConfigSource::Kind::caller:
      return Fact("{}", option_of_field(field));
    case ConfigSource::Kind::assumed:
      return Fact("assumed: {}", source.detail);
    default:
      return source.detail;
  }
}

std::vector<ConfigField> config_fields(const Checkpoint& checkpoint) {
  const Config& config = checkpoint.config;
  std::vector<ConfigField> fields;
  const auto add = [&](std::string_view name, Json value) {
    const auto source = checkpoint.sources.find(std::string(name));
    fields.push_back({std::string(name), std::move(value),
                      source == checkpoint.sources.end() ? Fact() : source_of(name, source->second)});
  };
  const auto add_all = [&](bool of_experts) {
    for (const HyperParameter& parameter : hyper_parameters) {
      if (parameter.of_experts != of_experts) continue;
      std::visit([&](const auto& members) { add(parameter.name, config.*members.config); }, parameter.members);
    }
  };
  add("family", name_of(config.family));
  add_all(false);
  add("hidden_act", name_of(config.hidden_act));
  add("is_causal", true);
  add("rope_scaling", rope_scaling_value(config.rope_scaling));
  add("eos_token_id", config.eos_token_id);
  if (config.num_experts > 0) add_all(true);
  return fields;
}

std::string assumptions(const Checkpoint& checkpoint) {
  std::map<std::string, std::string> by_reason;
  for (const ConfigField& field : config_fields(checkpoint)) {
    const auto source = checkpoint.sources.find(field.name);
    const bool assumed = source != checkpoint.sources.end() && source->second.kind == ConfigSource::Kind::assumed;
    if (!assumed || !changes_logits(field.name)) continue;
    std::string& fields = by_reason[localized(source->second.detail)];
    fields += fmt::format("{}{} {}", fields.empty() ? "" : ", ", field.name,
                          field.value.is_string() ? field.value.get<std::string>() : dump_json(field.value));
  }
  std::string text;
  for (const auto& [reason, fields] : by_reason)
    text += (text.empty() ? "" : "; ") + localized("{}: {}", reason, fields);
  return text;
}

std::string stored_types(const Checkpoint& checkpoint) {
  std::map<std::string_view, std::size_t> counts;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    counts[name_of(tensor.dtype)] += element_count(tensor.shape).value();
  }
  std::vector<std::pair<std::string_view, std::size_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [type, count] : sorted) text += (text.empty() ? "" : ", ") + std::string(type);
  return text;
}

}  // namespace minimind
