#include "tools/commands/fold_tensors.h"

#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "weights/base/text.h"

namespace minimind {
namespace {

using Numbers = std::set<std::size_t>;

// A name such as "model.layers.3.mlp.experts.1.up_proj.weight": its numbers and the text around them.
struct NumberedName {
  std::vector<std::string> text;
  std::vector<std::size_t> numbers;  // one fewer than texts
};

// Splits a name at the number of the layer and, if it has one, of the expert.
NumberedName split(std::string_view name) {
  NumberedName result;
  for (const std::string_view before : {"layers.", "experts."}) {
    const std::size_t at = name.find(before);
    if (at == std::string_view::npos) continue;
    std::string_view rest = name.substr(at + before.size());
    const auto number = take_number<std::size_t>(rest);
    if (!number || !rest.starts_with('.')) continue;
    result.text.emplace_back(name.substr(0, at + before.size()));
    result.numbers.push_back(*number);
    name = rest;
  }
  result.text.emplace_back(name);
  return result;
}

// "0-2,5"
std::string ranges(const Numbers& numbers) {
  std::string text;
  for (auto number = numbers.begin(); number != numbers.end();) {
    const std::size_t first = *number;
    std::size_t last = first;
    for (++number; number != numbers.end() && *number == last + 1; ++number) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
  }
  return text;
}

// What tensors of a fold have in common: the text around the numbers of their names, type and shape.
using Alike = std::tuple<std::vector<std::string>, DType, std::vector<std::size_t>>;

// A set of layers and a set of experts; a fold has all pairs of the two.
std::map<Numbers, Numbers> layers_with_experts(const std::map<std::size_t, Numbers>& layers_of_expert) {
  std::map<Numbers, Numbers> experts_of;
  for (const auto& [expert, layers] : layers_of_expert) experts_of[layers].insert(expert);
  return experts_of;
}

}  // namespace

std::vector<FoldedTensors> fold_tensors(const StoredTensors& tensors) {
  std::vector<Alike> order;
  std::map<Alike, std::map<std::size_t, Numbers>> layers_of_expert;  // expert 0 if a name has none
  for (const auto& [name, tensor] : tensors) {
    NumberedName split_name = split(name);
    const std::vector<std::size_t> numbers = split_name.numbers;
    const Alike key{std::move(split_name.text), tensor.dtype, tensor.shape};
    if (!layers_of_expert.contains(key)) order.push_back(key);
    layers_of_expert[key][numbers.size() > 1 ? numbers[1] : 0].insert(numbers.empty() ? 0 : numbers[0]);
  }
  std::vector<FoldedTensors> folded;
  for (const Alike& key : order) {
    const auto& [text, dtype, shape] = key;
    for (const auto& [layers, experts] : layers_with_experts(layers_of_expert.at(key))) {
      std::string name = text[0];
      if (text.size() > 1) name += ranges(layers) + text[1];
      if (text.size() > 2) name += ranges(experts) + text[2];
      folded.push_back({std::move(name), dtype, shape});
    }
  }
  return folded;
}

}  // namespace minimind
