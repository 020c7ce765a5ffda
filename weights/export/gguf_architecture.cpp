#include "weights/export/gguf_architecture.h"

#include <fmt/core.h>

#include <optional>

#include "weights/gguf/names.h"
#include "weights/model/tensor_names.h"
#include "weights/model/yarn_ramp.h"

namespace minimind {
namespace {

bool is_swiglu(const Config& config, const StoredTensors& tensors) {
  return config.hidden_act == HiddenAct::silu && some_network_has(tensors, ".gate_proj.weight");
}

bool has_biases(const StoredTensors& tensors) {
  return some_network_has(tensors, ".gate_proj.bias") || some_network_has(tensors, ".up_proj.bias") ||
         some_network_has(tensors, ".down_proj.bias");
}

std::size_t count_mixtures(const Config& config, const StoredTensors& tensors) {
  std::size_t count = 0;
  for (std::size_t layer = 0; layer < config.num_hidden_layers; ++layer) count += is_mixture(tensors, layer) ? 1 : 0;
  return count;
}

// Whether llama.cpp's YaRN gives these frequencies: its betas are fixed for these architectures.
std::optional<std::string> why_not_yarn(const Config& config) {
  if (!config.rope_scaling || config.rope_scaling->kind == RopeScaling::Kind::linear) return std::nullopt;
  const RopeScaling& yarn = *config.rope_scaling;
  if (yarn.beta_fast != 32 || yarn.beta_slow != 1) return "its YaRN has other betas than llama.cpp's 32 and 1";
  if (!has_usual_yarn_ramp(config)) {
    return "MiniMind clamps the ramp of its YaRN, llama.cpp does not";
  }
  return std::nullopt;
}

constexpr auto unnormalised = "its router does not divide the weights of the chosen experts by their sum, {} does";

GgufArchitecture mixture_architecture(const Config& config) {
  const bool shared = config.n_shared_experts > 0;
  if (has_q_norm(config.family)) {
    if (shared) return {gguf_minimind, "it has q_norm and shared experts"};
    if (normalizes_router(config)) return {gguf_qwen3moe, ""};
    return {gguf_minimind, fmt::format(unnormalised, gguf_qwen3moe)};
  }
  if (shared) return {gguf_bailingmoe, ""};
  if (normalizes_router(config)) return {gguf_llama, ""};
  return {gguf_minimind, fmt::format(unnormalised, gguf_llama)};
}

}  // namespace

GgufArchitecture gguf_architecture(const Config& config, const StoredTensors& tensors) {
  if (!is_swiglu(config, tensors)) return {gguf_minimind, "its feed-forward networks are not SwiGLU"};
  if (const auto why = why_not_yarn(config)) return {gguf_minimind, *why};
  const std::size_t mixtures = count_mixtures(config, tensors);
  const bool q_norm = has_q_norm(config.family);
  if (has_biases(tensors) && (q_norm || mixtures > 0)) {
    return {gguf_minimind, "its feed-forward networks have biases, which only the dense llama has"};
  }
  if (mixtures == 0) return {q_norm ? gguf_qwen3 : gguf_llama, ""};
  if (mixtures < config.num_hidden_layers) return {gguf_minimind, "it has dense layers among mixtures of experts"};
  return mixture_architecture(config);
}

}  // namespace minimind
