#include "weights/checkpoint/lora.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "weights/base/error.h"
#include "weights/base/quote.h"
#include "weights/io/mistaken_file.h"
#include "weights/io/mistaken_path.h"
#include "weights/model/tensor_names.h"
#include "weights/tensor/stored_numbers.h"
#include "weights/torch/pth.h"

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
    if (!is_float_matrix(tensor)) {
      throw Error(fmt::format("{}: {} is {} of {}, expected a matrix of f32, f16 or bf16, as MiniMind's LoRAs have",
                              path, quote(stored_name), shape_text(tensor.shape), name_of(tensor.dtype)));
    }
    LoraPair& pair = pairs[name.substr(0, name.rfind(".lora."))];
    const StoredTensor*& half = name.ends_with(".A.weight") ? pair.a : pair.b;
    if (half) throw Error(fmt::format("{}: tensor {} is repeated under another name", path, quote(name)));
    half = &tensor;
  }
  return pairs;
}

bool is_whole_model(const StoredTensors& tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const auto& entry) { return canonical_name(entry.first) == "model.embed_tokens.weight"; });
}

void reject_others(const StoredTensors& others, const std::string& path) {
  if (others.empty()) return;
  throw Error(fmt::format("{}: {} is not part of a MiniMind LoRA, expected <module>.lora.A.weight and "
                          "<module>.lora.B.weight; load a full checkpoint as the model",
                          path, quote(others.begin()->first)),
              Setting::model);
}

bool is_of_experts(std::string_view module) {
  return module.find(".mlp.experts.") != std::string_view::npos ||
         module.find(".mlp.shared_experts.") != std::string_view::npos || module.ends_with(".mlp.gate");
}

bool has_experts(const StoredTensors& tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const auto& entry) { return entry.first.find(".mlp.experts.") != std::string::npos; });
}

std::vector<float> finite_floats(const StoredTensor& tensor, const std::string& name, const std::string& path) {
  std::vector<float> values = to_floats(tensor);
  const auto found = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (found == values.end()) return values;
  throw Error(fmt::format(
      "{}: {} has a value of {}, expected finite values; its training diverged, so use a LoRA saved earlier", path,
      name, *found));
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

// Sums in double: A and B are small, and each result is rounded once.
StoredTensor merged(const StoredTensor& weight, const std::string& module, const LoraPair& pair, const LoraFile& lora) {
  const std::size_t rows = weight.shape[0], cols = weight.shape[1], rank = pair.a->shape[0];
  std::vector<std::byte> bytes(rows * cols * sizeof(float));
  const std::vector<float> a = finite_floats(*pair.a, module + ".lora.A.weight", lora.path);
  const std::vector<float> b = finite_floats(*pair.b, module + ".lora.B.weight", lora.path);
  const std::vector<float> w = to_floats(weight);
  std::vector<double> sum(cols);
  for (std::size_t row = 0; row < rows; ++row) {
    sum.assign(cols, 0.0);
    for (std::size_t r = 0; r < rank; ++r) {
      for (std::size_t col = 0; col < cols; ++col)
        sum[col] += static_cast<double>(b[row * rank + r]) * a[r * cols + col];
    }
    for (std::size_t col = 0; col < cols; ++col) {
      const float value = static_cast<float>(w[row * cols + col] + lora.scale * sum[col]);
      if (!std::isfinite(value) && std::isfinite(w[row * cols + col])) {
        throw Error(
            fmt::format("{}: its product for {} times {} is {} in row {}, expected a finite f32; use a smaller "
                        "scale or another LoRA",
                        lora.path, module, lora.scale, sum[col], row));
      }
      std::memcpy(bytes.data() + (row * cols + col) * sizeof(float), &value, sizeof value);
    }
  }
  StoredTensor result = weight;
  result.dtype = DType::f32;
  result.data = StoredBytes(std::move(bytes));
  return result;
}

}  // namespace

LoraFile parse_lora_argument(const std::string& argument) {
  const std::size_t colon = argument.rfind(':');
  if (colon == std::string::npos || argument.find('/', colon) != std::string::npos) return {argument, 1};
  const std::string scale = argument.substr(colon + 1);
  double value = 0;
  const char* const end = scale.data() + scale.size();
  const auto [rest, error] = std::from_chars(scale.data(), end, value);
  if (error != std::errc() || rest != end || !std::isfinite(value)) {
    throw UsageError(
        fmt::format("LoRA {}: its scale is {}, expected a number, as in a.pth:0.5", quote(argument), quote(scale)),
        Setting::lora);
  }
  return {argument.substr(0, colon), value};
}

LoraMerge merge_lora(StoredTensors& tensors, const StoredTensors& pairs, const LoraFile& lora) {
  LoraMerge merge;
  merge.path = lora.path;
  const bool dense = !has_experts(tensors);
  for (const auto& [module, pair] : pairs_of(pairs, lora.path)) {
    const auto weight = tensors.find(module + ".weight");
    if (weight == tensors.end() && dense && is_of_experts(module)) {
      merge.without_experts.push_back(module);
      continue;
    }
    if (weight == tensors.end()) {
      throw Error(fmt::format("{}: is for module {}, which the model does not have", lora.path, quote(module)));
    }
    if (module == "lm_head" || module == "model.embed_tokens") {
      throw Error(fmt::format("{}: changes {}; only LoRA on the layers' matrices is supported", lora.path, module));
    }
    check_shapes(module, pair, weight->second, lora.path);
    weight->second = merged(weight->second, module, pair, lora);
    const std::size_t rank = pair.a->shape[0];
    merge.smallest_rank = merge.changed.empty() ? rank : std::min(merge.smallest_rank, rank);
    merge.largest_rank = std::max(merge.largest_rank, rank);
    merge.changed.push_back(weight->first);
  }
  return merge;
}

LoraMerge add_lora(StoredTensors& tensors, const LoraFile& lora) {
  check_path(lora.path);
  StoredTensors others = read_pth(open_input(lora.path));
  const StoredTensors pairs = take_lora(others);
  if (pairs.empty() || !is_whole_model(others)) reject_others(others, lora.path);
  if (pairs.empty()) throw Error(fmt::format("{}: has no LoRA matrices", lora.path));
  LoraMerge merge = merge_lora(tensors, pairs, lora);
  merge.base_tensors = others.size();
  return merge;
}

}  // namespace minimind
