#include "runtime/generate/marked_constraint.h"

#include <algorithm>
#include <utility>

namespace minimind {

MarkedConstraint::MarkedConstraint(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie,
                                   const Tokenizer& tokenizer, std::size_t vocab_size,
                                   std::span<const std::int32_t> end_tokens, std::size_t tokens_left,
                                   std::optional<GrammarMarks> marks)
    : marks_(std::move(marks)),
      end_tokens_(end_tokens.begin(), end_tokens.end()),
      constraint_(std::move(grammar), std::move(trie), tokenizer, vocab_size, end_tokens, tokens_left),
      shortest_(constraint_.bytes_to_end()),
      finished_(constraint_.finished()) {
  if (!marks_) return;
  allowed_.resize(vocab_size);
  if (!marks_->starts_open) go_outside(tokens_left);
}

std::span<const std::uint8_t> MarkedConstraint::allowed() const {
  if (place_ == Place::text) return constraint_.allowed();
  return all_allowed_ ? std::span<const std::uint8_t>() : allowed_;
}

bool MarkedConstraint::conforms(std::string_view text) const {
  return marks_ ? place_ == Place::outside : constraint_.conforms(text);
}

void MarkedConstraint::accept(std::int32_t token, std::size_t tokens_left) {
  switch (place_) {
    case Place::text:
      constraint_.accept(token, tokens_left);
      finished_ = constraint_.finished();
      if (finished_ && marks_) expect_mark(marks_->close, Place::outside);
      return;
    case Place::outside:
      if (token == marks_->open.front()) expect_mark(std::span(marks_->open).subspan(1), Place::text);
      break;
    case Place::mark:
      mark_.pop_front();
      if (!mark_.empty()) allow_only(mark_.front());
      break;
  }
  if (place_ != Place::mark || !mark_.empty()) return;
  place_ = after_mark_;
  if (place_ == Place::outside) return go_outside(tokens_left);
  constraint_.restart(tokens_left);
  finished_ = constraint_.finished();
}

void MarkedConstraint::expect_mark(std::span<const std::int32_t> rest, Place next) {
  finished_ = all_allowed_ = false;
  place_ = Place::mark;
  after_mark_ = next;
  mark_.assign(rest.begin(), rest.end());
  if (!mark_.empty()) allow_only(mark_.front());
}

void MarkedConstraint::go_outside(std::size_t tokens_left) {
  place_ = Place::outside;
  all_allowed_ = marks_->anything_outside;
  if (all_allowed_) return;
  std::ranges::fill(allowed_, 0);
  for (const std::int32_t token : end_tokens_) {
    if (static_cast<std::size_t>(token) < allowed_.size()) allowed_[static_cast<std::size_t>(token)] = 1;
  }
  finished_ = std::ranges::find(allowed_, 1) == allowed_.end();
  // Another text only if it can be complete.
  if (marks_->open.size() + shortest_ <= tokens_left) {
    allowed_[static_cast<std::size_t>(marks_->open.front())] = 1;
  } else {
    finished_ = true;
  }
}

void MarkedConstraint::allow_only(std::int32_t token) {
  std::ranges::fill(allowed_, 0);
  allowed_[static_cast<std::size_t>(token)] = 1;
}

}  // namespace minimind
