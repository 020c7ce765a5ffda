#include <algorithm>
#include <cstring>

#include "runtime/grammar/state.h"

namespace minimind {
namespace {

constexpr std::size_t max_mask_bytes = std::size_t{8} << 20;

// In a string of limited length, every character leads to another state.
constexpr std::size_t most_followed = 16;

// Sets each flag of `into` that `from` has.
void merge(std::span<const std::uint8_t> from, std::span<std::uint8_t> into) {
  std::size_t i = 0;
  for (std::uint64_t a = 0, b = 0; i + sizeof(a) <= into.size(); i += sizeof(a)) {
    std::memcpy(&a, from.data() + i, sizeof(a));
    std::memcpy(&b, into.data() + i, sizeof(b));
    b |= a;
    std::memcpy(into.data() + i, &b, sizeof(b));
  }
  for (; i < into.size(); ++i) into[i] |= from[i];
}

}  // namespace

void GrammarState::mark_allowed(const TokenTrie& trie, std::span<std::uint8_t> allowed,
                                std::uint64_t most_bytes_to_end) {
  begin_step();
  if (mark_known(trie, allowed, most_bytes_to_end)) return;
  const std::size_t before = text_.size();
  const JsonMemory::Mark mark = memory_.mark();
  if (rules_) text_.resize(before + trie.longest());
  // Most states are never met again: only at a second visit are the tokens kept.
  if (mask_wanted_.size() <= current_) mask_wanted_.resize(states_.size());
  const bool first_visit = !mask_wanted_[current_];
  mask_wanted_[current_] = true;
  if (!first_visit) kept_mask_.assign(allowed.size(), 0);
  mask_ = {first_visit ? allowed : std::span<std::uint8_t>(kept_mask_), most_bytes_to_end};
  memory_decided_ = false;
  path_.resize(trie.longest() + 1);
  path_[0] = {current_, scope_};
  mark_part(trie.plain(), before, true);
  mark_part(trie.rest(), before, false);
  text_.resize(before);
  memory_.forget(mark);
  if (first_visit) return;
  merge(kept_mask_, allowed);
  if (mask_.limited || memory_decided_) return;
  if ((masks_.size() + 1) * allowed.size() > max_mask_bytes) masks_.clear();
  masks_[current_] = {kept_mask_, mask_.most};
}

// Marks the tokens if those of this state are known.
bool GrammarState::mark_known(const TokenTrie& trie, std::span<std::uint8_t> allowed, std::uint64_t most_bytes_to_end) {
  if (masks_trie_ != &trie) masks_.clear();
  masks_trie_ = &trie;
  const auto known = masks_.find(current_);
  if (known == masks_.end() || known->second.most_bytes_to_end > most_bytes_to_end ||
      known->second.allowed.size() != allowed.size()) {
    return false;
  }
  merge(known->second.allowed, allowed);
  return true;
}

// Follows the texts of a trie. A branch of plain texts is marked at once where its state takes all of them.
void GrammarState::mark_part(const TokenTrie::Part& part, std::size_t text_end, bool plain) {
  const std::span<const std::int32_t> tokens = part.tokens;
  if (plain && takes_plain(current_, part.height)) return mark_tokens(tokens);
  for (std::size_t i = 0; i < part.nodes.size();) {
    const TokenTrie::Node& node = part.nodes[i];
    const Position from = path_[node.depth - 1];
    const Move known = transitions_[from.state * classes_ + tables().byte_class[node.byte]];
    if (known == dead) {
      i = node.after;
      continue;
    }
    const Position to = step(from, node.byte, text_end + node.depth - 1);
    if (to.state == dead) {
      i = node.after;
      continue;
    }
    if (plain && node.height > 0 && takes_plain(to.state, node.height)) {
      const std::size_t end = node.after < part.nodes.size() ? part.nodes[node.after].first_token : tokens.size();
      mark_tokens(tokens.subspan(node.first_token, end - node.first_token));
      i = node.after;
      continue;
    }
    path_[node.depth] = to;
    ++i;
    if (node.token_count == 0) continue;
    const std::uint64_t bytes = bytes_to_end_[to.state];
    if (bytes > mask_.limit) {
      mask_.limited = true;
    } else {
      mask_.most = std::max(mask_.most, bytes);
      mark_tokens(tokens.subspan(node.first_token, node.token_count));
    }
  }
}

void GrammarState::mark_tokens(std::span<const std::int32_t> tokens) {
  for (const std::int32_t token : tokens) mask_.allowed[static_cast<std::size_t>(token)] = 1;
}

// Returns true if the state certainly takes every plain text of at most so many characters and may end in time after
// it.
bool GrammarState::takes_plain(State state, std::size_t count) {
  if (rules_) return runs_plain(state, count);
  std::uint64_t most = bytes_to_end_[state];
  for (std::size_t taken = 0; taken < count; ++taken) {
    const State after = plain_next(state);
    if (after == state) break;
    if (after == dead || taken == most_followed) return false;
    state = after;
    most = std::max(most, bytes_to_end_[state]);
  }
  if (most > mask_.limit) return false;
  mask_.most = std::max(mask_.most, most);
  return true;
}

// As takes_plain(), by what the rules say of their symbols.
bool GrammarState::runs_plain(State state, std::size_t count) {
  for (const GrammarItem& item : states_[state]) {
    const PlainRun& run = plain_runs_[item.symbol];
    if (run.characters < count || count == 0) continue;
    const std::uint64_t bytes = tables().bytes_to_end[item.symbol] + frame_bytes_to_end_[item.frame] + run.bytes;
    if (bytes > mask_.limit) continue;
    mask_.most = std::max(mask_.most, bytes);
    return true;
  }
  return false;
}

// Returns the state after a plain character, if it is the same for all of them.
GrammarState::State GrammarState::plain_next(State state) {
  if (plain_next_.size() <= state) plain_next_.resize(states_.size(), unknown);
  if (plain_next_[state] != unknown) return plain_next_[state];
  State result = unknown;
  for (const std::vector<std::string>& character : TokenTrie::plain_characters()) {
    State at = state;
    for (std::size_t i = 0; i < character.size() && at != dead; ++i) at = common_next(at, character[i]);
    if (result == unknown) result = at;
    if (at != result) result = dead;
    if (result == dead) break;
  }
  if (plain_next_.size() <= state) plain_next_.resize(states_.size(), unknown);
  return plain_next_[state] = result;
}

// Returns the state after any of the bytes, if it is the same for all of them and the byte means nothing else.
GrammarState::State GrammarState::common_next(State state, std::string_view bytes) {
  State common = unknown;
  for (const char byte : bytes) {
    const Move move = next(state, static_cast<std::uint8_t>(byte));
    if (move == dead || move >> event_shift != 0 || (common != unknown && move != common)) return dead;
    common = move;
  }
  return common;
}

}  // namespace minimind
