#include "runtime/engine/load_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "runtime/engine/thread_team.h"
#include "weights/base/error.h"
#include "weights/model/tensor_names.h"
#include "weights/tensor/stored_numbers.h"

namespace minimind {
namespace {

// The matrices that are kept as another type than requested: one fact for each reason.
class TypeFallbacks {
 public:
  void add(const std::string& name, const StoredTensor& tensor, WeightType type, DType packed) {
    if (!type) {
      if (packed == tensor.dtype) return;
      count(packed, Fact("exact, but larger than {}; q8_0 or iq4_nl is smaller", name_of(tensor.dtype)), name);
    } else if (packed != *type) {
      const std::string_view requested = name_of(*type);
      const std::size_t block_size = block_shape(*type).elements;
      const bool whole_blocks = tensor.shape[1] % block_size == 0;
      const Fact reason = whole_blocks ? Fact("values too large for {}, or not finite", requested)
                                       : Fact("{} requires a multiple of {} columns", requested, block_size);
      count(packed, reason, name);
    }
  }

  std::vector<Fact> facts() const {
    std::vector<Fact> facts;
    for (const Group& group : groups_) {
      const std::string_view packed = name_of(group.packed);
      const Fact which = group.count == 1
                             ? Fact("{} as {}: {}", group.first, packed, group.reason)
                             : Fact("{} tensors (first: {}) as {}: {}", group.count, group.first, packed, group.reason);
      facts.push_back(Fact("kept {}", which));
    }
    return facts;
  }

 private:
  struct Group {
    DType packed;
    Fact reason;
    std::string first;  // the name of one of them
    std::size_t count;
  };

  void count(DType packed, const Fact& reason, const std::string& name) {
    const auto group = std::find_if(groups_.begin(), groups_.end(),
                                    [&](const Group& g) { return g.packed == packed && g.reason == reason; });
    if (group == groups_.end()) {
      groups_.push_back({packed, reason, name, 1});
    } else {
      ++group->count;
    }
  }

  std::vector<Group> groups_;
};

class Loader {
 public:
  Loader(const Checkpoint& checkpoint, WeightType type, std::size_t threads, Compute compute, HugePageArena& memory)
      : checkpoint_(checkpoint), type_(type), threads_(threads), compute_(compute), packer_(memory) {}

  Model load() {
    const Config& config = checkpoint_.config;
    Model model{.config = config,
                .rope = make_rope(config),
                .embed_tokens = matrix("model.embed_tokens.weight"),
                .layers = {},
                .norm = vector("model.norm.weight"),
                .lm_head = std::nullopt,
                .rounding = nullptr,
                .type_fallbacks = {}};
    if (!config.tie_word_embeddings) rounding_ = nullptr;  // embed_tokens is looked up, not multiplied
    model.layers.reserve(config.num_hidden_layers);
    for (std::size_t i = 0; i < config.num_hidden_layers; ++i) model.layers.push_back(layer(i));
    if (!config.tie_word_embeddings) model.lm_head = matrix("lm_head.weight");
    packer_.finish(threads_);
    model.rounding = rounding_;
    model.type_fallbacks = type_fallbacks_.facts();
    return model;
  }

 private:
  bool has(const std::string& name) const { return checkpoint_.tensors.contains(name); }

  const StoredTensor& stored(const std::string& name) const {
    const auto entry = checkpoint_.tensors.find(name);
    if (entry == checkpoint_.tensors.end())
      throw Error(fmt::format("{}: tensor {} is missing", checkpoint_.path, name));
    return entry->second;
  }

  WeightMatrix matrix(const std::string& name) {
    const StoredTensor& tensor = stored(name);
    const DType packed = packed_type(tensor, type_, threads_);
    if (compute_ == Compute::bf16 && packed != DType::f16 && packed != DType::bf16) {
      throw UsageError(fmt::format("{}: {} is kept as {}, expected f16 or bf16 for products of bf16", checkpoint_.path,
                                   name, name_of(packed)),
                       Setting::arithmetic);
    }
    type_fallbacks_.add(name, tensor, type_, packed);
    const WeightMatrix added = packer_.add(tensor, packed, compute_);
    const Rounding* const rounding = added.format().rounding;
    assert(!rounding || !rounding_ || rounding == rounding_);  // as the types that packed_type chooses have
    if (rounding) rounding_ = rounding;
    return added;
  }

