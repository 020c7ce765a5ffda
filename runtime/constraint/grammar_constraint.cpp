#include "runtime/constraint/grammar_constraint.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "weights/base/error.h"

namespace minimind {

namespace {

// To work out again what takes less would cost more than the memory is worth.
constexpr std::size_t little_memory = std::size_t{2} << 20;

// For each byte, its bits as flags.
constexpr std::array<std::array<std::uint8_t, 8>, 256> flags_of_bytes = [] {
  std::array<std::array<std::uint8_t, 8>, 256> flags{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    for (unsigned bit = 0; bit < 8; ++bit) flags[byte][bit] = byte >> bit & 1;
  }
  return flags;
}();

// `flags` are 0 so far, and 64 for each of the bits' elements.
void unpack(const TokenBits& bits, std::uint8_t* flags) {
  for (std::size_t word = 0; word < bits.size(); ++word) {
    std::uint64_t left = bits[word];
    for (std::uint8_t* at = flags + 64 * word; left != 0; left >>= 8, at += 8) {
      std::copy_n(flags_of_bytes[left & 0xFF].data(), 8, at);
    }
  }
}

}  // namespace

std::shared_ptr<const TokenTrie> make_token_trie(const Tokenizer& tokenizer) {
  std::vector<std::pair<std::string_view, std::int32_t>> texts;
  for (std::size_t i = 0; i < tokenizer.vocab_size(); ++i) {
    const auto token = static_cast<std::int32_t>(i);
    const std::string_view text = tokenizer.token_bytes(token);
    if (!text.empty() && !tokenizer.is_special(token)) texts.emplace_back(text, token);
  }
  return std::make_shared<const TokenTrie>(std::move(texts));
}

GrammarConstraint::GrammarConstraint(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie,
                                     const Tokenizer& tokenizer, std::size_t vocab_size,
                                     std::span<const std::int32_t> end_tokens, std::size_t tokens_left)
    : grammar_(std::move(grammar)),
      trie_(std::move(trie)),
      tokenizer_(tokenizer),
      end_tokens_(end_tokens.begin(), end_tokens.end()),
      vocab_size_(vocab_size),
      tokens_left_(tokens_left),
      bits_(token_words(std::max(vocab_size, tokenizer.vocab_size()))),
      allowed_(64 * bits_.size()) {
  std::erase_if(end_tokens_, [&](std::int32_t token) { return static_cast<std::size_t>(token) >= vocab_size; });
}

void GrammarConstraint::begin() {
  std::vector<bool> usable(vocab_size_, true);
  for (const std::int32_t token : end_tokens_) usable[static_cast<std::size_t>(token)] = false;
  state_.emplace(grammar_).measure_ends_in(*trie_, std::move(usable));
}

void GrammarConstraint::accept(std::int32_t token, std::size_t tokens_left) {
  prepare_all();
  token_ = token;
  tokens_left_ = tokens_left;
  left_ = Left::advance;
}

void GrammarConstraint::restart(std::size_t tokens_left) {
  if (!state_) begin();
  state_->restart();
  tokens_left_ = tokens_left;
  left_ = Left::end;
}

void GrammarConstraint::forget() {
  if (state_ && left_ != Left::failed && state_->memory() > little_memory) state_->forget();
}

bool GrammarConstraint::prepare() {
  left_ = next_after(std::exchange(left_, Left::failed));
  return left_ == Left::nothing;
}

// Each of the parts has the limit of work of one step of GrammarState.
GrammarConstraint::Left GrammarConstraint::next_after(Left part) {
  const bool was_in_time = ends_in_time_;
  switch (part) {
    case Left::state:
      begin();
      return Left::end;
    case Left::end:
      ends_in_time_ = tokens_left_ == 0 || state_->bytes_to_end() <= tokens_left_;
      if (!ends_in_time_ && !state_->measure_end()) return Left::end;
      ends_in_time_ = ends_in_time_ || state_->ends_in(tokens_left_);
      return Left::mask;
    case Left::advance:
      if (!state_->advance(tokenizer_.token_bytes(token_)))
        throw std::logic_error("a token that the grammar does not allow");
      ends_in_time_ = tokens_left_ == 0 || state_->bytes_to_end() <= tokens_left_;
      return ends_in_time_ || !was_in_time ? Left::mask : Left::end;
    case Left::mask:
      update();
      return Left::nothing;
    case Left::nothing:
      return Left::nothing;
    case Left::failed:
      break;
  }
  throw std::logic_error("a constraint that failed is used");
}

// What the state knows of the text makes that quick.
bool GrammarConstraint::conforms(std::string_view text) {
  if (left_ == Left::failed) return false;
  if (!state_) begin();
  state_->restart();
  return state_->advance(text) && state_->may_end();
}

// Returns true if any token is allowed.
bool GrammarConstraint::mark_allowed(std::uint64_t most_to_end) {
  std::ranges::fill(bits_, 0);
  state_->mark_allowed(*trie_, bits_, most_to_end);
  unpack(bits_, allowed_.data());
  for (const std::int32_t token : end_tokens_) allowed_[static_cast<std::size_t>(token)] = 0;
  const auto end = allowed_.begin() + static_cast<std::ptrdiff_t>(vocab_size_);
  return std::find(allowed_.begin(), end, 1) != end;
}

void GrammarConstraint::update() {
  std::fill(allowed_.begin(), allowed_.end(), 0);
  finished_ = state_->must_end();
  if (tokens_left_ == 0) return;
  finished_ = !(ends_in_time_ && mark_allowed(tokens_left_ - 1));
  if (finished_ && !state_->may_end()) finished_ = !mark_allowed(Grammar::longest_text);
  if (state_->may_end()) {
    for (const std::int32_t token : end_tokens_) allowed_[static_cast<std::size_t>(token)] = 1;
  } else if (finished_) {
    throw Error("no token of the vocabulary continues the text as the grammar requires");
  }
}

MarkedConstraint::MarkedConstraint(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie,
                                   const Tokenizer& tokenizer, std::size_t vocab_size,
                                   std::span<const std::int32_t> end_tokens, std::size_t tokens_left,
                                   std::optional<GrammarMarks> marks)
    : marks_(std::move(marks)),
      end_tokens_(end_tokens.begin(), end_tokens.end()),
      constraint_(std::move(grammar), std::move(trie), tokenizer, vocab_size, end_tokens, tokens_left),
      tokens_left_(tokens_left) {
  if (marks_) allowed_.resize(vocab_size);
}

bool MarkedConstraint::prepare() {
  if (prepared_) return true;
  if (!constraint_.prepare() || (marks_ && !has_begun_ && !constraint_.measure_end())) return false;
  prepared_ = true;
  finished_ = constraint_.finished();
  if (!marks_) return true;
  if (!std::exchange(has_begun_, true)) {
    shortest_ = constraint_.most_tokens_to_end();
    if (!marks_->starts_open) go_outside(tokens_left_);
  } else if (finished_) {
    expect_mark(marks_->close, Place::outside);
  }
  return true;
}

std::span<const std::uint8_t> MarkedConstraint::allowed() {
  while (!prepare()) continue;
  if (place_ == Place::text) return constraint_.allowed();
  return all_allowed_ ? std::span<const std::uint8_t>() : allowed_;
}

bool MarkedConstraint::conforms(std::string_view text) {
  return marks_ ? place_ == Place::outside : constraint_.conforms(text);
}

void MarkedConstraint::accept(std::int32_t token, std::size_t tokens_left) {
  while (!prepare()) continue;
  switch (place_) {
    case Place::text:
      constraint_.accept(token, tokens_left);
      prepared_ = false;
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
  prepared_ = false;
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

MakeConstraint constrain_to(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie,
                            std::optional<GrammarMarks> marks) {
  if (!grammar) return nullptr;
  return [grammar = std::move(grammar), trie = std::move(trie),
          marks = std::move(marks)](const UnconstrainedText& text) {
    return std::make_unique<MarkedConstraint>(grammar, trie ? trie : make_token_trie(text.tokenizer), text.tokenizer,
                                              text.vocab_size, text.end_tokens, text.tokens_left, marks);
  };
}

}  // namespace minimind
