#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/engine/feed_forward.h"
#include "runtime/engine/kv_cache.h"
#include "runtime/engine/model.h"
#include "runtime/engine/thread_team.h"
#include "runtime/inside/points.h"
#include "runtime/kernels/kernels.h"

namespace minimind {

// A part of a layer that is switched off for all tokens: what it would add is 0. It is a head, an expert, or a neuron
// of an FFN or of an expert.
struct SwitchedOff {
  std::size_t layer = 0;
  std::optional<std::size_t> head{}, expert{}, neuron{};  // expert: in MixtureOfExperts::experts
};

// Throws Error if the model does not have such a part. The message starts with the member that is wrong, such as
// "head".
void check_part(const Model& model, const SwitchedOff& part);

// The most memory that the values of a recording may take.
inline constexpr std::size_t largest_recording = std::size_t{2} << 30;

// The values of chosen points for the tokens of one text. Every pass that it observes must be of tokens of this text,
// in order, and must request the logits of all of them.
class Recording : public Observer {
 public:
  // Allocates the memory of all points outside of experts. Throws Error if the values may take more than
  // largest_recording, naming the size. `model` and `kernels` must outlive this. The passes compute without the parts,
  // which must be the model's.
  Recording(const Model& model, const kernels::Table& kernels, std::vector<Point> points, std::size_t tokens,
            std::vector<SwitchedOff> without = {});

  void see(std::string_view shown, Matrix<const float> values, std::size_t row, std::size_t head) override;

  const std::vector<Point>& points() const { return points_; }
  // The values of points()[index], row-major, and their shape.
  std::span<const float> values(std::size_t index) const { return values_[index]; }
  std::vector<std::size_t> shape(std::size_t index) const;

  // Returns all values of a point of this name, which must be chosen.
  std::span<const float> values(const std::string& name) const { return values_[by_name_.at(name)]; }

  // Returns the values of one token at a point of this name, which must be chosen and not of an expert.
  std::span<const float> row(const std::string& name, std::size_t token) const;
  // The same of a layer's point, such as "mlp.gate"; "" is the layer's output.
  std::span<const float> row(std::size_t layer, std::string_view point, std::size_t token) const;

 private:
  // Of the point that Forward shows by that name in a layer, or in an expert of it; no layer is the number of layers,
  // no expert the number of experts.
  using Key = std::pair<std::string_view, std::pair<std::size_t, std::size_t>>;

  const MixtureOfExperts* mixture() const;
  std::size_t find(std::string_view shown, std::size_t expert) const;
  std::size_t find(const std::string& name) const;
  void switch_off(std::string_view shown, Matrix<const float> values, std::size_t slot) const;
  std::size_t expert_of(std::size_t slot) const;
  void choose(const MixtureOfExperts& moe, Matrix<const float> scores);
  void see_expert(const MixtureOfExperts& moe, std::string_view shown, Matrix<const float> values, std::size_t slot);
  void add_experts(const MixtureOfExperts& moe);

  const Model& model_;
  const kernels::Table& kernels_;
  std::vector<Point> points_;
  std::vector<SwitchedOff> without_;
  std::vector<std::vector<float>> values_;
  std::map<Key, std::size_t> by_key_;
  std::map<std::string, std::size_t> by_name_;
  std::size_t tokens_, first_ = 0, batch_ = 0;  // the tokens of the present pass are [first_, first_ + batch_)
  std::size_t layer_;
  Routing routing_;
  std::vector<float> expert_outputs_;  // [slots, d]
};

// Runs the tokens without some parts and records these points, with an exact pass on one thread. Calls progress(tokens
// done) after each batch. Throws Error as Recording, check_tokens() and check_part() do, and Cancelled.
Recording record(const Model& model, const kernels::Table& kernels, KvType kv_type, std::vector<Point> points,
                 std::span<const std::int32_t> tokens, const std::function<void(std::size_t)>& progress,
                 std::vector<SwitchedOff> without = {});

}  // namespace minimind
