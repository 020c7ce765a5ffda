#include "weights/export/gguf.h"

#include <fmt/core.h>

#include <array>
#include <utility>

#include "weights/export/gguf_architecture.h"
#include "weights/gguf/names.h"
#include "weights/gguf/settings.h"
#include "weights/io/error.h"
#include "weights/model/tensor_names.h"
#include "weights/tensor/choose_type.h"
#include "weights/tensor/tensor_rows.h"

namespace minimind {
namespace {

// Collects the tensors of the file in the order in which llama.cpp's converter writes them.
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
  std::vector<std::string> exceptions() const { return chooser_.exceptions(); }

 private:
  const StoredTensor* find(const std::string& canonical) const {
    const auto entry = checkpoint_.tensors.find(canonical);
    return entry == checkpoint_.tensors.end() ? nullptr : &entry->second;
  }

  // Sources below each other; with `stacked`, as matrices of a stack.
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
    chooser_.choose(tensor, wanted);
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
    add_experts(prefix, gguf_routed_experts, layer_tensor(layer, "mlp.experts."), config_.num_experts);
    add_shared_experts(prefix, layer_tensor(layer, "mlp.shared_experts."));
  }

  // The halves layout of v2 and Llama as the adjacent pairs that llama.cpp computes.
  void permute(OutputTensor& tensor) const {
    if (has_q_norm(config_.family) || rope_layout(config_.family) == RopeLayout::adjacent_pairs) return;
    tensor.row_order = halves_to_adjacent_pairs(tensor.shape[0], config_.head_dim);
  }

  // The same part of each of `count` experts, or nothing when this layer has none.
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

  // One wider network adds what several do: the rows of gate and up below each other, the columns of down side by side.
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

// llama.cpp's number for what most of the matrices are.
std::uint32_t file_type(const std::vector<OutputTensor>& tensors) {
  static constexpr std::array<std::pair<DType, std::uint32_t>, 25> numbers{{
      {DType::f32, 0},      {DType::f16, 1},    {DType::q4_0, 2},   {DType::q4_1, 3},     {DType::q8_0, 7},
      {DType::q5_0, 8},     {DType::q5_1, 9},   {DType::q4_k, 15},  {DType::q5_k, 17},    {DType::q6_k, 18},
      {DType::iq4_nl, 25},  {DType::q2_k, 10},  {DType::q3_k, 12},  {DType::iq2_xxs, 19}, {DType::iq2_xs, 20},
      {DType::iq3_xxs, 23}, {DType::iq1_s, 24}, {DType::iq3_s, 26}, {DType::iq2_s, 28},   {DType::iq4_xs, 30},
      {DType::iq1_m, 31},   {DType::tq1_0, 36}, {DType::tq2_0, 37}, {DType::mxfp4, 38},   {DType::nvfp4, 39},
  }};
  const DType most = most_common_type(tensors);
  for (const auto& [type, number] : numbers) {
    if (type == most) return number;
  }
  constexpr std::uint32_t mostly_bf16 = 32;
  return mostly_bf16;
}

class MetadataWriter {
 public:
  MetadataWriter(const Checkpoint& checkpoint, std::string_view architecture)
      : checkpoint_(checkpoint), config_(checkpoint.config), architecture_(architecture) {}

  GgufMetadata run(const std::string& name, const std::vector<OutputTensor>& tensors) {
    metadata_.set_string("general.architecture", std::string(architecture_));
    metadata_.set_string("general.type", "model");
    metadata_.set_string("general.name", name);
    metadata_.set_u32("general.file_type", file_type(tensors));
    constexpr std::uint32_t quantization_version = 2;
    for (const OutputTensor& tensor : tensors) {
      if (is_block_type(tensor.dtype)) metadata_.set_u32("general.quantization_version", quantization_version);
    }
    sizes();
    rope();
    if (config_.num_experts > 0) experts();
    ours();
    return std::move(metadata_);
  }

 private:
  std::string key(const char* name) const { return fmt::format("{}.{}", architecture_, name); }

  void set(const char* name, std::size_t value) { metadata_.set_u32(key(name), static_cast<std::uint32_t>(value)); }

  void set(const char* name, double value) { metadata_.set_f32(key(name), static_cast<float>(value)); }

  void sizes() {
    set("vocab_size", config_.vocab_size);
    set("context_length", config_.max_position_embeddings);
    set("embedding_length", config_.hidden_size);
    set("block_count", config_.num_hidden_layers);
    set("feed_forward_length", config_.intermediate_size);
    set("attention.head_count", config_.num_attention_heads);
    set("attention.head_count_kv", config_.num_key_value_heads);
    set("attention.key_length", config_.head_dim);
    set("attention.value_length", config_.head_dim);
    set("attention.layer_norm_rms_epsilon", config_.rms_norm_eps);
  }

  void rope() {
    set("rope.dimension_count", config_.head_dim);
    set("rope.freq_base", config_.rope_theta);
    if (!config_.rope_scaling) return;
    const RopeScaling& scaling = *config_.rope_scaling;
    const bool linear = scaling.kind == RopeScaling::Kind::linear;
    metadata_.set_string(key("rope.scaling.type"), linear ? "linear" : "yarn");
    set("rope.scaling.factor", scaling.factor);
    if (linear) return;
    const double original = scaling.original_max_position_embeddings;
    if (!(original >= 1) || original > 0x1p31 ||
        original != static_cast<double>(static_cast<std::uint32_t>(original))) {
      throw Error(fmt::format("{}: original_max_position_embeddings is {}, but GGUF can only say whole numbers",
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
    set("expert_count", config_.num_experts);
    set("expert_used_count", config_.num_experts_per_tok);
    set("expert_feed_forward_length", config_.moe_intermediate_size);
    set("expert_shared_count", config_.n_shared_experts);
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
    const bool known = !checkpoint_.sources.at("eos_token_id").starts_with("assumed");
    if (known) metadata_.set_i32s(std::string(gguf_eos_token_ids), config_.eos_token_id);
    if (const auto type = vector_type(); type && *type != DType::f32) {
      metadata_.set_string(std::string(gguf_vector_type), std::string(name_of(*type)));
    }
  }

  // What norms, routers and biases, which a GGUF holds as f32, are stored as; nothing when they differ.
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
