#include "weights/export/state_dict.h"

#include <functional>

#include "weights/model/minimind_names.h"
#include "weights/tensor/tensor_rows.h"

namespace minimind {
namespace {

bool is_matrix_of_weights(const std::string& name, const StoredTensor& tensor) {
  return tensor.shape.size() == 2 && !name.ends_with(".mlp.gate.weight");
}

DType type_of_vector(const StoredTensor& tensor, std::optional<DType> original) {
  return original && holds_exactly(tensor, *original) ? *original : tensor.dtype;
}

StateDictExport export_as(const Checkpoint& checkpoint, const WantedTypes& types, std::size_t threads,
                          const std::function<std::string(const std::string&)>& rename) {
  TypeChooser chooser(false, threads);
  StateDictExport result;
  for (const auto& [name, stored] : checkpoint.tensors) {
    OutputTensor tensor{.name = rename(name),
                        .dtype = type_of_vector(stored, checkpoint.vector_type),
                        .shape = stored.shape,
                        .sources = {&stored},
                        .row_order = {}};
    const bool embedding = name == "model.embed_tokens.weight" || name == "lm_head.weight";
    if (is_matrix_of_weights(name, stored)) {
      chooser.choose(tensor, embedding && types.embedding ? types.embedding : types.matrices);
    }
    result.tensors.push_back(std::move(tensor));
  }
  result.exceptions = chooser.exceptions();
  return result;
}

}  // namespace

StateDictExport export_minimind(const Checkpoint& checkpoint, const WantedTypes& types, std::size_t threads) {
  const bool gated = some_network_has(checkpoint.tensors, ".gate_proj.weight");
  const auto rename = [&](const std::string& name) { return minimind_name(checkpoint.config.family, name, gated); };
  StateDictExport result = export_as(checkpoint, types, threads, rename);
  if (checkpoint.config.tie_word_embeddings) {
    result.tied.emplace_back(rename("lm_head.weight"), rename("model.embed_tokens.weight"));
  }
  return result;
}

StateDictExport export_hugging_face(const Checkpoint& checkpoint, const WantedTypes& types, std::size_t threads) {
  StateDictExport result = export_as(checkpoint, types, threads, [](const std::string& name) { return name; });
  if (rope_layout(checkpoint.config.family) == RopeLayout::halves) return result;
  for (OutputTensor& tensor : result.tensors) {
    const bool rotated =
        tensor.name.ends_with("self_attn.q_proj.weight") || tensor.name.ends_with("self_attn.k_proj.weight");
    if (rotated) tensor.row_order = adjacent_pairs_to_halves(tensor.shape[0], checkpoint.config.head_dim);
  }
  return result;
}

}  // namespace minimind
