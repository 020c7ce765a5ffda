#include "runtime/inside/recording.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>

#include "runtime/engine/context.h"
#include "runtime/engine/forward.h"
#include "weights/base/error.h"
#include "weights/model/tensor_names.h"
#include "weights/tensor/shape.h"

namespace minimind {
namespace {

constexpr std::size_t nowhere = SIZE_MAX;

std::size_t per_token(const MixtureOfExperts& moe) {
  return moe.experts_per_token + moe.experts.size() - moe.routed_experts;
}

void check_index(const char* name, const std::optional<std::size_t>& index, std::size_t count) {
  if (!index || *index < count) return;
  throw Error(fmt::format("{} is {}, expected 0 to {}", name, *index, count - 1));
}

// The engine shows the memory that it then computes with, which is its own and not constant.
Matrix<float> writable(Matrix<const float> values) {
  return {const_cast<float*>(values.data), values.rows, values.cols};
}

void clear_columns(Matrix<float> values, Range columns) {
  for (std::size_t i = 0; i < values.rows; ++i) std::fill_n(values.row(i) + columns.begin, columns.size(), 0.0f);
}

bool is_of_expert(const Point& point) {
  return point.expert.has_value();
}

}  // namespace

void check_part(const Model& model, const SwitchedOff& part) {
  check_index("layer", part.layer, model.layers.size());
  if (part.head.has_value() == (part.expert || part.neuron)) {
    throw Error("the part of a layer is unclear, expected a head, an expert, a neuron, or a neuron of an expert");
  }
  check_index("head", part.head, model.config.num_attention_heads);
  const auto* const moe = std::get_if<MixtureOfExperts>(&model.layers[part.layer].mlp);
  if (part.expert && !moe) {
    throw Error(fmt::format("expert is {}, expected none, because layer {} has no experts", *part.expert, part.layer));
  }
  if (part.neuron && moe && !part.expert) throw Error("expert is missing, expected the expert that the neuron is of");
  if (moe) check_index("expert", part.expert, moe->experts.size());
  if (!part.neuron) return;
  const FeedForward& ffn = moe ? moe->experts[*part.expert] : std::get<FeedForward>(model.layers[part.layer].mlp);
  check_index("neuron", part.neuron, ffn.up_proj.rows());
}

Recording::Recording(const Model& model, const kernels::Table& kernels, std::vector<Point> points, std::size_t tokens,
                     std::vector<SwitchedOff> without)
    : model_(model),
      kernels_(kernels),
      points_(std::move(points)),
      without_(std::move(without)),
      tokens_(tokens),
      layer_(model.layers.size()) {
  const auto count = most_values(points_, tokens);
  if (!count || *count > largest_recording / sizeof(float)) {
    throw Error(
        fmt::format("the values of {} points for {} tokens may take {} bytes, expected at most {}; choose fewer points "
                    "or layers, or "
                    "a shorter text",
                    points_.size(), tokens, count && *count <= SIZE_MAX / 4 ? std::to_string(*count * 4) : "over 2^64",
                    largest_recording));
  }
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const Point& point = points_[i];
    by_name_[point.name] = i;
    if (!point.shown.empty()) {
      by_key_[{point.shown, {point.layer.value_or(model.layers.size()), point.expert.value_or(nowhere)}}] = i;
    }
    values_.emplace_back(is_of_expert(point) ? 0 : *element_count(shape_for(point, tokens)));
  }
}

std::vector<std::size_t> Recording::shape(std::size_t index) const {
  const Point& point = points_[index];
  std::vector<std::size_t> shape = shape_for(point, tokens_);
  if (is_of_expert(point)) shape.front() = values_[index].size() / shape.back();
  return shape;
}

std::span<const float> Recording::row(const std::string& name, std::size_t token) const {
  const std::vector<float>& all = values_[by_name_.at(name)];
  const std::size_t width = all.size() / tokens_;
  return std::span(all).subspan(token * width, width);
}

std::span<const float> Recording::row(std::size_t layer, std::string_view point, std::size_t token) const {
  return row(point.empty() ? fmt::format("model.layers.{}", layer) : layer_tensor(layer, point), token);
}

const MixtureOfExperts* Recording::mixture() const {
  return layer_ < model_.layers.size() ? std::get_if<MixtureOfExperts>(&model_.layers[layer_].mlp) : nullptr;
}

std::size_t Recording::find(std::string_view shown, std::size_t expert) const {
  const auto found = by_key_.find({shown, {layer_, expert}});
  return found == by_key_.end() ? nowhere : found->second;
}

std::size_t Recording::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nowhere : found->second;
}

void Recording::see(std::string_view shown, Matrix<const float> values, std::size_t row, std::size_t head) {
  if (shown == "embed_tokens") {
    first_ = first_ + batch_;
    batch_ = values.rows;
    layer_ = model_.layers.size();
    assert(first_ + batch_ <= tokens_);
  } else if (shown == "input_layernorm") {
    layer_ = layer_ == model_.layers.size() ? 0 : layer_ + 1;
  } else if (shown == "norm") {
    layer_ = model_.layers.size();
  }
  const MixtureOfExperts* const moe = mixture();
  if (moe && shown == "mlp.gate") choose(*moe, values);
  if (!without_.empty()) switch_off(shown, values, row);
  if (moe && shown.starts_with("mlp.") && shown != "mlp.gate") return see_expert(*moe, shown, values, row);
  if (moe && shown == "output") add_experts(*moe);
  const std::size_t index = find(shown, nowhere);
  if (index == nowhere) return;
  const std::vector<Axis>& axes = points_[index].axes;
  const bool of_one_head = axes.size() == 3 && values.cols != axes[1].size * axes[2].size;
  std::size_t width = values_[index].size() / tokens_;
  float* const to = values_[index].data() + (first_ + row) * width;
  if (of_one_head) {
    std::copy_n(values.data, values.cols, to + head * (width / axes[1].size));
  } else {
    std::copy_n(values.data, values.rows * values.cols, to);
  }
}

