#include "runtime/grammar/state.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "weights/io/error.h"

namespace minimind {
namespace {

std::uint64_t mixed(std::uint64_t value) {
  value *= 0x9E3779B97F4A7C15u;
  return value ^ value >> 29;
}

std::uint64_t hash(std::span<const GrammarItem> items) {
  std::uint64_t value = items.size();
  for (const GrammarItem& item : items) value = mixed(value ^ (std::uint64_t{item.symbol} << 32 | item.frame));
  return value;
}

}  // namespace

std::size_t GrammarItemLists::slot_of(std::span<const GrammarItem> items) const {
  std::size_t slot = hash(items) & (slots_.size() - 1);
  while (slots_[slot] != none && !std::ranges::equal((*this)[slots_[slot]], items)) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

std::uint32_t GrammarItemLists::intern(std::span<const GrammarItem> items) {
  const std::size_t slot = slot_of(items);
  if (slots_[slot] != none) return slots_[slot];
  const auto list = static_cast<std::uint32_t>(size());
  slots_[slot] = list;
  items_.insert(items_.end(), items.begin(), items.end());
  begins_.push_back(items_.size());
  if (2 * size() > slots_.size()) grow();
  return list;
}

void GrammarItemLists::grow() {
  slots_.assign(2 * slots_.size(), none);
  for (std::uint32_t list = 0; list < size(); ++list) slots_[slot_of((*this)[list])] = list;
}

void GrammarItemLists::clear() {
  *this = GrammarItemLists();
}

bool GrammarItemSet::insert(GrammarItem item) {
  const std::uint64_t key = std::uint64_t{item.symbol} << 32 | item.frame;
  std::size_t slot = mixed(key) & (slots_.size() - 1);
  for (; slots_[slot] != none; slot = (slot + 1) & (slots_.size() - 1)) {
    if (slots_[slot] == key) return false;
  }
  slots_[slot] = key;
  keys_.push_back(key);
  if (2 * keys_.size() > slots_.size()) {
    slots_.assign(2 * slots_.size(), none);
    for (const std::uint64_t known : keys_) place(known);
  }
  return true;
}

void GrammarItemSet::place(std::uint64_t key) {
  std::size_t slot = mixed(key) & (slots_.size() - 1);
  while (slots_[slot] != none) slot = (slot + 1) & (slots_.size() - 1);
  slots_[slot] = key;
}

void GrammarItemSet::clear() {
  if (slots_.size() > 1024 && 32 * keys_.size() < slots_.size()) slots_.resize(64);
  std::fill(slots_.begin(), slots_.end(), none);
  keys_.clear();
}

TokenTrie::TokenTrie(std::vector<std::pair<std::string_view, std::int32_t>> texts) {
  std::sort(texts.begin(), texts.end());
  std::vector<std::uint32_t> path;  // the nodes of the previous text
  std::string_view before;
  const auto close = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back()) nodes[path.back()].after = static_cast<std::uint32_t>(nodes.size());
  };
  for (const auto& [text, token] : texts) {
    const auto shared = std::mismatch(text.begin(), text.end(), before.begin(), before.end()).first - text.begin();
    close(static_cast<std::size_t>(shared));
    for (std::size_t i = path.size(); i < text.size(); ++i) {
      path.push_back(static_cast<std::uint32_t>(nodes.size()));
      nodes.push_back({static_cast<std::uint8_t>(text[i]), static_cast<std::uint32_t>(i + 1), 0,
                       static_cast<std::uint32_t>(tokens.size()), 0});
    }
    ++nodes[path.back()].token_count;
    tokens.push_back(token);
    longest = std::max(longest, text.size());
    before = text;
  }
  close(0);
}

