#include "runtime/inside/points.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "weights/base/error.h"
#include "weights/base/suggestion.h"
#include "weights/base/text.h"
#include "weights/model/hidden_act.h"
#include "weights/model/minimind_names.h"
#include "weights/model/tensor_names.h"
#include "weights/tensor/shape.h"

namespace minimind {
namespace {

constexpr std::string_view norm_formula = "x / sqrt(mean(x²) + eps) * weight";

// Collects the points of a model, in order.
class Points {
 public:
  explicit Points(const Model& model) : model_(model), config_(model.config) {}

  std::vector<Point> all() {
    add("model.embed_tokens", "embed_tokens", {hidden()}, "x = embed_tokens[token]");
    for (std::size_t i = 0; i < model_.layers.size(); ++i) add_layer(i);
    layer_.reset();
    add("model.norm", "norm", {hidden()}, fmt::format("n = {}", norm_formula));
    add("lm_head", "lm_head", {{"vocabulary", config_.vocab_size}},
        model_.lm_head ? "logits = W_lm_head n" : "logits = embed_tokens n, because the matrices are tied");
    return std::move(points_);
  }

 private:
  Axis hidden() const { return {"hidden", config_.hidden_size}; }

  void add(std::string name, std::string_view shown, std::vector<Axis> axes, std::string formula) {
    axes.insert(axes.begin(), Axis{expert_is_routed_ ? "tokens of the expert" : "tokens", 0});
    points_.push_back({std::move(name), shown, layer_, expert_, std::move(axes), std::move(formula)});
  }

  // A point of the current layer whose name is also that which Forward shows.
  void add(std::string_view shown, std::vector<Axis> axes, std::string formula) {
    add(layer_tensor(*layer_, shown), shown, std::move(axes), std::move(formula));
  }

  void add_layer(std::size_t index) {
    layer_ = index;
    const Layer& layer = model_.layers[index];
    add("input_layernorm", {hidden()}, fmt::format("n = {}", norm_formula));
    add_attention(layer.attention);
    add("post_attention_layernorm.input", {hidden()}, "x = x + o_proj");
    add("post_attention_layernorm", {hidden()}, fmt::format("n = {}", norm_formula));
    if (const auto* const ffn = std::get_if<FeedForward>(&layer.mlp)) {
      add_feed_forward("mlp.", *ffn);
    } else {
      add_experts(std::get<MixtureOfExperts>(layer.mlp));
    }
    add(fmt::format("model.layers.{}", index), "output", {hidden()}, "x = x + mlp");
  }

  void add_attention(const Attention& attention) {
    const Axis heads{"heads", config_.num_attention_heads}, kv_heads{"kv_heads", config_.num_key_value_heads};
    const Axis head_dim{"head_dim", config_.head_dim}, positions{"positions", 0};
    add("self_attn.q_proj", {heads, head_dim}, "q = W_q n");
    add("self_attn.k_proj", {kv_heads, head_dim}, "k = W_k n");
    add("self_attn.v_proj", {kv_heads, head_dim}, "v = W_v n");
    if (!attention.q_norm.empty()) {
      add("self_attn.q_norm", {heads, head_dim}, fmt::format("q = {} of each head", norm_formula));
      add("self_attn.k_norm", {kv_heads, head_dim}, fmt::format("k = {} of each head", norm_formula));
    }
    const std::string rotated = fmt::format(
        "(a, b) = (a cos - b sin, a sin + b cos) for the pairs ({}), by the angle position / theta^(2i / head_dim)",
        rope_layout(config_.family) == RopeLayout::halves ? "i, i + head_dim / 2" : "2i, 2i + 1");
    add("self_attn.q_rope", {heads, head_dim}, rotated);
    add("self_attn.k_rope", {kv_heads, head_dim}, rotated);
    add("self_attn.scores", {heads, positions}, "s[t] = q · k[t] / sqrt(head_dim), t up to the token");
    add("self_attn.weights", {heads, positions}, "a = softmax(s); 0 for later positions");
    add("self_attn.o_proj.input", {heads, head_dim}, "h = sum over t of a[t] v[t]");
    add("self_attn.o_proj", {hidden()}, "o = W_o (h of all heads)");
  }

  void add_feed_forward(const std::string& prefix, const FeedForward& ffn) {
    const auto add_part = [&](std::string_view part, Axis axis, std::string formula) {
      add(layer_tensor(*layer_, prefix + std::string(part)), shown_of(part), {axis}, std::move(formula));
    };
    const Axis width{"intermediate", ffn.up_proj.rows()};
    const auto plus = [](const std::vector<float>& bias) { return bias.empty() ? "" : " + bias"; };
    const std::string_view act = name_of(config_.hidden_act);
    if (ffn.gate_proj) add_part("gate_proj", width, fmt::format("g = W_gate n{}", plus(ffn.gate_bias)));
    add_part("up_proj", width, fmt::format("u = W_up n{}", plus(ffn.up_bias)));
    add_part("down_proj.input", width,
             fmt::format("h = {}", ffn.gate_proj ? fmt::format("{}(g) * u", act) : fmt::format("{}(u)", act)));
    add_part("down_proj", hidden(), fmt::format("W_down h{}", plus(ffn.down_bias)));
  }

  static std::string_view shown_of(std::string_view part) {
    return part == "gate_proj"         ? "mlp.gate_proj"
           : part == "up_proj"         ? "mlp.up_proj"
           : part == "down_proj.input" ? "mlp.down_proj.input"
                                       : "mlp.down_proj";
  }

