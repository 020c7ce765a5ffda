#pragma once

#include <string_view>

namespace minimind {

// The nonlinearity of the FFN. With a gate: silu is SwiGLU, sigmoid GLU, relu ReGLU, gelu and
// gelu_tanh GeGLU, linear Bilinear (Shazeer 2020, arXiv:2002.05202).
enum class HiddenAct { silu, sigmoid, relu, gelu, gelu_tanh, linear };

// The names that configurations use. The first one of each is written.
struct HiddenActName {
  HiddenAct act;
  std::string_view name;
};
inline constexpr HiddenActName hidden_act_names[] = {
    {HiddenAct::silu, "silu"},          {HiddenAct::silu, "swish"},
    {HiddenAct::silu, "swiglu"},        {HiddenAct::sigmoid, "sigmoid"},
    {HiddenAct::sigmoid, "glu"},        {HiddenAct::relu, "relu"},
    {HiddenAct::relu, "reglu"},         {HiddenAct::gelu, "gelu"},
    {HiddenAct::gelu, "geglu"},         {HiddenAct::gelu_tanh, "gelu_pytorch_tanh"},
    {HiddenAct::gelu_tanh, "gelu_new"}, {HiddenAct::gelu_tanh, "gelu_tanh"},
    {HiddenAct::linear, "linear"},      {HiddenAct::linear, "bilinear"},
};

constexpr std::string_view name_of(HiddenAct act) {
  for (const HiddenActName& known : hidden_act_names) {
    if (known.act == act) return known.name;
  }
  return "unknown";
}

}  // namespace minimind
