#include "weights/checkpoint/lora.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "weights/base/cancel.h"
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/input_file.h"
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

// Of a file without LoRA there are others: read_pth() rejects a file without tensors.
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
  if (pair.a->shape[0] > largest_rank) {
    throw Error(
        fmt::format("{}: {} has rank {}, expected at most {}; merge the LoRA in Python and load the whole model", path,
                    module, pair.a->shape[0], largest_rank));
  }
}

// B A in blocks: the sums of one are in registers, a strip of A in the cache. Each sum is in double and adds its
// products, which are exact, in the order of the ranks: no block changes it.
constexpr std::size_t block = 4, strip = 64;

// Columns [first, first + strip) of A, four side by side for each rank; zeros past the last column.
void pack_strip(const std::vector<float>& a, std::size_t cols, std::size_t first, std::vector<double>& packed) {
  const std::size_t rank = a.size() / cols;
  for (std::size_t i = 0; i < packed.size(); ++i) {
    const std::size_t col = first + i / (rank * block) * block + i % block;
    packed[i] = col < cols ? a[i / block % rank * cols + col] : 0;
  }
}

// Four rows of B, of `rank` values each, times four columns of A.
void multiply_block(const std::array<const float*, block>& b, const double* a, std::size_t rank, double* sums) {
  typedef double Pair __attribute__((vector_size(2 * sizeof(double))));
  Pair left[block] = {}, right[block] = {};
  for (std::size_t r = 0; r < rank; ++r) {
    const Pair first = {a[r * block], a[r * block + 1]}, second = {a[r * block + 2], a[r * block + 3]};
#pragma GCC unroll 4
    for (std::size_t row = 0; row < block; ++row) {
      const double factor = b[row][r];
      left[row] += factor * first;
      right[row] += factor * second;
    }
  }
  for (std::size_t row = 0; row < block; ++row) {
    std::memcpy(sums + row * block, &left[row], sizeof left[row]);
    std::memcpy(sums + row * block + 2, &right[row], sizeof right[row]);
  }
}

// Calls use(row, column, sum) for each element of B [rows, rank] times A [rank, cols].
template <class Use>
void multiply(const std::vector<float>& b, const std::vector<float>& a, std::size_t rows, std::size_t cols,
              const Use& use) {
  const std::size_t rank = a.size() / cols;
  std::vector<double> packed(rank * strip);
  double sums[block * block];
  for (std::size_t first = 0; first < cols; first += strip) {
    pack_strip(a, cols, first, packed);
    const std::size_t last = std::min(first + strip, cols);
    for (std::size_t row = 0; row < rows; row += block) {
      check_cancelled();
      std::array<const float*, block> factors;
      for (std::size_t i = 0; i < block; ++i) factors[i] = b.data() + std::min(row + i, rows - 1) * rank;
      for (std::size_t col = first; col < last; col += block) {
        multiply_block(factors, packed.data() + (col - first) * rank, rank, sums);
        for (std::size_t i = 0; i < block * block; ++i) {
          const std::size_t at_row = row + i / block, at_col = col + i % block;
          if (at_row < rows && at_col < cols) use(at_row, at_col, sums[i]);
        }
      }
    }
  }
}

// Each result is rounded once.
StoredTensor merged(const StoredTensor& weight, const std::string& module, const LoraPair& pair, const LoraFile& lora) {
  const std::size_t rows = weight.shape[0], cols = weight.shape[1];
  const std::vector<float> a = finite_floats(*pair.a, module + ".lora.A.weight", lora.path);
  const std::vector<float> b = finite_floats(*pair.b, module + ".lora.B.weight", lora.path);
  const std::vector<float> w = to_floats(weight);
  std::vector<std::byte> bytes(w.size() * sizeof(float));
  std::optional<std::pair<std::size_t, double>> overflow;  // the row and the sum of the first
  multiply(b, a, rows, cols, [&](std::size_t row, std::size_t col, double sum) {
    const std::size_t at = row * cols + col;
    const float value = static_cast<float>(w[at] + lora.scale * sum);
    if (!std::isfinite(value) && std::isfinite(w[at]) && !(overflow && overflow->first <= row)) overflow = {row, sum};
    std::memcpy(bytes.data() + at * sizeof(float), &value, sizeof value);
  });
  if (overflow) {
    throw Error(
        fmt::format("{}: its product for {} times {} is {} in row {}, expected a finite f32; use a smaller "
                    "scale or another LoRA",
                    lora.path, module, lora.scale, overflow->second, overflow->first));
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
  const auto value = number_in<double>(scale);
  if (!value || !std::isfinite(*value)) {
    throw UsageError(
        fmt::format("LoRA {}: its scale is {}, expected a number, as in a.pth:0.5", quote(argument), quote(scale)),
        Setting::lora);
  }
  return {argument.substr(0, colon), *value};
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
  LoraMerge merge = merge_lora(tensors, pairs, lora);
  merge.base_tensors = others.size();
  return merge;
}

}  // namespace minimind
