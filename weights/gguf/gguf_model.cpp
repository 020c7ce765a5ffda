#include "weights/gguf/gguf_model.h"

#include <fmt/core.h>

#include <algorithm>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/gguf/reader.h"
#include "weights/gguf/settings.h"
#include "weights/model/tensor_names.h"
#include "weights/tensor/tensor_rows.h"

namespace minimind {
namespace {

struct LayerName {
  std::size_t layer;
  std::string_view rest;  // after "blk.N."
};

std::optional<LayerName> parse_layer_name(std::string_view name) {
  if (!name.starts_with(gguf_layer_prefix)) return std::nullopt;
  name.remove_prefix(gguf_layer_prefix.size());
  const auto layer = take_number<std::size_t>(name);
  if (!layer || !name.starts_with('.')) return std::nullopt;
  return LayerName{*layer, name.substr(1)};
}

template <std::size_t N>
std::optional<std::string_view> translate(const std::array<NamePair, N>& names, std::string_view gguf_name) {
  for (const auto& [gguf, canonical] : names) {
    if (gguf == gguf_name) return canonical;
  }
  return std::nullopt;
}

// The experts' tensors: "ffn_gate_exps.weight" is {"gate_proj.weight", "_exps."}.
struct ExpertsName {
  std::string part;
  std::string_view kind;
};

std::optional<ExpertsName> parse_experts_name(std::string_view rest) {
  for (const std::string_view part : gguf_network_parts) {
    for (const std::string_view kind : {gguf_routed_experts, gguf_shared_experts, gguf_shared_network}) {
      for (const std::string_view what : {"weight", "bias"}) {
        if (rest == fmt::format("ffn_{}{}{}", part, kind, what))
          return ExpertsName{fmt::format("{}_proj.{}", part, what), kind};
      }
    }
  }
  return std::nullopt;
}

class Translator {
 public:
  Translator(const StatedConfig& stated, std::string path) : stated_(stated), path_(std::move(path)) {}

  StoredTensors run(StoredTensors stored) {
    for (auto& [name, tensor] : stored) translate_one(name, std::move(tensor));
    return std::move(tensors_);
  }

 private:
  void put(const std::string& name, StoredTensor tensor) {
    if (tensors_.emplace(name, std::move(tensor)).second) return;
    throw Error(fmt::format("{}: tensor {} is repeated under another name", path_, quote(name)));
  }

  void translate_one(const std::string& name, StoredTensor tensor) {
    if (const auto canonical = translate(gguf_model_names, name)) {
      put(std::string(*canonical), std::move(tensor));
      return;
    }
    const auto layer = parse_layer_name(name);
    const auto canonical = layer ? translate(gguf_layer_names, layer->rest) : std::nullopt;
    const auto experts = layer ? parse_experts_name(layer->rest) : std::nullopt;
    if (canonical) {
      const bool rotated = *canonical == "self_attn.q_proj.weight" || *canonical == "self_attn.k_proj.weight";
      if (rotated) tensor = in_family_layout(name, tensor);
      put(layer_tensor(layer->layer, *canonical), std::move(tensor));
    } else if (experts) {
      split_experts(name, layer_tensor(layer->layer, "mlp."), *experts, tensor);
    } else if (name == "rope_freqs.weight" || (layer && layer->rest == "rope_freqs.weight")) {
      throw Error(
          fmt::format("{}: has {}, the frequencies of llama3's RoPE scaling, which is not supported", path_, name));
    } else {
      put(name, std::move(tensor));  // check_tensors names it
    }
  }

  // The architectures whose RoPE rotates adjacent pairs store v2's and Llama's halves layouts permuted.
  StoredTensor in_family_layout(const std::string& name, const StoredTensor& tensor) const {
    const Family family = *stated_.family;
    if (has_q_norm(family) || rope_layout(family) == RopeLayout::adjacent_pairs) return tensor;
    const std::size_t head_dim = *stated_.head_dim;
    if (tensor.shape.size() != 2 || head_dim == 0 || head_dim % 2 != 0 || tensor.shape[0] % head_dim != 0) {
      throw Error(fmt::format("{}: {} is {}, expected rows for whole heads of {}, an even number", path_, name,
                              shape_text(tensor.shape), head_dim));
    }
    return reorder_rows(tensor, adjacent_pairs_to_halves(tensor.shape[0], head_dim));
  }

