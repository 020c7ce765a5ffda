#include "weights/lora.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "weights/error.h"
#include "weights/families.h"
#include "weights/mistaken_file.h"
#include "weights/pth.h"
#include "weights/quote.h"
#include "weights/stored_numbers.h"

namespace minimind {
namespace {

struct LoraPair {
  const StoredTensor* a = nullptr;  // [r, in]
  const StoredTensor* b = nullptr;  // [out, r]
};

bool is_float_matrix(const StoredTensor& tensor) {
  return is_float_type(tensor.dtype) && tensor.shape.size() == 2;
}

// Canonical module name -> its two matrices.
std::map<std::string, LoraPair> pairs_of(const StoredTensors& stored, const std::string& path) {
  std::map<std::string, LoraPair> pairs;
  for (const auto& [stored_name, tensor] : stored) {
    const std::string name = canonical_name(stored_name);
    const bool is_a = name.ends_with(".lora.A.weight");
    const bool is_b = name.ends_with(".lora.B.weight");
    if ((!is_a && !is_b) || !is_float_matrix(tensor)) {
      throw Error(
          fmt::format("{}: {} is not part of a MiniMind LoRA, which holds <module>.lora.A.weight and "
                      "<module>.lora.B.weight; give a full checkpoint to --model",
                      path, quoted(stored_name)));
    }
    LoraPair& pair = pairs[name.substr(0, name.rfind(".lora."))];
    const StoredTensor*& half = is_a ? pair.a : pair.b;
    if (half) throw Error(fmt::format("{}: two tensors mean {}", path, quoted(name)));
    half = &tensor;
  }
  return pairs;
}

void check_shapes(const std::string& module, const LoraPair& pair, const StoredTensor& weight,
                  const std::string& path) {
  if (!pair.a || !pair.b) {
    throw Error(fmt::format("{}: {}.lora.{}.weight is missing", path, module, pair.a ? "B" : "A"));
  }
  const bool fits = pair.a->shape[0] == pair.b->shape[1] && weight.shape.size() == 2 &&
                    weight.shape[0] == pair.b->shape[0] && weight.shape[1] == pair.a->shape[1];
  if (!fits) {
    throw Error(
        fmt::format("{}: {} has A {} and B {}, which do not fit its weight {}; the LoRA was trained on another "
                    "model",
                    path, module, shape_text(pair.a->shape), shape_text(pair.b->shape), shape_text(weight.shape)));
  }
}

// Sums in double: A and B are small, and the result is rounded once.
StoredTensor merged(const StoredTensor& weight, const LoraPair& pair, double scale) {
  const std::size_t rows = weight.shape[0], cols = weight.shape[1], rank = pair.a->shape[0];
  auto bytes = std::make_shared<std::vector<std::byte>>(rows * cols * sizeof(float));
  const std::vector<float> a = to_floats(*pair.a), b = to_floats(*pair.b), w = to_floats(weight);
  std::vector<double> sum(cols);
  for (std::size_t row = 0; row < rows; ++row) {
    sum.assign(cols, 0.0);
    for (std::size_t r = 0; r < rank; ++r) {
      for (std::size_t col = 0; col < cols; ++col)
        sum[col] += static_cast<double>(b[row * rank + r]) * a[r * cols + col];
    }
    for (std::size_t col = 0; col < cols; ++col) {
      const float value = static_cast<float>(w[row * cols + col] + scale * sum[col]);
      std::memcpy(bytes->data() + (row * cols + col) * sizeof(float), &value, sizeof value);
    }
  }
  StoredTensor result = weight;
  result.dtype = DType::f32;
  result.data = *bytes;
  result.copy = std::move(bytes);
  result.mapping = nullptr;
  return result;
}

}  // namespace

LoraFile parse_lora_argument(const std::string& argument) {
  const std::size_t colon = argument.rfind(':');
  if (colon == std::string::npos || argument.find('/', colon) != std::string::npos) return {argument, 1};
  const std::string scale = argument.substr(colon + 1);
  char* end = nullptr;
  const double value = std::strtod(scale.c_str(), &end);
  if (scale.empty() || *end != '\0' || !std::isfinite(value)) {
    throw UsageError(fmt::format("--lora: the scale in {} is {}, wanted a number, as in a.pth:0.5", quoted(argument),
                                 quoted(scale)));
  }
  return {argument.substr(0, colon), value};
}

std::vector<std::string> add_lora(StoredTensors& tensors, const LoraFile& lora) {
  check_path(lora.path);
  const StoredTensors stored = read_pth(MappedFile::open(lora.path));
  std::vector<std::string> changed;
  for (const auto& [module, pair] : pairs_of(stored, lora.path)) {
    const auto weight = tensors.find(module + ".weight");
    if (weight == tensors.end()) {
      throw Error(fmt::format("{}: is for module {}, which the model does not have", lora.path, quoted(module)));
    }
    if (module == "lm_head" || module == "model.embed_tokens") {
      throw Error(fmt::format("{}: changes {}; only LoRA on the layers' matrices is supported", lora.path, module));
    }
    check_shapes(module, pair, weight->second, lora.path);
    weight->second = merged(weight->second, pair, lora.scale);
    changed.push_back(weight->first);
  }
  if (changed.empty()) throw Error(fmt::format("{}: holds no LoRA matrices", lora.path));
  return changed;
}

}  // namespace minimind
