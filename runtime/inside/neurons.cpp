#include "runtime/inside/neurons.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "runtime/inside/vector_math.h"
#include "weights/base/cancel.h"
#include "weights/model/tensor_names.h"

namespace minimind {
namespace {

// A neuron with its column of down_proj, times all that it is multiplied by: what it adds to the residual stream.
struct AddedColumn {
  StrongNeuron neuron;
  std::vector<float> column{};
};

class Neurons {
 public:
  Neurons(const Model& model, const Recording& recording, std::size_t token)
      : model_(model), recording_(recording), token_(token), d_(model.config.hidden_size) {}

  std::vector<AddedColumn> strongest(std::size_t layer, std::size_t most) const {
    const auto* const moe = std::get_if<MixtureOfExperts>(&model_.layers[layer].mlp);
    std::vector<AddedColumn> all;
    if (!moe) {
      const std::span<const float> activations = recording_.row(layer, "mlp.down_proj.input", token_);
      return strongest_of(std::get<FeedForward>(model_.layers[layer].mlp), activations, std::nullopt, 1, most);
    }
    const std::span<const float> chosen = recording_.row(layer, "mlp.experts.chosen", token_);
    const std::span<const float> weights = recording_.row(layer, "mlp.experts.weights", token_);
    const auto add = [&](std::size_t expert, float weight) {
      std::vector<AddedColumn> some =
          strongest_of(moe->experts[expert], activations_of(layer, *moe, expert), expert, weight, most);
      std::move(some.begin(), some.end(), std::back_inserter(all));
    };
    for (std::size_t i = 0; i < chosen.size(); ++i) add(static_cast<std::size_t>(chosen[i]), weights[i]);
    for (std::size_t expert = moe->routed_experts; expert < moe->experts.size(); ++expert) add(expert, 1);
    std::stable_sort(all.begin(), all.end(),
                     [](const AddedColumn& a, const AddedColumn& b) { return a.neuron.norm > b.neuron.norm; });
    if (all.size() > most) all.resize(most);
    return all;
  }

 private:
  // Of an expert that the token chose: its values have a row for each such token, in order.
  std::span<const float> activations_of(std::size_t layer, const MixtureOfExperts& moe, std::size_t expert) const {
    const std::string name = expert < moe.routed_experts
                                 ? fmt::format("mlp.experts.{}.down_proj.input", expert)
                                 : fmt::format("mlp.shared_experts.{}.down_proj.input", expert - moe.routed_experts);
    std::size_t before = token_;
    if (expert < moe.routed_experts) {
      before = 0;
      for (std::size_t t = 0; t < token_; ++t) {
        const std::span<const float> chosen = recording_.row(layer, "mlp.experts.chosen", t);
        before += std::find(chosen.begin(), chosen.end(), static_cast<float>(expert)) != chosen.end();
      }
    }
    const std::size_t width = moe.experts[expert].up_proj.rows();
    return recording_.values(layer_tensor(layer, name)).subspan(before * width, width);
  }

  std::vector<AddedColumn> strongest_of(const FeedForward& ffn, std::span<const float> activations,
                                        std::optional<std::size_t> expert, float weight, std::size_t most) const {
    check_cancelled();
    const std::size_t width = activations.size();
    std::vector<float> down(d_ * width), norms(width);
    for (std::size_t i = 0; i < d_; ++i) {
      read_row(ffn.down_proj, i, &down[i * width]);
      for (std::size_t j = 0; j < width; ++j) norms[j] += down[i * width + j] * down[i * width + j];
    }
    for (std::size_t j = 0; j < width; ++j) norms[j] = std::sqrt(norms[j]) * std::abs(activations[j] * weight);
    std::vector<AddedColumn> strongest;
    for (const std::size_t j : largest(norms, most)) {
      std::vector<float> column(d_);
      for (std::size_t i = 0; i < d_; ++i) column[i] = down[i * width + j] * activations[j] * weight;
      strongest.push_back({{j, expert, activations[j], norms[j]}, std::move(column)});
    }
    return strongest;
  }

  const Model& model_;
  const Recording& recording_;
  std::size_t token_, d_;
};

// Sets what each neuron raises: the products of its column with the rows of the output matrix, through the last norm.
void add_raised(const Model& model, double scale, std::vector<std::vector<AddedColumn>>& layers, std::size_t most) {
  const std::size_t d = model.config.hidden_size, vocabulary = model.config.vocab_size;
  std::vector<AddedColumn*> all;
  for (std::vector<AddedColumn>& layer : layers) {
    for (AddedColumn& each : layer) all.push_back(&each);
  }
  std::vector<float> columns, added(all.size() * vocabulary);
  for (const AddedColumn* const each : all) {
    for (std::size_t i = 0; i < d; ++i) columns.push_back(each->column[i] * static_cast<float>(model.norm[i] * scale));
  }
  multiply_output(model, columns, [&](std::size_t token, std::span<const float> products) {
    for (std::size_t i = 0; i < all.size(); ++i) added[i * vocabulary + token] = products[i];
  });
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::span<const float> own = std::span(added).subspan(i * vocabulary, vocabulary);
    for (const std::size_t token : largest(own, most)) {
      all[i]->neuron.raises.emplace_back(static_cast<std::int32_t>(token), own[token]);
    }
  }
}

}  // namespace

std::vector<Point> points_of_neurons(const Model& model) {
  std::vector<Point> points = points_of(model);
  std::erase_if(points, [](const Point& point) {
    return !point.name.ends_with("down_proj.input") && !point.name.ends_with(".experts.chosen") &&
           !point.name.ends_with(".experts.weights") && point.shown != "output";
  });
  return points;
}

std::vector<std::vector<StrongNeuron>> strong_neurons(const Model& model, const Recording& recording, std::size_t token,
                                                      std::size_t most, std::size_t most_tokens) {
  const Neurons neurons(model, recording, token);
  std::vector<std::vector<AddedColumn>> layers;
  for (std::size_t i = 0; i < model.layers.size(); ++i) layers.push_back(neurons.strongest(i, most));
  const std::span<const float> last = recording.row(model.layers.size() - 1, "", token);
  add_raised(model, norm_scale(last, model.config.rms_norm_eps), layers, most_tokens);
  std::vector<std::vector<StrongNeuron>> result;
  for (std::vector<AddedColumn>& layer : layers) {
    std::vector<StrongNeuron>& own = result.emplace_back();
    for (AddedColumn& each : layer) own.push_back(std::move(each.neuron));
  }
  return result;
}

}  // namespace minimind