  void split_experts(const std::string& name, const std::string& mlp, const ExpertsName& experts,
                     const StoredTensor& tensor) {
    if (experts.kind == gguf_shared_network) {
      split_shared_network(name, mlp, experts.part, tensor);
      return;
    }
    const bool bias = experts.part.ends_with(".bias");
    if (tensor.shape.size() != (bias ? 2 : 3)) {
      throw Error(fmt::format("{}: {} is {}, expected one {} for each expert", path_, name, shape_text(tensor.shape),
                              bias ? "vector" : "matrix"));
    }
    const bool routed = experts.kind == gguf_routed_experts;
    check_count(name, tensor.shape[0], routed ? stated_.num_experts : stated_.n_shared_experts);
    const char* kind = routed ? "experts" : "shared_experts";
    for (std::size_t expert = 0; expert < tensor.shape[0]; ++expert) {
      StoredTensor one = slice_rows(tensor, expert, expert + 1);
      if (bias) one.shape = {tensor.shape[1]};
      put(fmt::format("{}{}.{}.{}", mlp, kind, expert, experts.part), std::move(one));
    }
  }

  // Checked before the stack is split, because the count comes from the file.
  void check_count(const std::string& name, std::size_t count, std::optional<std::size_t> stated) const {
    if (count != stated.value_or(0)) {
      throw Error(fmt::format("{}: {} has {} experts, expected {} as {} states", path_, name, count, stated.value_or(0),
                              stated_.source));
    }
    if (count > largest_tensor_count - std::min(tensors_.size(), largest_tensor_count)) {
      throw Error(fmt::format("{}: {} has {} experts, expected at most {} tensors in all", path_, name, count,
                              largest_tensor_count));
    }
  }

  void split_shared_network(const std::string& name, const std::string& mlp, const std::string& part,
                            StoredTensor tensor) {
    const std::size_t count = stated_.n_shared_experts.value_or(0);
    check_count(name, count, count);
    const bool columns = part.starts_with("down_proj");
    const std::size_t width = tensor.shape.size() != 2 ? 0 : columns ? tensor.shape[1] : tensor.shape[0];
    if (count == 0 || width == 0 || width % count != 0 ||
        width / count % (columns ? block_shape(tensor.dtype).elements : 1) != 0) {
      throw Error(fmt::format("{}: {} is {}, which is not the width of {} shared experts (expert_shared_count)", path_,
                              name, shape_text(tensor.shape), count));
    }
    const std::size_t share = width / count;
    // Each expert's columns are in all rows: the file is read once, not for each.
    if (columns && count > 1) tensor.data = StoredBytes(tensor.data.read_all());
    for (std::size_t expert = 0; expert < count; ++expert) {
      const std::size_t first = expert * share, last = first + share;
      StoredTensor one = count == 1 ? tensor
                         : columns  ? slice_columns(tensor, first, last)
                                    : slice_rows(tensor, first, last);
      put(fmt::format("{}shared_experts.{}.{}", mlp, expert, part), std::move(one));
    }
  }

  const StatedConfig& stated_;
  std::string path_;
  StoredTensors tensors_;
};

std::optional<DType> vector_type(const GgufMetadata& metadata, const std::string& path) {
  const GgufValue* value = metadata.find(gguf_vector_type);
  if (!value) return std::nullopt;
  const std::string* name = std::get_if<std::string>(&value->data);
  for (const DType type : {DType::f16, DType::bf16}) {
    if (name && *name == name_of(type)) return type;
  }
  throw Error(fmt::format("{}: {} is {}, expected f16 or bf16", path, gguf_vector_type, shown(*value)));
}

}  // namespace

GgufModel read_gguf_model(std::shared_ptr<const InputFile> file) {
  const std::string path = file->path();
  GgufFile gguf = read_gguf(std::move(file));
  GgufModel model;
  model.stated = gguf_settings(gguf.metadata, path);
  model.vector_type = vector_type(gguf.metadata, path);
  model.tensors = Translator(model.stated, path).run(std::move(gguf.tensors));
  const GgufValue* architecture = gguf.metadata.find("general.architecture");
  model.format = fmt::format("GGUF v{}, {}", gguf.version, std::get<std::string>(architecture->data));
  model.metadata = std::move(gguf.metadata);
  return model;
}

}  // namespace minimind
