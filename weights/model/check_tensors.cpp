#include "weights/model/check_tensors.h"

#include <fmt/core.h>

#include <set>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/model/tensor_names.h"

namespace minimind {
namespace {

using Shape = std::vector<std::size_t>;

// Collects the requested tensors; reports all errors at the end, or when too many are missing. A router in each layer
// and the experts of one imply the square of the tensors that a file has.
class Expectations {
 public:
  Expectations(const StoredTensors& tensors, const std::string& path) : tensors_(tensors), path_(path) {}

  void require(const std::string& name, const Shape& shape) {
    known_.insert(name);
    const auto entry = tensors_.find(name);
    if (entry == tensors_.end()) {
      missing_.push_back(name);
      if (missing_.size() > largest_tensor_count) complain("", "are missing at least", missing_);
      return;
    }
    const StoredTensor& tensor = entry->second;
    if (tensor.shape != shape) {
      throw Error(fmt::format("{}: {} is {}, expected {}", path_, name, shape_text(tensor.shape), shape_text(shape)));
    }
    if (!is_float_type(tensor.dtype) && !is_block_type(tensor.dtype)) {
      throw Error(
          fmt::format("{}: {} is stored as {}, expected f32, f16 or bf16; save it again with .half() or .float()",
                      path_, name, name_of(tensor.dtype)));
    }
  }

  void finish() const {
    std::vector<std::string> unknown;
    for (const auto& [name, tensor] : tensors_) {
      if (!known_.contains(name)) unknown.push_back(name);
    }
    complain("is missing", "are missing", missing_);
    complain("is not part of any MiniMind text model", "are not part of any MiniMind text model", unknown);
  }

 private:
  void complain(const char* one, const char* many, const std::vector<std::string>& names) const {
    if (names.empty()) return;
    if (names.size() == 1) throw Error(fmt::format("{}: tensor {} {}", path_, quote(names[0]), one));
    throw Error(fmt::format("{}: tensor {} and {} more {}", path_, quote(names[0]), names.size() - 1, many));
  }

  const StoredTensors& tensors_;
  const std::string& path_;
  std::set<std::string> known_;
  std::vector<std::string> missing_;
};

void expect_attention(Expectations& expect, const Config& config, std::size_t layer) {
  const std::size_t q_rows = config.num_attention_heads * config.head_dim;
  const std::size_t kv_rows = config.num_key_value_heads * config.head_dim;
  expect.require(layer_tensor(layer, "self_attn.q_proj.weight"), {q_rows, config.hidden_size});
  expect.require(layer_tensor(layer, "self_attn.k_proj.weight"), {kv_rows, config.hidden_size});
  expect.require(layer_tensor(layer, "self_attn.v_proj.weight"), {kv_rows, config.hidden_size});
  expect.require(layer_tensor(layer, "self_attn.o_proj.weight"), {config.hidden_size, q_rows});
  if (!has_q_norm(config.family)) return;
  expect.require(layer_tensor(layer, "self_attn.q_norm.weight"), {config.head_dim});
  expect.require(layer_tensor(layer, "self_attn.k_norm.weight"), {config.head_dim});
}

// The optional parts of an FFN. If one FFN of a model has such a part, all FFNs must have it. Otherwise a missing
// tensor would turn its FFN into another kind.
struct NetworkParts {
  explicit NetworkParts(const StoredTensors& tensors)
      : gate_bias(some_network_has(tensors, ".gate_proj.bias")),
        gate(gate_bias || some_network_has(tensors, ".gate_proj.weight")),
        up_bias(some_network_has(tensors, ".up_proj.bias")),
        down_bias(some_network_has(tensors, ".down_proj.bias")) {}
  bool gate_bias, gate, up_bias, down_bias;
};

void expect_network(Expectations& expect, const NetworkParts& parts, const Config& config, const std::string& prefix,
                    std::size_t rows) {
  if (parts.gate) expect.require(prefix + "gate_proj.weight", {rows, config.hidden_size});
  expect.require(prefix + "up_proj.weight", {rows, config.hidden_size});
  expect.require(prefix + "down_proj.weight", {config.hidden_size, rows});
  if (parts.gate_bias) expect.require(prefix + "gate_proj.bias", {rows});
  if (parts.up_bias) expect.require(prefix + "up_proj.bias", {rows});
  if (parts.down_bias) expect.require(prefix + "down_proj.bias", {config.hidden_size});
}

void expect_mixture(Expectations& expect, const NetworkParts& parts, const Config& config, const std::string& prefix) {
  expect.require(prefix + "gate.weight", {config.num_experts, config.hidden_size});
  for (std::size_t expert = 0; expert < config.num_experts; ++expert) {
    expect_network(expect, parts, config, fmt::format("{}experts.{}.", prefix, expert), config.moe_intermediate_size);
  }
  for (std::size_t expert = 0; expert < config.n_shared_experts; ++expert) {
    expect_network(expect, parts, config, fmt::format("{}shared_experts.{}.", prefix, expert),
                   config.moe_intermediate_size);
  }
}

}  // namespace

void check_tensors(const StoredTensors& tensors, const Config& config, const std::string& path) {
  Expectations expect(tensors, path);
  const NetworkParts parts(tensors);
  expect.require("model.embed_tokens.weight", {config.vocab_size, config.hidden_size});
  for (std::size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    expect.require(layer_tensor(layer, "input_layernorm.weight"), {config.hidden_size});
    expect_attention(expect, config, layer);
    expect.require(layer_tensor(layer, "post_attention_layernorm.weight"), {config.hidden_size});
    const std::string mlp = layer_tensor(layer, "mlp.");
    if (is_mixture(tensors, layer)) {
      expect_mixture(expect, parts, config, mlp);
    } else {
      expect_network(expect, parts, config, mlp, config.intermediate_size);
    }
  }
  expect.require("model.norm.weight", {config.hidden_size});
  if (!config.tie_word_embeddings) expect.require("lm_head.weight", {config.vocab_size, config.hidden_size});
  expect.finish();
}

}  // namespace minimind