namespace {

using Kind = Grammar::Symbol::Kind;

// Limits in units of at most 8 bytes, over all tables: kept between steps, and added by one step.
constexpr std::size_t max_entries = std::size_t{2} << 20;

// The limit of items visited in one step, to bound its time.
constexpr std::size_t max_items_looked_at = std::size_t{8} << 20;

constexpr std::greater<> smallest_first;

void sort_unique(std::vector<GrammarItem>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

[[noreturn]] void fail_too_ambiguous() {
  throw Error(
      "the grammar is too ambiguous, or nested too deeply, at this point of the text: its readings exceed the "
      "memory or time limit; make it less ambiguous, or its alternatives fewer");
}

}  // namespace

GrammarState::GrammarState(std::shared_ptr<const Grammar> grammar)
    : grammar_(std::move(grammar)), classes_(grammar_->class_bytes.size()), callers_(grammar_->rules.size()) {
  intern_frame({});
  restart();
}

void GrammarState::restart() {
  begin_step();
  current_ = initial_state();
}

bool GrammarState::advance(std::string_view bytes) {
  begin_step();
  const State state = follow(bytes);
  if (state == dead) return false;
  current_ = state;
  return true;
}

bool GrammarState::allows(std::string_view bytes) {
  begin_step();
  return follow(bytes) != dead;
}

GrammarState::State GrammarState::follow(std::string_view bytes) {
  State state = current_;
  for (std::size_t i = 0; i < bytes.size() && state != dead; ++i)
    state = next(state, static_cast<std::uint8_t>(bytes[i]));
  return state;
}

bool GrammarState::may_end() const {
  const std::span<const GrammarItem> items = states_[current_];
  return !items.empty() && grammar_->symbols[items.back().symbol].kind == Kind::accept;  // the last symbol
}

bool GrammarState::must_end() const {
  return may_end() && states_[current_].size() == 1;
}

void GrammarState::mark_allowed(const TokenTrie& trie, std::span<std::uint8_t> allowed,
                                std::uint64_t most_bytes_to_end) {
  begin_step();
  path_.resize(trie.longest + 1);
  path_[0] = current_;
  for (std::size_t i = 0; i < trie.nodes.size();) {
    const TokenTrie::Node& node = trie.nodes[i];
    const State state = next(path_[node.depth - 1], node.byte);
    if (state == dead) {
      i = node.after;
      continue;
    }
    path_[node.depth] = state;
    const std::uint32_t tokens = bytes_to_end_[state] <= most_bytes_to_end ? node.token_count : 0;
    for (std::uint32_t k = 0; k < tokens; ++k) {
      allowed[static_cast<std::size_t>(trie.tokens[node.first_token + k])] = 1;
    }
    ++i;
  }
}

GrammarState::State GrammarState::work_out(State state, std::uint8_t byte_class) {
  std::vector<GrammarItem> kernel;
  const std::uint8_t byte = grammar_->class_bytes[byte_class];
  for (const GrammarItem& item : states_[state]) {
    const Grammar::Symbol symbol = grammar_->symbols[item.symbol];
    if (symbol.kind == Kind::bytes && grammar_->byte_sets[symbol.index].test(byte)) {
      kernel.push_back({item.symbol + 1, item.frame});
    }
  }
  work_ += states_[state].size();
  const State result = kernel.empty() ? dead : state_after(kernel);
  return transitions_[state * classes_ + byte_class] = result;
}

// The items of `kernel` are sorted, as those of a state are.
GrammarState::State GrammarState::state_after(std::span<const GrammarItem> kernel) {
  const std::uint32_t id = kernels_.intern(kernel);
  if (id < kernel_states_.size()) return kernel_states_[id];
  begin_closure();
  for (const GrammarItem& item : kernel) visit(item);
  run_calls();
  kernel_states_.push_back(finish_closure());
  return kernel_states_.back();
}

GrammarState::State GrammarState::initial_state() {
  begin_closure();
  const GrammarItem accept{static_cast<std::uint32_t>(grammar_->symbols.size() - 1), 0};
  callers_[grammar_->root] = {accept};
  called_.emplace_back(grammar_->rules[grammar_->root].rank, grammar_->root);
  if (grammar_->rules[grammar_->root].nullable) visit(accept);
  run_calls();
  return finish_closure();
}

void GrammarState::begin_closure() {
  visited_.clear();
  found_.clear();
}

// Follows an item to everything that can come next without taking a byte: items of found_ and calls of rules.
void GrammarState::visit(GrammarItem item) {
  pending_.push_back(item);
  while (!pending_.empty()) {
    item = pending_.back();
    pending_.pop_back();
    if (++work_ > max_items_looked_at) fail_too_ambiguous();
    if (!visited_.insert(item)) continue;
    const Grammar::Symbol symbol = grammar_->symbols[item.symbol];
    switch (symbol.kind) {
      case Kind::bytes:
      case Kind::accept:
        found_.push_back(item);
        break;
      case Kind::end: {
        const std::span<const GrammarItem> returns = frames_[item.frame];
        pending_.insert(pending_.end(), returns.begin(), returns.end());
        break;
      }
      case Kind::rule:
        call(item, symbol.index);
        if (grammar_->rules[symbol.index].nullable) pending_.push_back({item.symbol + 1, item.frame});
        break;
    }
  }
}

// Adds a caller to the frame of a rule. A call at the end of an alternative returns directly to its own rule's return,
// so that repetitions do not accumulate frames.
void GrammarState::call(GrammarItem item, std::uint32_t rule) {
  std::vector<GrammarItem>& callers = callers_[rule];
  if (callers.empty()) {
    called_.emplace_back(grammar_->rules[rule].rank, rule);
    std::push_heap(called_.begin(), called_.end(), smallest_first);
  }
  if (grammar_->symbols[item.symbol + 1].kind != Kind::end) {
    callers.push_back({item.symbol + 1, item.frame});
  } else {
    const std::span<const GrammarItem> returns = frames_[item.frame];
    callers.insert(callers.end(), returns.begin(), returns.end());
    work_ += returns.size();
  }
}

// In the order of ranks, no rule is called again after its alternatives have been entered, so its frame is complete. (R
// ::= x R with an empty x calls R again with an equal frame: nothing new is visited.)
void GrammarState::run_calls() {
  while (!called_.empty()) {
    std::pop_heap(called_.begin(), called_.end(), smallest_first);
    const std::uint32_t id = called_.back().second;
    called_.pop_back();
    sort_unique(callers_[id]);
    const std::uint32_t frame = intern_frame(callers_[id]);
    callers_[id].clear();
    const Grammar::Rule& rule = grammar_->rules[id];
    for (std::uint32_t i = 0; i < rule.alternatives; ++i) {
      visit({grammar_->alternatives[rule.first_alternative + i], frame});
    }
    if (entries() > 2 * max_entries) fail_too_ambiguous();
  }
}

GrammarState::State GrammarState::finish_closure() {
  sort_unique(found_);
  const State state = states_.intern(found_);
  if (state == bytes_to_end_.size()) bytes_to_end_.push_back(bytes_to_end(found_));
  transitions_.resize(states_.size() * classes_, unknown);
  if (entries() > 2 * max_entries) fail_too_ambiguous();
  return state;
}

std::uint32_t GrammarState::intern_frame(std::span<const GrammarItem> returns) {
  const std::uint32_t frame = frames_.intern(returns);
  if (frame == frame_bytes_to_end_.size()) {
    frame_bytes_to_end_.push_back(returns.empty() ? 0 : bytes_to_end(returns));
  }
  return frame;
}

std::uint64_t GrammarState::bytes_to_end(std::span<const GrammarItem> items) const {
  std::uint64_t shortest = Grammar::longest_text;
  for (const GrammarItem& item : items) {
    shortest = std::min(shortest, grammar_->bytes_to_end[item.symbol] + frame_bytes_to_end_[item.frame]);
  }
  return shortest;
}

std::size_t GrammarState::entries() const {
  const auto size = [](const GrammarItemLists& lists) { return lists.items() + 5 * lists.size(); };
  return size(frames_) + size(states_) + size(kernels_) + transitions_.size();
}

void GrammarState::begin_step() {
  work_ = 0;
  if (entries() <= max_entries) return;
  forget_all_but_current();
  if (entries() > max_entries / 2) fail_too_ambiguous();
}

// Frames refer only to earlier frames.
void GrammarState::forget_all_but_current() {
  const GrammarItemLists old_frames = std::exchange(frames_, {});
  frame_bytes_to_end_.clear();
  std::vector<GrammarItem> items(states_[current_].begin(), states_[current_].end());
  std::vector<bool> needed(old_frames.size());
  needed[0] = true;
  for (const GrammarItem& item : items) needed[item.frame] = true;
  for (std::size_t frame = needed.size(); frame-- > 0;) {
    if (!needed[frame]) continue;
    for (const GrammarItem& item : old_frames[static_cast<std::uint32_t>(frame)]) needed[item.frame] = true;
  }
  std::vector<std::uint32_t> new_frame(old_frames.size());
  const auto renumber = [&](std::vector<GrammarItem>& list) {
    for (GrammarItem& item : list) item.frame = new_frame[item.frame];
    std::sort(list.begin(), list.end());
  };
  for (std::uint32_t frame = 0; frame < needed.size(); ++frame) {
    if (!needed[frame]) continue;
    std::vector<GrammarItem> list(old_frames[frame].begin(), old_frames[frame].end());
    renumber(list);
    new_frame[frame] = intern_frame(list);
  }
  renumber(items);
  states_.clear();
  bytes_to_end_.clear();
  kernels_.clear();
  kernel_states_.clear();
  transitions_.clear();
  found_ = std::move(items);
  current_ = finish_closure();
}

}  // namespace minimind