  std::vector<float> vector(const std::string& name) const { return to_floats(stored(name)); }

  std::vector<float> vector_if_present(const std::string& name) const {
    return has(name) ? vector(name) : std::vector<float>{};
  }

  Layer layer(std::size_t i) {
    const std::string mlp = layer_tensor(i, "mlp.");
    return Layer{.input_layernorm = vector(layer_tensor(i, "input_layernorm.weight")),
                 .attention = attention(layer_tensor(i, "self_attn.")),
                 .post_attention_layernorm = vector(layer_tensor(i, "post_attention_layernorm.weight")),
                 .mlp = is_mixture(checkpoint_.tensors, i)
                            ? std::variant<FeedForward, MixtureOfExperts>(mixture(mlp))
                            : std::variant<FeedForward, MixtureOfExperts>(feed_forward(mlp))};
  }

  Attention attention(const std::string& prefix) {
    return Attention{.q_proj = matrix(prefix + "q_proj.weight"),
                     .k_proj = matrix(prefix + "k_proj.weight"),
                     .v_proj = matrix(prefix + "v_proj.weight"),
                     .o_proj = matrix(prefix + "o_proj.weight"),
                     .q_norm = vector_if_present(prefix + "q_norm.weight"),
                     .k_norm = vector_if_present(prefix + "k_norm.weight")};
  }

  FeedForward feed_forward(const std::string& prefix) {
    std::optional<WeightMatrix> gate;
    if (has(prefix + "gate_proj.weight")) gate = matrix(prefix + "gate_proj.weight");
    return FeedForward{.gate_proj = std::move(gate),
                       .up_proj = matrix(prefix + "up_proj.weight"),
                       .down_proj = matrix(prefix + "down_proj.weight"),
                       .gate_bias = vector_if_present(prefix + "gate_proj.bias"),
                       .up_bias = vector_if_present(prefix + "up_proj.bias"),
                       .down_bias = vector_if_present(prefix + "down_proj.bias")};
  }

  MixtureOfExperts mixture(const std::string& prefix) {
    const Config& config = checkpoint_.config;
    MixtureOfExperts moe{.router = packer_.add(stored(prefix + "gate.weight"), DType::f32),
                         .experts = {},
                         .routed_experts = config.num_experts,
                         .experts_per_token = config.num_experts_per_tok,
                         .normalize = normalizes_router(config)};
    for (std::size_t e = 0; e < config.num_experts; ++e) {
      moe.experts.push_back(feed_forward(fmt::format("{}experts.{}.", prefix, e)));
    }
    for (std::size_t e = 0; e < config.n_shared_experts; ++e) {
      moe.experts.push_back(feed_forward(fmt::format("{}shared_experts.{}.", prefix, e)));
    }
    return moe;
  }

  const Checkpoint& checkpoint_;
  WeightType type_;
  std::size_t threads_;
  Compute compute_;
  Packer packer_;
  const Rounding* rounding_ = nullptr;
  TypeFallbacks type_fallbacks_;
};

}  // namespace

std::size_t suitable_threads(const Checkpoint& checkpoint) {
  constexpr std::size_t bytes_worth_a_thread = std::size_t{4} << 20;
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) bytes += tensor.data.size();
  return std::clamp<std::size_t>(bytes / bytes_worth_a_thread, 1, default_threads());
}

KvType suitable_kv_type(const Model& model) {
  return model.rounding && model.rounding->to_int8 ? KvType::f16 : KvType::f32;
}

Model load_model(const Checkpoint& checkpoint, WeightType type, std::size_t threads, Compute compute,
                 HugePageArena* memory) {
  HugePageArena own;
  return Loader(checkpoint, type, threads, compute, memory ? *memory : own).load();
}

}  // namespace minimind
