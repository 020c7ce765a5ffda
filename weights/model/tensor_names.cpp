#include "weights/model/tensor_names.h"

#include <fmt/core.h>

#include <algorithm>

#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr std::string_view layers_prefix = "model.layers.";

bool remove_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::string_view without_wrappers(std::string_view name) {
  while (remove_prefix(name, "module.") || remove_prefix(name, "_orig_mod.")) {
  }
  return name;
}

// v1 has no `model.` prefix. The state of the inner module of later generations, which some users save, has none
// either.
bool lacks_model_prefix(std::string_view name) {
  return name.starts_with("tok_embeddings.") || name.starts_with("embed_tokens.") || name.starts_with("layers.") ||
         name.starts_with("output.") || name.starts_with("norm.");
}

std::string with_model_prefix(std::string_view name) {
  if (name.starts_with("norm.") || name.starts_with("embed_tokens.")) return "model." + std::string(name);
  std::string result = (name.starts_with("layers.") ? "model." : "") + std::string(name);
  for (const auto& [v1, hugging_face] : v1_names) replace_all(result, v1, hugging_face);
  return result;
}

bool is_saved_buffer(std::string_view name) {
  static constexpr std::array<std::string_view, 5> buffers{"mask", "freqs_cos", "freqs_sin", "rotary_emb.inv_freq",
                                                           "causal_mask"};
  return std::any_of(buffers.begin(), buffers.end(), [&](std::string_view buffer) {
    return name == buffer || (name.ends_with(buffer) && name[name.size() - buffer.size() - 1] == '.');
  });
}

// Returns the part of MiniMind-V or MiniMind-O that a tensor belongs to, empty if it is the language model.
std::string_view other_modality(std::string_view bare) {
  static constexpr std::array<std::string_view, 5> parts{"audio_encoder", "audio_proj", "talker", "vision_encoder",
                                                         "vision_proj"};
  if (bare.starts_with("model.")) bare.remove_prefix(6);
  const auto* const part = std::find(parts.begin(), parts.end(), bare.substr(0, bare.find('.')));
  return part == parts.end() ? std::string_view() : *part;
}

void reject_relatives(const StoredTensors& stored, const std::string& path) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> tells{{
      {"linear_attn", "MiniMind Linear (linear attention)"},
      {"time_embed", "MiniMind dLM (diffusion)"},
      {"timestep_embed", "MiniMind dLM (diffusion)"},
      {"kv_a_proj", "a variant with latent attention (MLA)"},
      {"in_proj_qkv", "MiniMind Linear (linear attention)"},
  }};
  for (const auto& [tell, relative] : tells) {
    for (const auto& [name, tensor] : stored) {
      if (name.find(tell) == std::string::npos) continue;
      throw Error(fmt::format("{}: {} is a tensor of {}, expected a checkpoint of the text models v1, v2 or v3", path,
                              quote(name), relative));
    }
  }
}

void check_fused(const StoredTensor& fused, const std::string& name, bool even_rows) {
  const bool fits = fused.shape.size() == 3 && fused.shape[0] > 0 && fused.shape[1] > 0 && fused.shape[2] > 0 &&
                    (!even_rows || fused.shape[1] % 2 == 0);
  if (fits) return;
  throw Error(fmt::format("{}: {} is {}, expected {}", fused.file, quote(name), shape_text(fused.shape),
                          even_rows ? "[experts, 2 x moe_intermediate_size, hidden_size]"
                                    : "[experts, hidden_size, moe_intermediate_size]"));
}

void add(StoredTensors& tensors, const std::string& name, StoredTensor tensor) {
  const std::string file = tensor.file;
  if (!tensors.emplace(name, std::move(tensor)).second) {
    throw Error(fmt::format("{}: tensor {} is repeated under another name", file, quote(name)));
  }
}