// A head is off if its output is 0, a neuron if its activation is, and an expert if its output is.
void Recording::switch_off(std::string_view shown, Matrix<const float> values, std::size_t slot) const {
  const std::size_t head_dim = model_.config.head_dim;
  for (const SwitchedOff& part : without_) {
    if (part.layer != layer_) continue;
    if (part.head && shown == "self_attn.o_proj.input") {
      clear_columns(writable(values), {*part.head * head_dim, (*part.head + 1) * head_dim});
    }
    const bool is_its_ffn = !part.head && (!part.expert || *part.expert == expert_of(slot));
    if (is_its_ffn && part.neuron && shown == "mlp.down_proj.input") {
      clear_columns(writable(values), {*part.neuron, *part.neuron + 1});
    }
    if (is_its_ffn && !part.neuron && shown == "mlp.down_proj") clear_columns(writable(values), {0, values.cols});
  }
}

std::size_t Recording::expert_of(std::size_t slot) const {
  const auto after = std::upper_bound(routing_.first_slot.begin(), routing_.first_slot.end(), slot);
  return static_cast<std::size_t>(after - routing_.first_slot.begin()) - 1;
}

// Routes the tokens of this pass as Forward does, from the scores that it showed.
void Recording::choose(const MixtureOfExperts& moe, Matrix<const float> scores) {
  const std::size_t all = per_token(moe), slots = scores.rows * all;
  routing_ = {.expert = std::vector<std::int32_t>(slots),
              .weight = std::vector<float>(slots, 1.0f),
              .slot = std::vector<std::size_t>(slots),
              .first_slot = std::vector<std::size_t>(moe.experts.size() + 1),
              .token_of_slot = std::vector<std::size_t>(slots)};
  const std::size_t chosen = find(layer_tensor(layer_, "mlp.experts.chosen"));
  const std::size_t weights = find(layer_tensor(layer_, "mlp.experts.weights"));
  const std::size_t k = moe.experts_per_token;
  for (std::size_t t = 0; t < scores.rows; ++t) {
    std::vector<float> own(scores.row(t), scores.row(t) + scores.cols);
    std::int32_t* const expert = &routing_.expert[t * all];
    float* const weight = &routing_.weight[t * all];
    choose_experts(kernels_, own.data(), moe.routed_experts, k, moe.normalize, expert, weight);
    for (std::size_t i = k; i < all; ++i) expert[i] = static_cast<std::int32_t>(moe.routed_experts + i - k);
    if (chosen != nowhere) std::copy_n(expert, k, &values_[chosen][(first_ + t) * k]);
    if (weights != nowhere) std::copy_n(weight, k, &values_[weights][(first_ + t) * k]);
  }
  assign_slots(moe, scores.rows, routing_);
  expert_outputs_.resize(slots * model_.config.hidden_size);
}

void Recording::see_expert([[maybe_unused]] const MixtureOfExperts& moe, std::string_view shown,
                           Matrix<const float> values, std::size_t slot) {
  const std::size_t expert = expert_of(slot);
  assert(expert < moe.experts.size());
  if (shown == "mlp.down_proj") {
    std::copy_n(values.data, values.rows * values.cols, &expert_outputs_[slot * values.cols]);
  }
  const std::size_t index = find(shown, expert);
  if (index != nowhere) values_[index].insert(values_[index].end(), values.data, values.row(values.rows));
}

// The sum that Forward adds to the residual stream, which it does not keep.
void Recording::add_experts(const MixtureOfExperts& moe) {
  const std::size_t index = find(fmt::format("model.layers.{}.mlp", layer_));
  if (index == nowhere) return;
  const std::size_t all = per_token(moe), d = model_.config.hidden_size;
  for (std::size_t i = 0; i < batch_ * all; ++i) {
    kernels_.add_scaled(&values_[index][(first_ + i / all) * d], &expert_outputs_[routing_.slot[i] * d],
                        routing_.weight[i], d);
  }
}

Recording record(const Model& model, const kernels::Table& kernels, KvType kv_type, std::vector<Point> points,
                 std::span<const std::int32_t> tokens, const std::function<void(std::size_t)>& progress,
                 std::vector<SwitchedOff> without) {
  check_tokens(tokens, model.config.vocab_size);
  for (const SwitchedOff& part : without) check_part(model, part);
  Recording recording(model, kernels, std::move(points), tokens.size(), std::move(without));
  Context context(model.config, tokens.size(), kv_type);
  Forward forward(model, kernels, 1, std::min(tokens.size(), batch_tokens), tokens.size());
  forward.set_observer(&recording);
  std::vector<float> logits(forward.max_tokens() * model.config.vocab_size);
  for (std::size_t done = 0; done < tokens.size();) {
    const std::size_t count = std::min(forward.max_tokens(), tokens.size() - done);
    forward.run(context, tokens.subspan(done, count), {logits.data(), count, model.config.vocab_size});
    progress(done += count);
  }
  return recording;
}

}  // namespace minimind
