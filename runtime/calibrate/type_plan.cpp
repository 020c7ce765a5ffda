#include "runtime/calibrate/type_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <sstream>
#include <utility>

#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

std::size_t bytes_of(const std::vector<PlannedTensor>& tensors) {
  std::size_t sum = 0;
  for (const PlannedTensor& tensor : tensors) sum += tensor.choice().bytes;
  return sum;
}

// Sorts by size and drops types that another of the same size or less beats.
void keep_useful(std::vector<TypeChoice>& choices) {
  std::stable_sort(choices.begin(), choices.end(), [](const TypeChoice& a, const TypeChoice& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.loss < b.loss;
  });
  std::vector<TypeChoice> useful;
  for (const TypeChoice& choice : choices) {
    if (useful.empty() || choice.loss < useful.back().loss) useful.push_back(choice);
  }
  choices = std::move(useful);
}

// Chooses exactly, except that the bytes beyond the smallest types are rounded up to whole units: dynamic programming
// over the units left.
void choose_in_units(std::vector<PlannedTensor>& tensors, std::size_t budget) {
  constexpr std::size_t most_units = 50000;
  const std::size_t left = budget - bytes_of(tensors), unit = left / most_units + 1, units = left / unit;
  const auto units_of = [&](const PlannedTensor& tensor, std::size_t choice) {
    return (tensor.choices[choice].bytes - tensor.choices.front().bytes + unit - 1) / unit;
  };
  std::vector<double> loss(units + 1);  // [units], of the tensors so far
  std::vector<std::vector<std::uint8_t>> chosen;
  for (const PlannedTensor& tensor : tensors) {
    std::vector<double> with(units + 1, std::numeric_limits<double>::infinity());
    std::vector<std::uint8_t> choices(units + 1);
    for (std::size_t choice = 0; choice < tensor.choices.size(); ++choice) {
      for (std::size_t most = units_of(tensor, choice), all = most; all <= units; ++all) {
        const double sum = loss[all - most] + tensor.choices[choice].loss;
        if (sum >= with[all]) continue;
        with[all] = sum;
        choices[all] = static_cast<std::uint8_t>(choice);
      }
    }
    loss = std::move(with);
    chosen.push_back(std::move(choices));
  }
  std::size_t rest = units;
  for (std::size_t i = tensors.size(); i-- > 0;) {
    tensors[i].chosen = chosen[i][rest];
    rest -= units_of(tensors[i], tensors[i].chosen);
  }
}

// Takes larger types with the bytes that are left by rounding to units.
void fill_up(std::vector<PlannedTensor>& tensors, std::size_t budget) {
  std::size_t left = budget - bytes_of(tensors);
  for (PlannedTensor& tensor : tensors) {
    while (tensor.chosen + 1 < tensor.choices.size()) {
      const std::size_t more = tensor.choices[tensor.chosen + 1].bytes - tensor.choice().bytes;
      if (more > left) break;
      left -= more;
      ++tensor.chosen;
    }
  }
}

}  // namespace

bool choose_types(std::vector<PlannedTensor>& tensors, std::size_t budget) {
  for (PlannedTensor& tensor : tensors) {
    keep_useful(tensor.choices);
    tensor.chosen = 0;
  }
  if (bytes_of(tensors) > budget) return false;
  choose_in_units(tensors, budget);
  fill_up(tensors, budget);
  return true;
}

std::string type_plan_text(const std::vector<PlannedTensor>& tensors) {
  std::size_t width = 6, weights = 0;
  double loss = 0;
  for (const PlannedTensor& tensor : tensors) width = std::max(width, tensor.name.size());
  std::string text = fmt::format("# {:<{}}  {:<6}  {:>6}  {:>9}\n", "tensor", width - 2, "type", "bits", "KL about");
  for (const PlannedTensor& tensor : tensors) {
    const TypeChoice& choice = tensor.choice();
    text += fmt::format("{:<{}}  {:<6}  {:>6.3f}  {:>9.6f}\n", tensor.name, width, name_of(choice.type),
                        8.0 * static_cast<double>(choice.bytes) / static_cast<double>(tensor.weights), choice.loss);
    weights += tensor.weights;
    loss += choice.loss;
  }
  const std::size_t bytes = bytes_of(tensors);
  return text + fmt::format("# {:<{}}  {:<6}  {:>6.3f}  {:>9.6f}\n", "all", width - 2, "",
                            8.0 * static_cast<double>(bytes) / static_cast<double>(std::max<std::size_t>(weights, 1)),
                            loss);
}

std::map<std::string, DType> parse_type_plan(const std::string& text, const std::string& name) {
  std::map<std::string, DType> plan;
  std::istringstream lines(text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string place = fmt::format("{}: line {}", name, ++number);
    std::istringstream words(line.substr(0, line.find('#')));
    std::string tensor, type;
    if (!(words >> tensor)) continue;
    if (!(words >> type)) {
      throw Error(
          fmt::format("{} is {}, expected a tensor and its type, e.g. blk.0.attn_q.weight q5_0", place, quote(line)));
    }
    const auto row =
        std::find_if(std::begin(dtype_rows), std::end(dtype_rows), [&](const DTypeRow& of) { return of.name == type; });
    if (row == std::end(dtype_rows)) {
      throw Error(
          fmt::format("{}: the type of {} is {}, expected e.g. f16, q8_0, q6_k or iq4_nl", place, tensor, quote(type)));
    }
    if (!plan.emplace(tensor, row->type).second) {
      throw Error(fmt::format("{}: {} is repeated, expected one line per tensor; remove one", place, tensor));
    }
  }
  if (plan.empty()) {
    throw Error(fmt::format(
        "{}: has no tensors, expected lines of a tensor and its type, as a conversion to a size prints them", name));
  }
  return plan;
}

}  // namespace minimind
