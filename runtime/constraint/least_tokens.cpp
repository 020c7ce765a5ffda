#include "runtime/constraint/least_tokens.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace minimind {
namespace {

class LeastTokens final : public Constraint {
 public:
  LeastTokens(std::size_t least, std::unique_ptr<Constraint> other, const UnconstrainedText& text)
      : left_(least), other_(std::move(other)), ends_(text.end_tokens.begin(), text.end_tokens.end()) {
    std::erase_if(ends_, [&](std::int32_t token) { return static_cast<std::size_t>(token) >= text.vocab_size; });
    without_ends_.resize(text.vocab_size);
  }

  bool prepare() override {
    if (other_ && !other_->prepare()) return false;
    if (!std::exchange(updated_, true)) update();
    return true;
  }

  std::span<const std::uint8_t> allowed() override {
    while (!prepare()) continue;
    if (left_ > 0 && continues_) return without_ends_;
    return other_ ? other_->allowed() : std::span<const std::uint8_t>();
  }

  void accept(std::int32_t token, std::size_t tokens_left) override {
    if (other_) other_->accept(token, tokens_left);
    if (left_ == 0) return;
    --left_;
    updated_ = false;
  }

  void forget() override {
    if (other_) other_->forget();
  }

  bool finished() override { return other_ && other_->finished(); }
  bool conforms(std::string_view text) override { return !other_ || other_->conforms(text); }

 private:
  void update() {
    if (left_ == 0) return;
    const std::span<const std::uint8_t> others = other_ ? other_->allowed() : std::span<const std::uint8_t>();
    if (others.empty()) {
      std::ranges::fill(without_ends_, 1);
    } else {
      std::ranges::copy(others, without_ends_.begin());
    }
    for (const std::int32_t token : ends_) without_ends_[static_cast<std::size_t>(token)] = 0;
    continues_ = std::ranges::find(without_ends_, 1) != without_ends_.end();
  }

  std::size_t left_;  // tokens before an end token may come
  const std::unique_ptr<Constraint> other_;
  std::vector<std::int32_t> ends_;
  std::vector<std::uint8_t> without_ends_;  // [vocab], while left_ > 0
  bool continues_ = true;                   // some token of it is allowed
  bool updated_ = false;                    // these two are of the text so far
};

}  // namespace

MakeConstraint with_least_tokens(std::size_t least, MakeConstraint other) {
  return [least, other = std::move(other)](const UnconstrainedText& text) -> std::unique_ptr<Constraint> {
    return std::make_unique<LeastTokens>(least, other ? other(text) : nullptr, text);
  };
}

}  // namespace minimind
