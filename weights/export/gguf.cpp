#include "weights/export/gguf.h"

#include <fmt/core.h>

#include <utility>

#include "weights/base/error.h"
#include "weights/gguf/settings.h"
#include "weights/model/config_json.h"
#include "weights/model/tensor_names.h"
#include "weights/model/yarn_ramp.h"
#include "weights/tensor/tensor_rows.h"

namespace minimind {
namespace {

struct GgufArchitecture {
  std::string_view name;                       // an architecture in weights/gguf/settings.h
  std::optional<Fact> only_ours_because = {};  // if it is our own architecture
};

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

// Returns why llama.cpp's YaRN computes other frequencies, if it does. Its betas are fixed for these architectures.
std::optional<Fact> why_not_yarn(const Config& config) {
  if (!config.rope_scaling || config.rope_scaling->kind == RopeScaling::Kind::linear) return std::nullopt;
  const RopeScaling& yarn = *config.rope_scaling;
  if (yarn.beta_fast != 32 || yarn.beta_slow != 1) return Fact("its YaRN has other betas than llama.cpp's 32 and 1");
  if (!has_usual_yarn_ramp(config)) {
    return Fact("MiniMind clamps the ramp of its YaRN, llama.cpp does not");
  }
  return std::nullopt;
}

Fact unnormalised(std::string_view architecture) {
  return Fact("its router does not divide the weights of the chosen experts by their sum, {} does", architecture);
}

GgufArchitecture mixture_architecture(const Config& config) {
  const bool shared = config.n_shared_experts > 0;
  if (has_q_norm(config.family)) {
    if (shared) return {gguf_minimind, Fact("it has q_norm and shared experts")};
    if (normalizes_router(config)) return {gguf_qwen3moe};
    return {gguf_minimind, unnormalised(gguf_qwen3moe)};
  }
  if (shared) return {gguf_bailingmoe};
  if (normalizes_router(config)) return {gguf_llama};
  return {gguf_minimind, unnormalised(gguf_llama)};
}

// Returns the architecture of llama.cpp that computes exactly this model, or our own; see gguf.h.
GgufArchitecture gguf_architecture(const Config& config, const StoredTensors& tensors) {
  if (!is_swiglu(config, tensors)) return {gguf_minimind, Fact("its FFNs are not SwiGLU")};
  if (const auto why = why_not_yarn(config)) return {gguf_minimind, why};
  const std::size_t mixtures = count_mixtures(config, tensors);
  const bool q_norm = has_q_norm(config.family);
  if (has_biases(tensors) && (q_norm || mixtures > 0)) {
    return {gguf_minimind, Fact("its FFNs have biases, which only the dense llama has")};
  }
  if (mixtures == 0) return {q_norm ? gguf_qwen3 : gguf_llama};
  if (mixtures < config.num_hidden_layers) return {gguf_minimind, Fact("it has both dense and MoE layers")};
  return mixture_architecture(config);
}

// Collects the file's tensors in the order of llama.cpp's converter.
class TensorList {
 public:
  TensorList(const Checkpoint& checkpoint, std::string_view architecture, const WantedTypes& types, std::size_t threads)
      : checkpoint_(checkpoint),
        config_(checkpoint.config),
        architecture_(architecture),
        types_(types),
        chooser_(true, threads) {}

  void run() {
    add_embedding("token_embd.weight", "model.embed_tokens.weight");
    for (std::size_t layer = 0; layer < config_.num_hidden_layers; ++layer) add_layer(layer);
    add_vector("output_norm.weight", {"model.norm.weight"});
    if (!config_.tie_word_embeddings) add_embedding("output.weight", "lm_head.weight");
    if (config_.tie_word_embeddings && architecture_ == gguf_bailingmoe) {
      add_embedding("output.weight", "model.embed_tokens.weight");
    }
  }

  std::vector<OutputTensor> tensors;
  std::vector<Fact> exceptions() const { return chooser_.exceptions(); }

 private:
  const StoredTensor* find(const std::string& canonical) const {
    const auto entry = checkpoint_.tensors.find(canonical);
    return entry == checkpoint_.tensors.end() ? nullptr : &entry->second;
  }

  // Concatenates the rows of the sources; with `stacked`, as matrices of a stack.
  OutputTensor joined(std::string name, const std::vector<std::string>& canonical, bool stacked) const {
    OutputTensor tensor{.name = std::move(name), .dtype = DType::f32, .shape = {}, .sources = {}, .row_order = {}};
    for (const std::string& source : canonical) tensor.sources.push_back(find(source));
    tensor.shape = tensor.sources.front()->shape;
    if (stacked) {
      tensor.shape.insert(tensor.shape.begin(), tensor.sources.size());
    } else if (tensor.shape.size() == 2) {
      tensor.shape[0] *= tensor.sources.size();
    }
    return tensor;
  }

  void add_matrix(std::string name, const std::vector<std::string>& canonical, bool stacked = false) {
    add_chosen(joined(std::move(name), canonical, stacked), types_.matrices);
  }