void split_fused_experts(StoredTensors& tensors, const std::string& name, const StoredTensor& fused) {
  const bool gate_up = name.ends_with(".gate_up_proj");
  check_fused(fused, name, gate_up);
  if (fused.shape[0] > largest_tensor_count - std::min(tensors.size(), largest_tensor_count)) {
    throw Error(fmt::format("{}: {} has {} experts, expected at most {} tensors in all", fused.file, quote(name),
                            fused.shape[0], largest_tensor_count));
  }
  const std::string experts = name.substr(0, name.rfind('.') + 1);
  for (std::size_t expert = 0; expert < fused.shape[0]; ++expert) {
    const StoredTensor matrix = slice_rows(fused, expert, expert + 1);
    const std::string prefix = experts + std::to_string(expert);
    if (gate_up) {
      const std::size_t rows = matrix.shape[0] / 2;
      add(tensors, prefix + ".gate_proj.weight", slice_rows(matrix, 0, rows));
      add(tensors, prefix + ".up_proj.weight", slice_rows(matrix, rows, 2 * rows));
    } else {
      add(tensors, prefix + ".down_proj.weight", matrix);
    }
  }
}

// An FFN of two matrices has no gate: v1's w1 is then up_proj.
void rename_ungated(StoredTensors& tensors) {
  std::vector<std::string> ungated;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t at = name.find(".gate_proj.weight");
    if (at != std::string::npos && !tensors.contains(name.substr(0, at) + ".up_proj.weight")) {
      ungated.push_back(name.substr(0, at));
    }
  }
  for (const std::string& prefix : ungated) {
    for (const char* part : {".weight", ".bias"}) {
      auto node = tensors.extract(prefix + ".gate_proj" + part);
      if (node.empty()) continue;
      node.key() = prefix + ".up_proj" + part;
      tensors.insert(std::move(node));
    }
  }
}

}  // namespace

std::string canonical_name(std::string_view name) {
  name = without_wrappers(name);
  return lacks_model_prefix(name) ? with_model_prefix(name) : std::string(name);
}

StoredTensors take_lora(StoredTensors& stored) {
  StoredTensors taken;
  for (auto entry = stored.begin(); entry != stored.end();) {
    const auto here = entry++;
    const std::string_view name = here->first;
    const bool is_lora = name.ends_with(".lora.A.weight") || name.ends_with(".lora.B.weight");
    if (is_lora) taken.insert(stored.extract(here));
  }
  return taken;
}

std::string layer_tensor(std::size_t layer, std::string_view rest) {
  return fmt::format("{}{}.{}", layers_prefix, layer, rest);
}

bool some_network_has(const StoredTensors& tensors, std::string_view part) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const auto& entry) { return entry.first.ends_with(part); });
}

bool is_mixture(const StoredTensors& tensors, std::size_t layer) {
  const std::string experts = layer_tensor(layer, "mlp.experts.");
  const auto first = tensors.lower_bound(experts);
  return tensors.contains(layer_tensor(layer, "mlp.gate.weight")) ||
         (first != tensors.end() && first->first.starts_with(experts));
}

CanonicalTensors to_canonical_names(StoredTensors stored, const std::string& path) {
  std::map<std::string, std::size_t> other_modalities;
  std::erase_if(stored, [&](const auto& entry) {
    const std::string_view part = other_modality(without_wrappers(entry.first));
    if (!part.empty()) ++other_modalities[std::string(part)];
    return !part.empty();
  });
  reject_relatives(stored, path);
  CanonicalTensors result;
  result.other_modalities = std::move(other_modalities);
  for (auto& [stored_name, tensor] : stored) {
    if (is_saved_buffer(stored_name)) {
      result.skipped.push_back(stored_name);
      continue;
    }
    const std::string_view bare = without_wrappers(stored_name);
    if (bare.starts_with("tok_embeddings.")) result.style = NamingStyle::v1;
    const std::string name = canonical_name(bare);
    if (name.ends_with(".experts.gate_up_proj") || name.ends_with(".experts.down_proj")) {
      split_fused_experts(result.tensors, name, tensor);
    } else {
      add(result.tensors, name, std::move(tensor));
    }
  }
  const bool gated = std::any_of(result.tensors.begin(), result.tensors.end(),
                                 [](const auto& entry) { return entry.first.find(".up_proj.") != std::string::npos; });
  if (result.style == NamingStyle::v1 && !gated) rename_ungated(result.tensors);
  return result;
}

}  // namespace minimind
