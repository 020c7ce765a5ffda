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
  for (std::uint64_t a = 0, b = 0; i + sizeof(a) <= from.size(); i += sizeof(a)) {
    std::memcpy(&a, from.data() + i, sizeof(a));
    std::memcpy(&b, into.data() + i, sizeof(b));
    b |= a;
    std::memcpy(into.data() + i, &b, sizeof(b));
  }
  for (; i < from.size(); ++i) into[i] |= from[i];
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
  for (const TokenTrie::Part& part : trie.parts()) mark_part(part, before);
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

// Follows the texts of a trie. A branch of it is marked at once where its state takes all texts of their kind.
void GrammarState::mark_part(const TokenTrie::Part& part, std::size_t text_end) {
  const auto mark = [&](std::size_t from, std::size_t to) {
    for (; from < to; ++from) mask_.allowed[static_cast<std::size_t>(part.tokens[from])] = 1;
  };
  if (takes_all(current_, part.kind, part.height)) return merge(part.mask, mask_.allowed);
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
    if (takes_all(to.state, part.kind, node.height)) {
      mark(node.first_token, node.after < part.nodes.size() ? part.nodes[node.after].first_token : part.tokens.size());
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
      mark(node.first_token, node.first_token + node.token_count);
    }
  }
}

// Returns true if the state certainly takes every text of the kind with at most so many characters and may end in time
// after it.
bool GrammarState::takes_all(State state, TextKind kind, std::size_t count) {
  if (kind == TextKind::other || count == 0) return false;
  if (rules_) return rules_take_all(state, kind, count);
  std::uint64_t most = bytes_to_end_[state];
  for (std::size_t taken = 0; taken < count; ++taken) {
    const State after = next_of_all(state, kind);
    if (after == state) break;
    if (after == dead || taken == most_followed) return false;
    state = after;
    most = std::max(most, bytes_to_end_[state]);
  }
  if (most > mask_.limit) return false;
  mask_.most = std::max(mask_.most, most);
  return true;
}

// As takes_all(), by what the rules say of their symbols.
bool GrammarState::rules_take_all(State state, TextKind kind, std::size_t count) {
  for (const GrammarItem& item : states_[state]) {
    const GrammarRules::TextRun& run = runs_[item.symbol][static_cast<std::size_t>(kind)];
    if (run.characters < count) continue;
    const std::uint64_t bytes = tables().bytes_to_end[item.symbol] + frame_bytes_to_end_[item.frame] + run.bytes;
    if (bytes > mask_.limit) continue;
    mask_.most = std::max(mask_.most, bytes);
    return true;
  }
  return false;
}

// Returns the state after any character of the kind, if it is the same for all of them.
GrammarState::State GrammarState::next_of_all(State state, TextKind kind) {
  std::vector<State>& known = next_of_all_[static_cast<std::size_t>(kind)];
  if (known.size() <= state) known.resize(states_.size(), unknown);
  if (known[state] != unknown) return known[state];
  State result = unknown;
  for (const std::vector<std::string>& character : character_bytes_of(kind)) {
    State at = state;
    for (std::size_t i = 0; i < character.size() && at != dead; ++i) at = common_next(at, character[i]);
    if (result == unknown) result = at;
    if (at != result) result = dead;
    if (result == dead) break;
  }
  return known[state] = result;
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
