#include "weights/export/hugging_face.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <variant>
#include <vector>

#include "weights/base/error.h"
#include "weights/io/json_fields.h"
#include "weights/model/config_json.h"
#include "weights/model/tensor_names.h"
#include "weights/model/yarn_ramp.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

struct NetworkParts {
  bool gate, any_bias, all_biases;
};

NetworkParts network_parts(const StoredTensors& tensors) {
  const bool gate = some_network_has(tensors, ".gate_proj.bias");
  const bool up = some_network_has(tensors, ".up_proj.bias");
  const bool down = some_network_has(tensors, ".down_proj.bias");
  return {some_network_has(tensors, ".gate_proj.weight"), gate || up || down, gate && up && down};
}

bool has_q_norm(const StoredTensors& tensors) {
  return tensors.contains(layer_tensor(0, "self_attn.q_norm.weight"));
}

bool is_yarn(const Config& config) {
  return config.rope_scaling && config.rope_scaling->kind == RopeScaling::Kind::yarn;
}

// Returns why transformers cannot compute this model, if it cannot.
std::optional<Fact> obstacle(const Config& config, const StoredTensors& tensors) {
  const NetworkParts parts = network_parts(tensors);
  const bool q_norm = has_q_norm(tensors);
  const bool mixture = config.num_experts > 0;
  if (!parts.gate) return Fact("its FFNs have no gate");
  if (mixture && config.n_shared_experts > 0) return Fact("its MoE layers have shared experts");
  if (mixture && !q_norm) return Fact("it is an MoE model without q_norm");
  if (parts.any_bias && (q_norm || !parts.all_biases)) return Fact("its FFNs have biases");
  if (!q_norm && config.hidden_size % config.num_attention_heads != 0) {
    return Fact("its {} heads do not divide its hidden size {}", config.num_attention_heads, config.hidden_size);
  }
  if (is_yarn(config) && !has_usual_yarn_ramp(config)) return Fact("its YaRN ends at another frequency");
  return std::nullopt;
}

std::string_view architecture(std::string_view model_type) {
  if (model_type == "llama") return "LlamaForCausalLM";
  if (model_type == "qwen3") return "Qwen3ForCausalLM";
  if (model_type == "qwen3_moe") return "Qwen3MoeForCausalLM";
  return "MiniMindForCausalLM";
}

std::string_view torch_name(DType dtype) {
  return dtype == DType::f16 ? "float16" : dtype == DType::bf16 ? "bfloat16" : "float32";
}

// transformers requires integers for counts.
Json number(double value) {
  if (value == std::floor(value) && value < 0x1p53) return static_cast<std::uint64_t>(value);
  return value;
}

Json rope_scaling_json(const RopeScaling& scaling) {
  if (scaling.kind == RopeScaling::Kind::linear) return {{"rope_type", "linear"}, {"factor", scaling.factor}};
  return {{"rope_type", "yarn"},
          {"factor", scaling.factor},
          {"original_max_position_embeddings", number(scaling.original_max_position_embeddings)},
          {"beta_fast", scaling.beta_fast},
          {"beta_slow", scaling.beta_slow},
          {"attention_factor", scaling.attention_factor}};
}

// Each key once: config.json and generation_config.json often repeat each other.
Json token_ids(const std::vector<std::int32_t>& ids) {
  std::vector<std::int32_t> once;
  for (const std::int32_t id : ids) {
    if (std::find(once.begin(), once.end(), id) == once.end()) once.push_back(id);
  }
  return once.size() == 1 ? Json(once[0]) : Json(once);
}

// MiniMind's YaRN has a different ramp end, and is off in contexts no longer than the original one.
void check_minimind_yarn(const Config& config) {
  if (!is_yarn(config)) return;
  const bool on =
      static_cast<double>(config.max_position_embeddings) > config.rope_scaling->original_max_position_embeddings;
  if (has_minimind_yarn_ramp(config) && on) return;
  throw Error(
      "the model cannot be written for Hugging Face: no class of transformers computes it, and MiniMind's own computes "
      "another YaRN; convert it to GGUF or .pth, or without RoPE scaling",
      Setting::rope_scaling);
}

// The configs of MiniMind v1 and v2 call the number of experts n_routed_experts.
bool has_routed_experts(const Config& config) {
  return config.family != Family::v3 && config.family != Family::qwen3_moe;
}

void put_hyper_parameters(Json& json, const Config& config) {
  for (const HyperParameter& parameter : hyper_parameters) {
    if (parameter.of_experts && config.num_experts == 0) continue;
    const bool other = parameter.of_experts && !parameter.other_name.empty() && has_routed_experts(config);
    const std::string name(other ? parameter.other_name : parameter.name);
    std::visit([&](const auto& members) { json[name] = config.*members.config; }, parameter.members);
  }
}

void put_minimind_fields(Json& json, const Config& config) {
  json["inference_rope_scaling"] = config.rope_scaling.has_value();
  json["use_moe"] = config.num_experts > 0;
  if (config.num_experts > 0) json["scoring_func"] = "softmax";
}

void put_qwen3_moe_fields(Json& json, const Config& config, const StoredTensors& tensors) {
  std::vector<std::size_t> dense_layers;
  for (std::size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    if (!is_mixture(tensors, layer)) dense_layers.push_back(layer);
  }
  json["norm_topk_prob"] = normalizes_router(config);
  json["decoder_sparse_step"] = 1;
  json["mlp_only_layers"] = dense_layers;
}

}  // namespace

HfModelType hf_model_type(const Config& config, const StoredTensors& tensors) {
  const std::optional<Fact> reason = obstacle(config, tensors);
  if (reason) return {"minimind", reason};
  if (config.num_experts > 0) return {"qwen3_moe", std::nullopt};
  return {has_q_norm(tensors) ? "qwen3" : "llama", std::nullopt};
}

std::string hf_config_json(const Config& config, const StoredTensors& tensors, std::string_view model_type,
                           DType dtype) {
  const bool minimind = model_type == "minimind";
  Json json{{"architectures", Json::array({architecture(model_type)})},
            {"model_type", model_type},
            {"hidden_act", name_of(config.hidden_act)},
            {"rope_scaling", config.rope_scaling ? rope_scaling_json(*config.rope_scaling) : Json()},
            {"attention_bias", false},
            {"use_cache", true},
            {"torch_dtype", torch_name(dtype)}};
  put_hyper_parameters(json, config);
  if (!config.eos_token_id.empty()) json["eos_token_id"] = token_ids(config.eos_token_id);
  if (network_parts(tensors).all_biases) json["mlp_bias"] = true;
  if (minimind) {
    check_minimind_yarn(config);
    put_minimind_fields(json, config);
  }
  if (model_type == "qwen3_moe") put_qwen3_moe_fields(json, config, tensors);
  return dump_json(json, 2) + "\n";
}

}  // namespace minimind
