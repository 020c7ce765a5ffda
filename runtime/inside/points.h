#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/engine/model.h"

namespace minimind {

// The size of a dimension of a point's values, and what it counts.
struct Axis {
  std::string_view name;  // "tokens", "heads", "head_dim", ...
  std::size_t size;       // 0: as many as there are tokens, or tokens that chose the expert
};

// A place in a forward pass that can be looked at: the output of a module, as a forward hook of PyTorch sees it. With
// ".input" it is the module's input; q_rope, k_rope, scores, weights and chosen have names of their own, because no
// module of MiniMind's code has these values.
struct Point {
  std::string name;                   // "model.layers.0.self_attn.q_proj", in Hugging Face's style
  std::string_view shown;             // its name for Observer::see; empty if it is computed from others
  std::optional<std::size_t> layer;   // nullopt: before or after the layers
  std::optional<std::size_t> expert;  // an index in MixtureOfExperts::experts
  std::vector<Axis> axes;             // tokens first
  std::string formula;
};

// Returns all points of a model, in the order of the equations.
std::vector<Point> points_of(const Model& model);

// Returns the name that MiniMind's own code of that generation has for a point or a module, and its inverse.
std::string own_name(const Config& config, const std::string& name);
std::string hugging_face_name(const std::string& name);

// Returns the point that this name is most like, by its own name; nullopt if none is near.
std::optional<std::string> nearest_point(const Model& model, const std::string& name);

// Returns whether `name` has the form of `pattern`, in which * stands for any text and ? for any character.
bool matches(std::string_view pattern, std::string_view name);

// Returns the points that match any of the patterns, by either name, and are in one of these layers. No patterns: all;
// no layers: all, and the points outside of layers. Throws UsageError for a pattern without points, naming the nearest
// one, and for a layer that the model does not have.
std::vector<Point> chosen_points(const Model& model, std::span<const std::string> patterns,
                                 std::span<const std::size_t> layers);

// Returns the shape of a point's values for `tokens` tokens.
std::vector<std::size_t> shape_for(const Point& point, std::size_t tokens);

// Returns how many values these points have at most for `tokens` tokens, if every token went through every expert;
// nullopt if that overflows.
std::optional<std::size_t> most_values(std::span<const Point> points, std::size_t tokens);

}  // namespace minimind