  void add_embedding(std::string name, const std::string& canonical) {
    add_chosen(joined(std::move(name), {canonical}, false), types_.embedding ? types_.embedding : types_.matrices);
  }

  void add_chosen(OutputTensor tensor, std::optional<DType> wanted) {
    const auto named = types_.by_name.find(tensor.name);
    chooser_.choose(tensor, named == types_.by_name.end() ? wanted : named->second);
    tensors.push_back(std::move(tensor));
  }

  void add_vector(std::string name, const std::vector<std::string>& canonical, bool stacked = false) {
    tensors.push_back(joined(std::move(name), canonical, stacked));
  }

  void add_layer(std::size_t layer) {
    const std::string prefix = fmt::format("{}{}.", gguf_layer_prefix, layer);
    for (const auto& [gguf, canonical] : gguf_layer_names) {
      const std::string source = layer_tensor(layer, canonical);
      const StoredTensor* stored = find(source);
      if (!stored) continue;
      const bool router = canonical == "mlp.gate.weight";
      if (router || stored->shape.size() == 1) {
        add_vector(prefix + std::string(gguf), {source});
      } else {
        add_matrix(prefix + std::string(gguf), {source});
        if (canonical == "self_attn.q_proj.weight" || canonical == "self_attn.k_proj.weight") permute(tensors.back());
      }
    }
    // To look for each expert in each dense layer would take quadratic time.
    if (!is_mixture(checkpoint_.tensors, layer)) return;
    add_experts(prefix, gguf_routed_experts, layer_tensor(layer, "mlp.experts."), config_.num_experts);
    add_shared_experts(prefix, layer_tensor(layer, "mlp.shared_experts."));
  }

  // Permutes the rows of v2's and Llama's halves layout into the adjacent pairs that llama.cpp computes.
  void permute(OutputTensor& tensor) const {
    if (has_q_norm(config_.family) || rope_layout(config_.family) == RopeLayout::adjacent_pairs) return;
    tensor.row_order = halves_to_adjacent_pairs(tensor.shape[0], config_.head_dim);
  }

  // Names this part of each of `count` experts; empty if this layer has no experts.
  std::vector<std::string> parts_of(const std::string& experts, std::size_t count, const std::string& part) const {
    std::vector<std::string> names;
    for (std::size_t expert = 0; expert < count; ++expert) {
      std::string name = fmt::format("{}{}.{}", experts, expert, part);
      if (find(name)) names.push_back(std::move(name));
    }
    return names;
  }

  void add_experts(const std::string& prefix, std::string_view kind, const std::string& experts, std::size_t count) {
    for (const std::string_view part : gguf_network_parts) {
      const auto matrices = parts_of(experts, count, fmt::format("{}_proj.weight", part));
      if (!matrices.empty()) add_matrix(fmt::format("{}ffn_{}{}weight", prefix, part, kind), matrices, true);
      const auto biases = parts_of(experts, count, fmt::format("{}_proj.bias", part));
      if (!biases.empty()) add_vector(fmt::format("{}ffn_{}{}bias", prefix, part, kind), biases, true);
    }
  }

  // Merges several FFNs into one wider FFN with the same sum: concatenates rows of gate and up, and columns of down.
  void add_shared_experts(const std::string& prefix, const std::string& experts) {
    if (architecture_ != gguf_bailingmoe) {
      add_experts(prefix, gguf_shared_experts, experts, config_.n_shared_experts);
      return;
    }
    for (const std::string_view part : gguf_network_parts) {
      const auto matrices = parts_of(experts, config_.n_shared_experts, fmt::format("{}_proj.weight", part));
      OutputTensor tensor = joined(fmt::format("{}ffn_{}{}weight", prefix, part, gguf_shared_network), matrices, false);
      if (part == "down") {
        tensor.join = OutputTensor::Join::columns;
        tensor.shape = {config_.hidden_size, config_.moe_intermediate_size * matrices.size()};
      }
      add_chosen(std::move(tensor), types_.matrices);
    }
  }

  const Checkpoint& checkpoint_;
  const Config& config_;
  std::string_view architecture_;
  WantedTypes types_;
  TypeChooser chooser_;
};

class MetadataWriter {
 public:
  MetadataWriter(const Checkpoint& checkpoint, std::string_view architecture)
      : checkpoint_(checkpoint), config_(checkpoint.config), architecture_(architecture) {}

  GgufMetadata run(const std::string& name, const std::vector<OutputTensor>& tensors) {
    metadata_.set_string("general.architecture", std::string(architecture_));
    metadata_.set_string("general.type", "model");
    metadata_.set_string("general.name", name);
    const auto file_type = row_of(most_common_type(tensors)).gguf_file_type;
    if (file_type) metadata_.set_u32("general.file_type", *file_type);
    constexpr std::uint32_t quantization_version = 2;
    for (const OutputTensor& tensor : tensors) {
      if (is_block_type(tensor.dtype)) metadata_.set_u32("general.quantization_version", quantization_version);
    }
    dense_parameters();
    rope_scaling();
    if (config_.num_experts > 0) experts();
    ours();
    return std::move(metadata_);
  }

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }

