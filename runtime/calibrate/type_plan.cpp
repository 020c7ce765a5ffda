#include "runtime/calibrate/type_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>

#include "weights/io/error.h"
#include "weights/io/quote.h"

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

// A change of one tensor to a larger type.
struct Upgrade {
  PlannedTensor* tensor = nullptr;
  std::size_t to = 0;
  double gain = 0;  // of loss
};

// Returns the upgrade of at most `bytes` with the largest gain per byte, or with `any`, the largest gain.
Upgrade best_upgrade(std::vector<PlannedTensor>& tensors, std::size_t bytes) {
  Upgrade best;
  double best_rate = 0;
  for (PlannedTensor& tensor : tensors) {
    for (std::size_t to = tensor.chosen + 1; to < tensor.choices.size(); ++to) {
      const std::size_t more = tensor.choices[to].bytes - tensor.choice().bytes;
      const double gain = tensor.choice().loss - tensor.choices[to].loss;
      if (more > bytes || gain <= best_rate * static_cast<double>(more)) continue;
      best_rate = gain / static_cast<double>(more);
      best = {&tensor, to, gain};
    }
  }
  return best;
}

}  // namespace

// Takes the upgrade that gains most per byte until none fits: the lower convex hull of sizes and losses, then what is
// left is filled.
bool choose_types(std::vector<PlannedTensor>& tensors, std::size_t budget) {
  for (PlannedTensor& tensor : tensors) {
    keep_useful(tensor.choices);
    tensor.chosen = 0;
  }
  if (bytes_of(tensors) > budget) return false;
  while (true) {
    const Upgrade upgrade = best_upgrade(tensors, budget - bytes_of(tensors));
    if (!upgrade.tensor) return true;
    upgrade.tensor->chosen = upgrade.to;
  }
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
      throw Error(fmt::format("{} is {}, expected a tensor and its type, e.g. blk.0.attn_q.weight q5_0", place,
                              quote(line)));
    }
    const auto row = std::find_if(std::begin(dtype_rows), std::end(dtype_rows),
                                  [&](const DTypeRow& of) { return of.name == type; });
    if (row == std::end(dtype_rows)) {
      throw Error(fmt::format("{}: the type of {} is {}, expected e.g. f16, q8_0, q6_k or iq4_nl", place, tensor,
                              quote(type)));
    }
    if (!plan.emplace(tensor, row->type).second) {
      throw Error(fmt::format("{}: {} is repeated, expected one line per tensor; remove one", place, tensor));
    }
  }
  if (plan.empty()) {
    throw Error(fmt::format("{}: has no tensors, expected lines of a tensor and its type; "
                            "`convert --size` prints such a plan",
                            name));
  }
  return plan;
}

}  // namespace minimind
