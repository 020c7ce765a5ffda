#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/little_endian.h"
#include "tests/support/temporary_file.h"
#include "tests/support/torch_archive.h"
#include "weights/tensor/stored_tensor.h"

// Tensors and small checkpoints in memory, and their bytes in files.
namespace minimind {

using Shape = std::vector<std::size_t>;

inline std::size_t size_of_shape(const Shape& shape) {
  std::size_t count = 1;
  for (const std::size_t size : shape) count *= size;
  return count;
}

inline StoredTensor make_tensor(DType dtype, const Shape& shape, const std::string& bytes) {
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  return {.dtype = dtype,
          .shape = shape,
          .data = StoredBytes(std::vector<std::byte>(first, first + bytes.size())),
          .file = "memory"};
}

inline StoredTensor f32_tensor(const Shape& shape, const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) bytes += little_endian(value);
  return make_tensor(DType::f32, shape, bytes);
}

// first, first + 1, ... so that no two rows are alike.
inline StoredTensor counting_tensor(const Shape& shape, float first = 0) {
  std::vector<float> values(size_of_shape(shape));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  return f32_tensor(shape, values);
}

inline StoredTensor zeros(const Shape& shape, DType dtype = DType::f32) {
  return make_tensor(dtype, shape, std::string(size_of_shape(shape) * size_of(dtype), '\0'));
}

inline std::vector<float> floats_of(const StoredTensor& tensor) {
  if (tensor.dtype != DType::f32) throw std::runtime_error("expected an f32 tensor");
  const std::string bytes = as_string(tensor.data);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// A checkpoint with small matrices; the defaults are those of a MiniMind v3 with 2 heads and 1 kv head of 4.
struct SmallModel {
  bool v1_names = false;
  std::size_t vocab = 12, hidden = 8, layers = 2, q_rows = 8, k_rows = 4, ffn = 6;
  std::optional<std::size_t> q_norm = 4;
  bool gated = true;
  std::size_t experts = 0, shared_experts = 0;

  StoredTensors tensors() const {
    StoredTensors result;
    const auto add = [&](const std::string& name, const Shape& shape) {
      result.emplace(name, counting_tensor(shape, static_cast<float>(result.size())));
    };
    add(v1_names ? "tok_embeddings.weight" : "model.embed_tokens.weight", {vocab, hidden});
    add(v1_names ? "norm.weight" : "model.norm.weight", {hidden});
    for (std::size_t layer = 0; layer < layers; ++layer) {
      const std::string prefix = (v1_names ? "layers." : "model.layers.") + std::to_string(layer) + ".";
      const std::string attention = prefix + (v1_names ? "attention.w" : "self_attn.");
      const std::string projection = v1_names ? ".weight" : "_proj.weight";
      add(prefix + (v1_names ? "attention_norm.weight" : "input_layernorm.weight"), {hidden});
      add(prefix + (v1_names ? "ffn_norm.weight" : "post_attention_layernorm.weight"), {hidden});
      add(attention + "q" + projection, {q_rows, hidden});
      add(attention + "k" + projection, {k_rows, hidden});
      add(attention + "v" + projection, {k_rows, hidden});
      add(attention + "o" + projection, {hidden, q_rows});
      if (q_norm) add(attention + "q_norm.weight", {*q_norm});
      if (q_norm) add(attention + "k_norm.weight", {*q_norm});
      const std::string mlp = prefix + (v1_names ? "feed_forward." : "mlp.");
      if (experts == 0) add_ffn(add, mlp);
      if (experts > 0) add(mlp + "gate.weight", {experts, hidden});
      for (std::size_t e = 0; e < experts; ++e) add_ffn(add, mlp + "experts." + std::to_string(e) + ".");
      for (std::size_t e = 0; e < shared_experts; ++e) {
        add_ffn(add, mlp + (v1_names ? "shared_experts." : "shared_experts." + std::to_string(e) + "."));
      }
    }
    return result;
  }

 private:
  template <class Add>
  void add_ffn(const Add& add, const std::string& prefix) const {
    const bool up_is_w1 = v1_names && !gated;
    if (gated) add(prefix + (v1_names ? "w1.weight" : "gate_proj.weight"), {ffn, hidden});
    add(prefix + (up_is_w1 ? "w1.weight" : v1_names ? "w3.weight" : "up_proj.weight"), {ffn, hidden});
    add(prefix + (v1_names ? "w2.weight" : "down_proj.weight"), {hidden, ffn});
  }
};

// 2 heads and 1 kv head of 4, without q_norm: v2, whose default is 8 and 2 heads.
inline SmallModel small_v2() {
  SmallModel model;
  model.q_norm.reset();
  return model;
}

// 8 heads and 2 kv heads of 4, the default of v2.
inline SmallModel v2_by_habit() {
  SmallModel model = small_v2();
  model.q_rows = 32;
  model.k_rows = 8;
  return model;
}

inline SmallModel mixture(SmallModel model, std::size_t experts, std::size_t shared) {
  model.experts = experts;
  model.shared_experts = shared;
  return model;
}

// 16 heads and 8 kv heads of 2, the default of v1.
inline SmallModel small_v1() {
  SmallModel model;
  model.v1_names = true;
  model.q_rows = 32;
  model.k_rows = 16;
  model.q_norm.reset();
  return model;
}

inline std::string safetensors_bytes(const StoredTensors& tensors) {
  nlohmann::ordered_json header;
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const std::string dtype = tensor.dtype == DType::f32   ? "F32"
                              : tensor.dtype == DType::f16 ? "F16"
                              : tensor.dtype == DType::i64 ? "I64"
                                                           : throw std::runtime_error("not written here");
    const std::size_t begin = data.size();
    data += as_string(tensor.data);
    header[name] = {{"dtype", dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  return little_endian(std::uint64_t{text.size()}) + text + data;
}

// The bytes of torch.save of a state dict of f32 tensors.
inline std::string pth_bytes(const StoredTensors& tensors) {
  std::vector<std::string> entries;
  Storages storages;
  for (const auto& [name, tensor] : tensors) {
    pickle_writer::TensorFields fields;
    fields.key = std::to_string(storages.size());
    fields.storage_elements = static_cast<std::int64_t>(size_of_shape(tensor.shape));
    std::int64_t stride = fields.storage_elements;
    for (const std::size_t size : tensor.shape) {
      stride = size == 0 ? 0 : stride / static_cast<std::int64_t>(size);
      fields.shape.push_back(static_cast<std::int64_t>(size));
      fields.strides.push_back(stride);
    }
    entries.push_back(pickle_writer::text(name));
    entries.push_back(pickle_writer::tensor(fields));
    storages.emplace_back(fields.key, as_string(tensor.data));
  }
  return torch_zip(pickle_writer::dict(entries), storages);
}

}  // namespace minimind