  void set(std::string_view name, std::size_t value) {
    metadata_.set_u32(key(name), static_cast<std::uint32_t>(value));
  }

  void set(std::string_view name, double value) { metadata_.set_f32(key(name), static_cast<float>(value)); }

  void set(std::string_view name, bool value) { metadata_.set_bool(key(name), value); }

  void set(const HyperParameter& parameter) {
    if (parameter.gguf_key.empty()) return;
    std::visit([&](const auto& members) { set(parameter.gguf_key, config_.*members.config); }, parameter.members);
  }

  void dense_parameters() {
    for (const HyperParameter& parameter : hyper_parameters) {
      if (parameter.of_experts) continue;
      set(parameter);
      if (parameter.name == "head_dim") set("attention.value_length", config_.head_dim);
      if (parameter.name == "rms_norm_eps") set("rope.dimension_count", config_.head_dim);
    }
  }

  void rope_scaling() {
    if (!config_.rope_scaling) return;
    const RopeScaling& scaling = *config_.rope_scaling;
    const bool linear = scaling.kind == RopeScaling::Kind::linear;
    metadata_.set_string(key("rope.scaling.type"), linear ? "linear" : "yarn");
    set("rope.scaling.factor", scaling.factor);
    if (linear) return;
    const double original = scaling.original_max_position_embeddings;
    if (!(original >= 1) || original > 0x1p31 ||
        original != static_cast<double>(static_cast<std::uint32_t>(original))) {
      throw Error(fmt::format("{}: original_max_position_embeddings is {}, expected a whole number, as GGUF requires",
                              checkpoint_.path, original));
    }
    set("rope.scaling.original_context_length", static_cast<std::size_t>(original));
    set("rope.scaling.attn_factor", gguf_attention_factor(scaling.attention_factor, scaling.factor));
    set("rope.scaling.yarn_beta_fast", scaling.beta_fast);
    set("rope.scaling.yarn_beta_slow", scaling.beta_slow);
    const bool half = scaling.ramp_end == RopeScaling::RampEnd::half_head_dim;
    metadata_.set_string(std::string(gguf_ramp_end), std::string(half ? gguf_half_head_dim : gguf_head_dim));
  }

  void experts() {
    for (const HyperParameter& parameter : hyper_parameters) {
      if (parameter.of_experts) set(parameter);
    }
    metadata_.set_bool(key("expert_weights_norm"), normalizes_router(config_));
    if (config_.norm_topk_prob != normalizes_router(config_)) {
      metadata_.set_bool(std::string(gguf_norm_topk_prob), config_.norm_topk_prob);
    }
  }

  void ours() {
    metadata_.set_string(std::string(gguf_family), std::string(name_of(config_.family)));
    if (architecture_ == gguf_minimind) {
      metadata_.set_string(std::string(gguf_hidden_act), std::string(name_of(config_.hidden_act)));
    }
    const bool known = checkpoint_.sources.at("eos_token_id").kind != ConfigSource::Kind::assumed;
    if (known) metadata_.set_i32s(std::string(gguf_eos_token_ids), config_.eos_token_id);
    if (const auto type = vector_type(); type && *type != DType::f32) {
      metadata_.set_string(std::string(gguf_vector_type), std::string(name_of(*type)));
    }
  }

  // The original type of norms, routers and biases, which a GGUF stores as f32; std::nullopt if their types differ.
  std::optional<DType> vector_type() const {
    if (checkpoint_.vector_type) return checkpoint_.vector_type;
    std::optional<DType> type;
    for (const auto& [name, tensor] : checkpoint_.tensors) {
      if (tensor.shape.size() != 1 && !name.ends_with(".mlp.gate.weight")) continue;
      if (type && *type != tensor.dtype) return std::nullopt;
      type = tensor.dtype;
    }
    return type;
  }

  const Checkpoint& checkpoint_;
  const Config& config_;
  std::string_view architecture_;
  GgufMetadata metadata_;
};

}  // namespace

GgufExport export_gguf(const Checkpoint& checkpoint, const WantedTypes& types, const std::string& name,
                       std::size_t threads) {
  const GgufArchitecture architecture = gguf_architecture(checkpoint.config, checkpoint.tensors);
  TensorList list(checkpoint, architecture.name, types, threads);
  list.run();
  GgufMetadata metadata = MetadataWriter(checkpoint, architecture.name).run(name, list.tensors);
  return {.architecture = std::string(architecture.name),
          .only_ours_because = architecture.only_ours_because,
          .metadata = std::move(metadata),
          .tensors = std::move(list.tensors),
          .exceptions = list.exceptions()};
}

}  // namespace minimind
