#include "weights/model/minimind_names.h"

#include <array>
#include <utility>

namespace minimind {
namespace {

void replace(std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
}

}  // namespace

std::string minimind_name(Family family, std::string_view canonical, bool gated) {
  std::string name(canonical);
  if (family != Family::v1 && family != Family::v2_early) return name;
  // v1 has one shared expert at most, and no number for it.
  const std::array<std::pair<std::string_view, std::string_view>, 15> parts{{
      {".self_attn.q_proj.", ".attention.wq."},
      {".self_attn.k_proj.", ".attention.wk."},
      {".self_attn.v_proj.", ".attention.wv."},
      {".self_attn.o_proj.", ".attention.wo."},
      {".input_layernorm.", ".attention_norm."},
      {".post_attention_layernorm.", ".ffn_norm."},
      {".mlp.shared_experts.0.", ".feed_forward.shared_experts."},
      {".mlp.", ".feed_forward."},
      {".gate_proj.", ".w1."},
      {".down_proj.", ".w2."},
      {".up_proj.", gated ? ".w3." : ".w1."},
      {"model.embed_tokens.", "tok_embeddings."},
      {"model.layers.", "layers."},
      {"model.norm.", "norm."},
      {"lm_head.", "output."},
  }};
  for (const auto& [from, to] : parts) replace(name, from, to);
  return name;
}

}  // namespace minimind