  void add_experts(const MixtureOfExperts& moe) {
    const Axis chosen{"experts_per_token", moe.experts_per_token};
    add("mlp.gate", {{"experts", moe.routed_experts}}, "r = W_router n, the scores of the experts");
    add(layer_tensor(*layer_, "mlp.experts.chosen"), "", {chosen}, "the experts with the largest softmax(r), in order");
    add(layer_tensor(*layer_, "mlp.experts.weights"), "", {chosen},
        moe.normalize ? "w = softmax(r) of the chosen experts / their sum" : "w = softmax(r) of the chosen experts");
    for (std::size_t e = 0; e < moe.experts.size(); ++e) {
      expert_ = e;
      expert_is_routed_ = e < moe.routed_experts;
      add_feed_forward(expert_is_routed_ ? fmt::format("mlp.experts.{}.", e)
                                         : fmt::format("mlp.shared_experts.{}.", e - moe.routed_experts),
                       moe.experts[e]);
    }
    expert_.reset();
    expert_is_routed_ = false;
    add(layer_tensor(*layer_, "mlp"), "", {hidden()}, "sum over the experts of w * expert(n), shared ones with w = 1");
  }

  const Model& model_;
  const Config& config_;
  std::vector<Point> points_;
  std::optional<std::size_t> layer_, expert_;
  bool expert_is_routed_ = false;
};

bool is_old_style(const Config& config) {
  return config.family == Family::v1 || config.family == Family::v2_early;
}

}  // namespace

std::vector<Point> points_of(const Model& model) {
  return Points(model).all();
}

std::string own_name(const Config& config, const std::string& name) {
  std::string own = minimind_name(config.family, name + ".");
  own.pop_back();
  if (is_old_style(config)) replace_all(own, ".self_attn.", ".attention.");
  return own;
}

std::string hugging_face_name(const std::string& name) {
  std::string result = canonical_name(name + ".");
  result.pop_back();
  replace_all(result, ".attention.", ".self_attn.");
  return result;
}

std::optional<std::string> nearest_point(const Model& model, const std::string& name) {
  const std::string given = hugging_face_name(name);
  std::vector<std::string> names;
  for (const Point& point : points_of(model)) {
    if (!given.starts_with(point.name + ".")) names.push_back(point.name);  // the module of what is meant
  }
  const auto near = nearest(given, names);
  return near ? std::optional(own_name(model.config, *near)) : std::nullopt;
}

bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n]) && pattern[p] != '*') {
      ++p, ++n;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

namespace {

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  std::istringstream text(name);
  for (std::string part; std::getline(text, part, '.');) parts.push_back(part);
  return parts;
}

// A pattern whose first part, between dots, that no point has is the nearest one of those that points have there.
std::optional<std::string> nearest_pattern(const Model& model, const std::string& pattern) {
  std::vector<std::vector<std::string>> names;
  for (const Point& point : points_of(model)) {
    names.push_back(parts_of(point.name));
    if (!pattern.starts_with("model.") && point.name.starts_with("model.")) names.back().erase(names.back().begin());
  }
  std::vector<std::string> parts = parts_of(pattern);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::erase_if(names, [&](const auto& name) { return name.size() <= i; });
    std::vector<std::string> here;
    for (const auto& name : names) here.push_back(name[i]);
    std::erase_if(names, [&](const auto& name) { return !matches(parts[i], name[i]); });
    if (!names.empty()) continue;
    const auto near = nearest(parts[i], here);
    if (!near) return std::nullopt;
    parts[i] = *near;
    return fmt::format("{}", fmt::join(parts, "."));
  }
  return std::nullopt;
}

}  // namespace

std::vector<Point> chosen_points(const Model& model, std::span<const std::string> patterns,
                                 std::span<const std::size_t> layers) {
  for (const std::size_t layer : layers) {
    if (layer < model.layers.size()) continue;
    throw UsageError(fmt::format("layer {} does not exist, expected 0 to {}", layer, model.layers.size() - 1));
  }
  std::vector<Point> chosen;
  std::vector<bool> used(patterns.size());
  for (Point& point : points_of(model)) {
    const std::string own = own_name(model.config, point.name);
    bool matched = patterns.empty();
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      const std::string model_pattern = "model." + patterns[i];
      if (!matches(patterns[i], point.name) && !matches(patterns[i], own) && !matches(model_pattern, point.name))
        continue;
      matched = used[i] = true;
    }
    const bool in_layers =
        layers.empty() || (point.layer && std::find(layers.begin(), layers.end(), *point.layer) != layers.end());
    if (matched && in_layers) chosen.push_back(std::move(point));
  }
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    if (used[i]) continue;
    auto near = nearest_point(model, patterns[i]);
    if (!near) near = nearest_pattern(model, patterns[i]);
    throw UsageError(fmt::format("no point of the model is {}{}", quote(patterns[i]),
                                 near ? fmt::format("; did you mean {}?", *near) : ""));
  }
  if (chosen.empty()) throw UsageError("no chosen point is in the chosen layers");
  return chosen;
}

std::vector<std::size_t> shape_for(const Point& point, std::size_t tokens) {
  std::vector<std::size_t> shape;
  for (const Axis& axis : point.axes) shape.push_back(axis.size > 0 ? axis.size : tokens);
  return shape;
}

std::optional<std::size_t> most_values(std::span<const Point> points, std::size_t tokens) {
  std::size_t sum = 0;
  for (const Point& point : points) {
    const auto count = element_count(shape_for(point, tokens));
    if (!count || __builtin_add_overflow(sum, *count, &sum)) return std::nullopt;
  }
  return sum;
}

}  // namespace minimind
