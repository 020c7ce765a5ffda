#include "runtime/grammar/state.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>

#include "runtime/grammar/work.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

using Kind = Grammar::Symbol::Kind;

// Limits in units of at most 8 bytes, over all tables: kept between steps, and added by one step.
constexpr std::size_t max_entries = std::size_t{2} << 20;

// The limit of work in one step, which is a byte or the tokens that may follow: of items that are visited and of rules
// that are made. There is more for the tokens of a large vocabulary, which lead to more states.
constexpr std::size_t max_step_work = 150'000;
constexpr std::size_t work_of_a_token = 7;

// The limit of symbols of rules that are made one by one.
constexpr std::size_t max_made_symbols = std::size_t{4} << 20;

// Bytes that are followed together, where it is not known how many can be.
constexpr std::size_t most_at_once = std::size_t{1} << 16;

constexpr std::size_t max_mask_bytes = std::size_t{16} << 20;

// Bytes to the end of a text that are looked at, and the work on them in one step.
constexpr std::size_t longest_way = 4096, most_work_to_end = 50'000, work_of_a_byte = 150;

// Bytes of an item that are tried after a token, those of earlier items that are looked at, and the work in one step,
// of which each end of an item is so much.
constexpr std::size_t longest_ahead = 256, most_repetitions = 32'768, most_work_ahead = 100'000, work_of_an_item = 100;

// Of an event in a Move: the item that ends there must differ from those before it.
constexpr unsigned distinct_bit = 8;

constexpr std::size_t most_cut_bytes = 3;  // that complete the start of a character

// In a string of limited length, every character leads to another state.
constexpr std::size_t most_followed = 16;

void merge(std::span<const std::uint64_t> from, std::span<std::uint64_t> into) {
  for (std::size_t i = 0; i < from.size(); ++i) into[i] |= from[i];
}

constexpr std::uint32_t not_made = ~0u, not_kept = ~0u;
constexpr std::uint32_t dropped = ~0u;  // instead of a symbol

// Frames with fewer returns are not worth comparing.
constexpr std::size_t large_frame = 16;

// Instead of a symbol, if a frame is visited: for a rule, or for the end of any rule.
constexpr std::uint32_t is_use = 1u << 31, any_end = is_use - 1;

template <class Action>
void for_each_byte(const ByteSet& set, Action action) {
  static_assert(sizeof(ByteSet) == 4 * sizeof(std::uint64_t));
  const auto words = std::bit_cast<std::array<std::uint64_t, 4>>(set);
  for (std::size_t word = 0; word < words.size(); ++word) {
    for (std::uint64_t left = words[word]; left != 0; left &= left - 1) {
      action(64 * word + static_cast<std::size_t>(std::countr_zero(left)));
    }
  }
}

constexpr std::greater<> smallest_first;

void sort_unique(std::vector<GrammarItem>& items) {
  if (items.size() < 2) return;
  // One comparison for both parts. The items are often in order already, or two lists that are.
  const auto before = [](const GrammarItem& a, const GrammarItem& b) {
    return (std::uint64_t{a.symbol} << 32 | a.frame) < (std::uint64_t{b.symbol} << 32 | b.frame);
  };
  const auto second = std::is_sorted_until(items.begin(), items.end(), before);
  if (std::is_sorted(second, items.end(), before)) {
    std::inplace_merge(items.begin(), second, items.end(), before);
  } else {
    std::sort(items.begin(), items.end(), before);
  }
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

[[noreturn]] void fail_too_ambiguous() {
  throw TooMuchWork(
      "the grammar is too ambiguous, or nested too deeply, at this point of the text: its readings exceed the "
      "memory limit; make it less ambiguous, or its alternatives fewer");
}

[[noreturn]] void fail_too_much_work(std::size_t most) {
  throw TooMuchWork(fmt::format(
      "what may follow at this point of the text takes over {} steps to work out, expected at most that; make "
      "the grammar or schema less ambiguous, or its alternatives fewer",
      most));
}

[[noreturn]] void fail_too_many_rules() {
  throw TooMuchWork(fmt::format(
      "the text needs rules of its schema with over {} symbols, expected at most that; shorten the text, or "
      "omit the limits of its longest arrays and strings from the schema",
      max_made_symbols));
}

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

GrammarState::GrammarState(std::shared_ptr<const Grammar> grammar)
    : grammar_(std::move(grammar)),
      rules_(grammar_->rules_source ? grammar_->rules_source->start() : nullptr),
      most_entries_(max_entries) {
  if (rules_) begin_rules();
  accept_ = rules_ ? 0 : static_cast<std::uint32_t>(tables().symbols.size() - 1);
  classes_ = tables().class_bytes.size();
  callers_.resize(tables().rules.size());
  entered_.resize(tables().rules.size());
  intern_frame({});
  restart();
}

// Rules that are made one by one: every byte is a class, and `accept` is the first symbol.
void GrammarState::begin_rules() {
  for (std::size_t byte = 0; byte < made_.byte_class.size(); ++byte) {
    made_.byte_class[byte] = static_cast<std::uint8_t>(byte);
    made_.class_bytes.push_back(static_cast<std::uint8_t>(byte));
  }
  made_.symbols.push_back({Kind::accept, 0});
  made_.bytes_to_end.push_back(0);
  runs_.emplace_back();
  made_.root = rules_->root();
  meet(made_.root);
}

// Asks for what must be known of a rule where it is mentioned. Its alternatives are made when it is called.
void GrammarState::meet(std::uint32_t rule) {
  for (auto id = static_cast<std::uint32_t>(made_.rules.size()); id <= rule; ++id) {
    const GrammarRules::Facts facts = rules_->facts(id);
    made_.rules.push_back({not_made, 0, facts.nullable, facts.rank});
    rule_bytes_.push_back(facts.bytes_to_end);
    callers_.emplace_back();
    entered_.emplace_back();
  }
}

void GrammarState::make(std::uint32_t rule) {
  const WorkLimit limit(most_work_ - std::min(work_, most_work_), "what may follow in the text");
  try {
    make_alternatives(rule);
  } catch (const TooMuchWork&) {
    if (!limit.exceeded()) throw;
    fail_too_much_work(most_work_);
  }
  work_ += made_.rules[rule].alternatives + limit.steps();
  if (made_.symbols.size() > max_made_symbols) fail_too_many_rules();
}

void GrammarState::make_alternatives(std::uint32_t rule) {
  const std::vector<GrammarRules::Sequence> alternatives = rules_->alternatives(rule);
  made_.rules[rule].first_alternative = static_cast<std::uint32_t>(made_.alternatives.size());
  made_.rules[rule].alternatives = static_cast<std::uint32_t>(alternatives.size());
  for (const GrammarRules::Sequence& sequence : alternatives) {
    made_.alternatives.push_back(static_cast<std::uint32_t>(made_.symbols.size()));
    for (const GrammarRules::Symbol& symbol : sequence) {
      if (symbol.is_rule) meet(symbol.rule);
      made_.symbols.push_back(symbol.is_rule ? Grammar::Symbol{Kind::rule, symbol.rule}
                                             : Grammar::Symbol{Kind::bytes, set_of(symbol)});
      runs_.push_back(symbol.runs);
    }
    made_.symbols.push_back({Kind::end, 0});
    runs_.emplace_back();
    made_.bytes_to_end.resize(made_.symbols.size());
    std::uint64_t bytes = 0;
    std::size_t at = made_.symbols.size() - 1;
    for (std::size_t i = sequence.size(); i-- > 0;) {
      bytes += sequence[i].is_rule ? rule_bytes_[sequence[i].rule] : 1;
      made_.bytes_to_end[--at] = std::min(bytes, Grammar::longest_text);
    }
  }
}

std::uint32_t GrammarState::set_of(const GrammarRules::Symbol& symbol) {
  const auto set = set_ids_.try_emplace(symbol.bytes, static_cast<std::uint32_t>(set_ids_.size())).first->second;
  const auto [place, added] =
      set_uses_.try_emplace({set, symbol.event, symbol.distinct}, static_cast<std::uint32_t>(made_.byte_sets.size()));
  if (added) {
    made_.byte_sets.push_back(symbol.bytes);
    uses_.push_back({symbol.event, symbol.distinct});
  }
  return place->second;
}

void GrammarState::restart() {
  begin_step();
  current_ = initial_state();
  text_.clear();
  memory_.clear();
  scope_ = 0;
}

bool GrammarState::advance(std::string_view bytes) {
  begin_step();
  const std::size_t before = text_.size();
  const JsonMemory::Mark mark = memory_.mark();
  const Position to = follow(bytes);
  if (to.state == dead) {
    text_.resize(before);
    memory_.forget(mark);
    return false;
  }
  current_ = to.state;
  scope_ = to.scope;
  return true;
}

// A part that is taken whole is followed once, and the one that is not is found by halves.
std::size_t GrammarState::advance_within(std::string_view bytes) {
  std::size_t taken = 0;
  for (std::size_t size = std::bit_floor(std::min(bytes.size(), most_at_once)); size > 0; size /= 2) {
    while (taken < bytes.size() && advance(bytes.substr(taken, size))) taken += std::min(size, bytes.size() - taken);
  }
  return taken;
}

bool GrammarState::allows(std::string_view bytes) {
  begin_step();
  const std::size_t before = text_.size();
  const JsonMemory::Mark mark = memory_.mark();
  const bool allowed = follow(bytes).state != dead;
  text_.resize(before);
  memory_.forget(mark);
  return allowed;
}

GrammarState::Position GrammarState::follow(std::string_view bytes) {
  Position position{current_, scope_};
  const std::size_t before = text_.size();
  if (rules_) text_.resize(before + bytes.size());
  for (std::size_t i = 0; i < bytes.size() && position.state != dead;) {
    work_ = 0;
    position = step(position, static_cast<std::uint8_t>(bytes[i]), before + i);
    ++i;
    if (work_ == 0 || position.state == dead) continue;
    if (rules_) i += skip(position, bytes.substr(i), before + i);
    if (entries() > most_entries_) make_room(position.state, current_);
  }
  return position;
}

// After a step that was worked out: goes on after those characters of a string for each of which there would be rules
// that no other text needs, as where they are counted. Returns their bytes.
std::size_t GrammarState::skip(Position& position, std::string_view bytes, std::size_t at) {
  constexpr std::size_t fewest = 16;
  if (bytes.size() < fewest || kernel_.size() != 1) return 0;
  const auto& symbols = tables().symbols;
  GrammarItem item = kernel_.front();
  while (symbols[item.symbol].kind == Kind::end && frames_[item.frame].size() == 1) item = frames_[item.frame].front();
  if (symbols[item.symbol].kind != Kind::rule || symbols[item.symbol + 1].kind != Kind::end) return 0;
  const auto [rule, taken] = rules_->skip(symbols[item.symbol].index, bytes);
  if (taken == 0) return 0;
  bytes.copy(text_.data() + at, taken);
  meet(rule);
  begin_closure();
  const std::span<const GrammarItem> returns = frames_[item.frame];
  callers_[rule].assign(returns.begin(), returns.end());
  called_.emplace_back(tables().rules[rule].rank, rule);
  run_calls();
  position.state = finish_closure();
  return taken;
}

// Writes the byte to text_ if the grammar makes its rules.
inline GrammarState::Position GrammarState::step(Position from, std::uint8_t byte, std::size_t at) {
  const Move move = next(from.state, byte);
  if (move == dead) return {dead, from.scope};
  if (rules_) text_[at] = static_cast<char>(byte);
  if (move >> event_shift == 0) return {move, from.scope};
  return after_event(from, byte, at, move);
}

GrammarState::Position GrammarState::after_event(Position from, std::uint8_t byte, std::size_t at, Move move) {
  Position to{state_of(move), from.scope};
  const std::size_t end = at + 1;
  const unsigned code = move >> event_shift;
  const auto event = static_cast<JsonEvent>(code & 7);
  const bool distinct = (code & distinct_bit) != 0;
  const std::string_view text = text_;
  switch (event) {
    case JsonEvent::none:
      break;
    case JsonEvent::object_opens:
    case JsonEvent::array_opens:
      to.scope = memory_.open(from.scope, end);
      break;
    case JsonEvent::name_opens:
      to.scope = memory_.begin(from.scope, end);
      break;
    case JsonEvent::name_closes:
      memory_decided_ = true;
      to.scope = memory_.add_name(from.scope, text.substr(0, at));
      if (to.scope == JsonMemory::repeated) to.state = dead;
      break;
    case JsonEvent::item_ends:
    case JsonEvent::array_closes:
      if (distinct) {
        memory_decided_ = true;
        const JsonMemory::Scope with = memory_.add_item(from.scope, text.substr(0, at));
        if (with == JsonMemory::repeated) {
          to.state = state_without_distinct(from.state, byte);
        } else {
          to.scope = with;
        }
      }
      to.scope = event == JsonEvent::item_ends ? memory_.begin(to.scope, end) : memory_.outer(to.scope);
      break;
    case JsonEvent::object_closes:
      to.scope = memory_.outer(from.scope);
      break;
  }
  return to;
}

bool GrammarState::may_end() const {
  return std::ranges::binary_search(states_[current_], GrammarItem{accept_, 0});
}

bool GrammarState::must_end() const {
  return may_end() && states_[current_].size() == 1;
}

void GrammarState::measure_ends_in(const TokenTrie& trie, std::vector<bool> usable) {
  ends_trie_ = &trie;
  usable_ = std::move(usable);
  ways_.clear();
}

std::uint64_t GrammarState::most_tokens_to_end() {
  begin_step();
  return ends_trie_ ? std::min(measured(current_), bytes_to_end()) : bytes_to_end();
}

bool GrammarState::measure_end() {
  begin_step();
  if (!ends_trie_) return true;
  State at = current_;
  for (std::size_t followed = 0; followed < longest_way && bytes_to_end_[at] > 0; ++followed) {
    ways_.resize(states_.size());
    if (ways_[at].tokens != Way::not_measured) break;
    if (ways_[at].next == unknown && !step_closer(at)) return work_to_end_ < most_work_to_end;
    at = ways_[at].next;
  }
  return true;
}

// Returns true if most_tokens_to_end() of the state is certainly at most `most`.
inline bool GrammarState::ends_within(State state, std::uint64_t most) {
  const std::uint64_t bytes = bytes_to_end_[state];
  if (bytes <= most) return true;
  return ends_trie_ && bytes / std::max<std::size_t>(ends_trie_->longest(), 1) <= most && measured(state) <= most;
}

// Returns the tokens of a text that completes the text in a state.
std::uint64_t GrammarState::measured(State state) {
  const std::size_t work = work_;
  State at = state;
  while (true) {
    ways_.resize(states_.size());
    if (ways_[at].tokens != Way::not_measured) break;
    if (bytes_to_end_[at] == 0 || (ways_[at].next == unknown && !step_closer(at))) {
      ways_[at].tokens = bytes_to_end_[at];
      break;
    }
    unmeasured_.push_back(at);
    at = ways_[at].next;
  }
  for (; !unmeasured_.empty(); unmeasured_.pop_back()) {
    ways_[unmeasured_.back()].tokens = fewest_tokens(unmeasured_.back());
  }
  work_ = work;
  return ways_[state].tokens;
}

// Finds a byte that a shortest text starts with. Returns false if there is none, or if that would be too much in one
// step.
bool GrammarState::step_closer(State state) {
  if (work_to_end_ >= most_work_to_end || entries() > most_entries_ + max_entries / 4) return false;
  work_ = 0;
  ByteSet closer;
  for (const GrammarItem& item : states_[state]) {
    const Grammar::Symbol symbol = tables().symbols[item.symbol];
    if (symbol.kind == Kind::bytes && bytes_to_end({&item, 1}) == bytes_to_end_[state])
      closer |= tables().byte_sets[symbol.index];
  }
  std::size_t byte = 0;
  while (byte < closer.size() && !closer.test(byte)) ++byte;
  if (byte == closer.size()) return false;
  const Move move = next(state, static_cast<std::uint8_t>(byte));
  work_to_end_ += work_of_a_byte + states_[state].size() + work_;
  if (move == dead || bytes_to_end_[state_of(move)] + 1 != bytes_to_end_[state]) return false;
  ways_[state].next = state_of(move);
  ways_[state].byte = static_cast<std::uint8_t>(byte);
  return true;
}

// Returns the tokens of the text from a state, all states of which but the first are measured.
std::uint64_t GrammarState::fewest_tokens(State state) const {
  std::uint64_t fewest = Grammar::longest_text;
  for (const TokenTrie::Part& part : ends_trie_->parts()) {
    State at = state;
    std::size_t i = part.first[ways_[state].byte], end = part.first[ways_[state].byte + std::size_t{1}];
    while (i < end && ways_[at].next != unknown) {
      const TokenTrie::Node& node = part.nodes[i];
      if (node.byte != ways_[at].byte) {
        i = node.after;
        continue;
      }
      at = ways_[at].next;
      for (std::uint32_t k = 0; k < node.token_count; ++k) {
        const auto token = static_cast<std::size_t>(part.tokens[node.first_token + k]);
        if (token < usable_.size() && usable_[token]) fewest = std::min(fewest, ways_[at].tokens + 1);
      }
      end = node.after;
      ++i;
    }
  }
  return fewest;
}

void GrammarState::mark_allowed(const TokenTrie& trie, std::span<std::uint64_t> allowed, std::uint64_t most_to_end) {
  begin_step();
  most_work_ = std::max(max_step_work, work_of_a_token * 64 * allowed.size());
  const std::size_t known = mark_known(trie, allowed, most_to_end);
  if (known < trie.parts().size()) mark_others(trie, known, allowed, most_to_end);
  if (rules_) drop_repetitions(trie, allowed);
}

// Marks the tokens of the parts of the trie from `known` on.
void GrammarState::mark_others(const TokenTrie& trie, std::size_t known, std::span<std::uint64_t> allowed,
                               std::uint64_t most_to_end) {
  const std::size_t before = text_.size();
  const JsonMemory::Mark mark = memory_.mark();
  if (rules_) text_.resize(before + trie.longest());
  // Most states are never met again: only at a second visit are the tokens kept.
  if (mask_wanted_.size() <= current_) mask_wanted_.resize(states_.size());
  const bool first_visit = !mask_wanted_[current_];
  mask_wanted_[current_] = true;
  mask_ = {allowed, most_to_end};
  memory_decided_ = false;
  path_.resize(trie.longest() + 1);
  path_[0] = {current_, scope_};
  text_end_ = before;
  mark_parts(trie, known, allowed, !first_visit && known == 0);
  text_.resize(before);
  memory_.forget(mark);
}

// Of an array of distinct items, one that was begun like an earlier one may have no other end: after the last digit of
// a number or the closing quote of a string that the array has already, or after the comma behind the last value that
// there is. In a string, only tokens along earlier items can lead there, and those that close it.
void GrammarState::drop_repetitions(const TokenTrie& trie, std::span<std::uint64_t> allowed) {
  JsonMemory::Scope array = scope_;
  while (array != 0 && !memory_.has_items(array)) array = memory_.outer(array);
  if (array == 0) return;
  const std::size_t before = text_.size(), compared = memory_.compared();
  const JsonMemory::Mark mark = memory_.mark();
  work_ahead_ = most_work_ahead;
  path_.resize(trie.longest() + 1);
  path_[0] = {current_, scope_};
  text_end_ = before;
  text_.resize(before + trie.longest() + longest_ahead);
  place_ = JsonPlace::between;
  for (std::size_t i = memory_.begin_of(array); i < before; ++i) place_ = after(place_, text_[i]);
  std::size_t bytes_left = most_repetitions;
  for (JsonMemory::Scope of = array; of != 0 && place_ != JsonPlace::between; of = memory_.outer(of)) {
    std::string_view last;
    const std::string_view so_far = std::string_view(text_).substr(0, before);
    const std::vector<std::string> rests = memory_.repetitions(of, so_far, bytes_left);
    for (const std::string_view rest : rests) {
      const auto known = static_cast<std::size_t>(std::ranges::mismatch(last, rest).in1 - last.begin());
      if (!rest.empty()) drop_dead_ends(trie, allowed, rest, known);
      last = rest;
    }
  }
  drop_dead_ends(trie, allowed);
  text_.resize(before);
  memory_.forget(mark);
  memory_.set_compared(compared);
}

// Looks at the tokens that `along` starts with and that are longer than `known`; without it, at all that start outside
// of strings or close one.
void GrammarState::drop_dead_ends(const TokenTrie& trie, std::span<std::uint64_t> allowed, std::string_view along,
                                  std::size_t known) {
  ByteSet starts = taken_bytes_[current_];
  if (place_ != JsonPlace::between) starts &= ByteSet().set(static_cast<std::uint8_t>(along.empty() ? '"' : along[0]));
  const auto is_dead_end = [&](Position at, std::size_t depth) {
    JsonPlace place = place_;
    for (std::size_t i = 0; i < depth; ++i) place = after(place, text_[text_end_ + i]);
    for (JsonMemory::Scope array = at.scope; array != 0 && work_ahead_ > 0; array = memory_.outer(array)) {
      if (memory_.has_items(array) && !may_differ(at, text_end_ + depth, array, place)) return true;
    }
    return false;
  };
  const auto is_along = [&](const TokenTrie::Node& node) {
    return along.empty() ||
           (node.depth <= along.size() && node.byte == static_cast<std::uint8_t>(along[node.depth - 1]));
  };
  for (const TokenTrie::Part& part : trie.parts()) {
    for_each_byte(starts, [&](std::size_t byte) {
      for (std::uint32_t i = part.first[byte]; i < part.first[byte + 1] && work_ahead_ > 0;) {
        const TokenTrie::Node& node = part.nodes[i];
        work_ = 0;
        --work_ahead_;
        const Position to =
            is_along(node) ? step(path_[node.depth - 1], node.byte, text_end_ + node.depth - 1) : Position{dead, 0};
        if (to.state == dead) {
          i = node.after;
          continue;
        }
        path_[node.depth] = to;
        ++i;
        if (node.token_count == 0 || node.depth <= known || !is_dead_end(to, node.depth)) continue;
        for (std::uint32_t k = 0; k < node.token_count; ++k) {
          remove_token(allowed.data(), part.tokens[node.first_token + k]);
        }
      }
    });
  }
}

// Whether a number with a fraction or an exponent ends before `at` with so many zeros that one more hardly makes
// another number.
bool GrammarState::is_more_of_zeros(std::size_t at) const {
  const std::string_view text = std::string_view(text_).substr(0, at);
  if (!text.ends_with("00000000")) return false;
  const std::size_t end = text.find_last_not_of("0123456789");
  return end != text.npos && std::string_view(".eE+").find(text[end]) != text.npos;
}

// Whether an item of the array can end, from a position within it, as one that the array does not have. The shortest
// ends are tried first, and whitespace between the parts of an item only where it must be. Returns true if the limit of
// work does not tell.
bool GrammarState::may_differ(Position from, std::size_t at, JsonMemory::Scope array, JsonPlace place) {
  if (work_ahead_ == 0 || at == text_.size() || entries() > most_entries_ + max_entries / 4) return true;
  struct Next {
    bool is_space;
    std::uint64_t bytes;  // to the end of the text
    std::uint8_t byte;
    Move move;
    auto operator<=>(const Next&) const = default;
  };
  std::vector<Next> all;
  const ByteSet taken = taken_bytes_[from.state];
  for_each_byte(taken, [&](std::size_t byte) {
    if (work_ahead_ == 0) return;
    work_ = 0;
    const Move move = next(from.state, static_cast<std::uint8_t>(byte));
    work_ahead_ -= std::min(work_ahead_, 1 + work_);
    if (move == dead || (place == JsonPlace::between && byte == '0' && is_more_of_zeros(at))) return;
    all.push_back({is_space(place, static_cast<char>(byte)), bytes_to_end_[state_of(move)],
                   static_cast<std::uint8_t>(byte), move});
  });
  if (work_ahead_ == 0) return true;
  std::ranges::sort(all);
  for (const Next& choice : all) {
    if (choice.is_space && !all.front().is_space) return false;
    const auto event = static_cast<JsonEvent>(choice.move >> event_shift & (distinct_bit - 1));
    const bool is_end =
        (event == JsonEvent::item_ends || event == JsonEvent::array_closes) && memory_.same(from.scope, array);
    const std::size_t work = is_end ? at - memory_.begin_of(from.scope) + work_of_an_item : 0;
    if (work >= work_ahead_) return true;
    work_ahead_ -= work;
    const JsonMemory::Mark mark = memory_.mark();
    const Position to = step(from, choice.byte, at);
    const bool differs =
        to.state != dead && (is_end || may_differ(to, at + 1, array, after(place, static_cast<char>(choice.byte))));
    memory_.forget(mark);
    if (differs) return true;
  }
  return false;
}

// Marks the tokens of this state that are known, and returns in how many parts of the trie they are.
std::size_t GrammarState::mark_known(const TokenTrie& trie, std::span<std::uint64_t> allowed,
                                     std::uint64_t most_to_end) {
  if (masks_trie_ != &trie) masks_.clear();
  masks_trie_ = &trie;
  const auto known = masks_.find(current_);
  if (known == masks_.end() || known->second.most_bytes_to_end > most_to_end ||
      known->second.allowed.size() != allowed.size()) {
    return 0;
  }
  merge(known->second.allowed, allowed);
  return known->second.parts;
}

// Marks the tokens of the trie's parts from `first` on. Those that follow names and items are in the last part, so that
// the others can be kept wherever the former cannot.
void GrammarState::mark_parts(const TokenTrie& trie, std::size_t first, std::span<std::uint64_t> allowed, bool keep) {
  if (keep) {
    kept_mask_.assign(allowed.size(), 0);
    mask_.allowed = kept_mask_;
    if ((masks_.size() + 1) * allowed.size() * sizeof(std::uint64_t) > max_mask_bytes) masks_.clear();
  }
  const auto& parts = trie.parts();
  std::size_t whole = parts.size() - 1;  // the parts before it are taken whole
  while (whole > first && !takes_all(current_, parts[whole - 1].kind, parts[whole - 1].height_so_far)) --whole;
  if (whole > first) merge(parts[whole - 1].mask, mask_.allowed);
  for (std::size_t i = first; i < parts.size(); ++i) {
    if (i >= whole) mark_part(parts[i]);
    const bool lasts = keep && !mask_.limited && !memory_decided_;
    // Keeping takes a copy: only before the last part and after it.
    if (lasts && i + 2 >= parts.size()) masks_[current_] = {kept_mask_, mask_.most, i + 1};
  }
  if (keep) merge(kept_mask_, allowed);
}

// Returns true if the state certainly takes every text of the kind with at most `count` characters and may end in time
// after it.
inline bool GrammarState::takes_all(State state, TextKind kind, std::size_t count) {
  if (kind == TextKind::other || count == 0) return false;
  const bool cut = kind == TextKind::cut;
  if (!rules_) return !cut && follows_all(state, kind, count);
  const StateRun& run = state_runs_[state][static_cast<std::size_t>(cut ? TextKind::plain : kind)];
  const std::uint64_t bytes = run.bytes + (cut ? most_cut_bytes : 0);
  if (run.characters < count || bytes > mask_.limit) return false;
  mask_.most = std::max(mask_.most, bytes);
  return true;
}

// Marks texts of a trie, of those that start with a byte that the state takes.
void GrammarState::mark_part(const TokenTrie::Part& part) {
  if (mark_by_length(part)) return;
  const ByteSet taken = taken_bytes_[current_];
  for_each_byte(taken, [&](std::size_t byte) {
    if (part.first[byte] != part.first[byte + 1]) mark_nodes(part, part.first[byte], part.first[byte + 1]);
  });
}

// Follows texts of a trie. A branch of it is marked at once where its state takes all texts of their kind, or where all
// of the branch's characters lead back to its state.
void GrammarState::mark_nodes(const TokenTrie::Part& part, std::uint32_t first, std::uint32_t end) {
  // Bytes may alias anything, so that what the loop reads is in separate variables.
  std::uint64_t* const allowed = mask_.allowed.data();
  const std::int32_t* const tokens = part.tokens.data();
  const TokenTrie::Node* const nodes = part.nodes.data();
  const auto count = static_cast<std::uint32_t>(part.nodes.size());
  Position* const path = path_.data();
  const auto mark = [&](std::size_t from, std::size_t to) {
    for (; from < to; ++from) add_token(allowed, tokens[from]);
  };
  const bool whole_characters = part.kind < TextKind::cut;
  for (std::uint32_t i = first; i < end;) {
    const TokenTrie::Node& node = nodes[i];
    const Position from = path[node.depth - 1];
    const Move known = transitions_[from.state * classes_ + tables().byte_class[node.byte]];
    if (known == dead) {
      i = node.after;
      continue;
    }
    // Whether a character of several bytes leads back is only looked at where others did.
    const bool may_loop = known == from.state || (from.state < loops_.size() && loops_[from.state] != not_known);
    const bool loops = whole_characters && node.starts_character && may_loop &&
                       (node.classes & ~loops_of(from.state)) == 0 && ends_within(from.state, mask_.limit);
    if (loops) mask_.most = std::max(mask_.most, bytes_to_end_[from.state]);
    if (loops || (node.starts_character && takes_all(from.state, part.kind, node.height + std::size_t{1}))) {
      mark(node.first_token, node.after < count ? nodes[node.after].first_token : part.tokens.size());
      i = node.after;
      continue;
    }
    const Position to = step(from, node.byte, text_end_ + node.depth - 1);
    if (to.state == dead) {
      i = node.after;
      continue;
    }
    path[node.depth] = to;
    ++i;
    if (node.token_count == 0) continue;
    if (!ends_within(to.state, mask_.limit)) {
      mask_.limited = true;
    } else {
      mask_.most = std::max(mask_.most, bytes_to_end_[to.state]);
      mark(node.first_token, node.first_token + node.token_count);
    }
  }
}

bool GrammarState::follows_all(State state, TextKind kind, std::size_t count) {
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

// If all characters of the kind lead to the same state, up to a number of them, as in a string of limited length, the
// tokens that follow are those of at most this number of characters. Where the rules tell it, no state is worked out.
bool GrammarState::mark_by_length(const TokenTrie::Part& part) {
  if (part.kind >= TextKind::cut || part.height == 0) return false;
  std::size_t length = 0;
  std::uint64_t most = 0;
  bool counted = false;
  if (rules_) {
    const StateRun& run = state_runs_[current_][static_cast<std::size_t>(part.kind)];
    if (run.characters == 0) return false;
    counted = run.characters == run.most && run.most < GrammarRules::TextRun::any;
    if (counted) {
      length = std::min(run.characters, part.height);
      most = run.bytes;
    }
  }
  for (State state = current_; !counted && length < part.height; ++length) {
    const State after = next_of_all(state, part.kind);
    if (after == dead) {
      if (!takes_none(state, part.kind)) return false;
      break;
    }
    state = after;
    most = std::max(most, bytes_to_end_[state]);
  }
  if (most > mask_.limit) return false;
  mask_.most = std::max(mask_.most, most);
  for (std::size_t i = 0; i < part.of_length[length]; ++i) add_token(mask_.allowed.data(), part.by_length[i]);
  return true;
}

// Returns the classes of plain characters all of which lead back to the state.
std::uint32_t GrammarState::loops_of(State state) {
  if (loops_.size() <= state) loops_.resize(states_.size(), not_known);
  if (loops_[state] != not_known) return loops_[state];
  std::uint32_t loops = all_classes;
  for (const std::vector<std::string>& character : character_bytes_of(TextKind::plain)) {
    if (character.size() == 1) {
      for (const char byte : character.front()) {
        const auto its = static_cast<std::uint8_t>(byte);
        if (next(state, its) != state) loops &= ~class_of(its);
      }
      continue;
    }
    State at = state;
    for (std::size_t i = 0; i < character.size() && at != dead; ++i) at = common_next(at, character[i]);
    if (at != state) loops &= ~class_of(0x80);
  }
  return loops_[state] = loops;
}

bool GrammarState::takes_none(State state, TextKind kind) {
  for (const std::vector<std::string>& character : character_bytes_of(kind)) {
    for (const char byte : character.front()) {
      if (next(state, static_cast<std::uint8_t>(byte)) != dead) return false;
    }
  }
  return true;
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

GrammarState::Move GrammarState::work_out(State state, std::uint8_t byte_class) {
  unsigned event = 0;
  bool distinct = false;
  kernel_.clear();
  const std::uint8_t byte = tables().class_bytes[byte_class];
  ByteSet alike = ByteSet().set();  // bytes that every item treats as this one
  for (const GrammarItem& item : states_[state]) {
    const Grammar::Symbol symbol = tables().symbols[item.symbol];
    if (symbol.kind != Kind::bytes) continue;
    const ByteSet& set = tables().byte_sets[symbol.index];
    alike &= set.test(byte) ? set : ~set;
    if (!set.test(byte)) continue;
    kernel_.push_back({item.symbol + 1, item.frame});
    if (!rules_) continue;
    event = static_cast<unsigned>(uses_[symbol.index].event);
    distinct = distinct || uses_[symbol.index].distinct;
  }
  work_ += states_[state].size();
  Move result = kernel_.empty() ? dead : state_after(kernel_);
  if (result != dead) result |= (event | (distinct ? distinct_bit : 0u)) << event_shift;
  Move* const row = transitions_.data() + state * classes_;
  if (rules_) {
    for_each_byte(alike, [&](std::size_t other) { row[other] = result; });
  } else {
    for (std::size_t other = 0; other < classes_; ++other) {
      if (alike.test(tables().class_bytes[other])) row[other] = result;
    }
  }
  return result;
}

// The state after a byte that ends an item, for the readings in which items may be repeated.
GrammarState::State GrammarState::state_without_distinct(State state, std::uint8_t byte) {
  kernel_.clear();
  for (const GrammarItem& item : states_[state]) {
    const Grammar::Symbol symbol = tables().symbols[item.symbol];
    const bool follows = symbol.kind == Kind::bytes && tables().byte_sets[symbol.index].test(byte);
    if (follows && !uses_[symbol.index].distinct) kernel_.push_back({item.symbol + 1, item.frame});
  }
  return kernel_.empty() ? dead : state_after(kernel_);
}

// The items of `kernel` are sorted, as those of a state are.
GrammarState::State GrammarState::state_after(std::vector<GrammarItem>& kernel) {
  drop_narrower(kernel);
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
  const GrammarItem accept{accept_, 0};
  callers_[tables().root] = {accept};
  called_.emplace_back(tables().rules[tables().root].rank, tables().root);
  if (tables().rules[tables().root].nullable) visit(accept);
  run_calls();
  return finish_closure();
}

void GrammarState::begin_closure() {
  ++closures_;
  visited_.clear();
  found_.clear();
}

// Follows an item to everything that can come next without taking a byte: items of found_ and calls of rules.
void GrammarState::visit(GrammarItem item) {
  pending_.push_back(item);
  while (!pending_.empty()) {
    item = pending_.back();
    pending_.pop_back();
    if (++work_ > most_work_) fail_too_much_work(most_work_);
    if (!visited_.insert(item)) continue;
    const Grammar::Symbol symbol = tables().symbols[item.symbol];
    switch (symbol.kind) {
      case Kind::bytes:
      case Kind::accept:
        found_.push_back(item);
        break;
      case Kind::end:
        for_new_returns(item.frame, any_end, [&](std::span<const GrammarItem> returns) {
          pending_.insert(pending_.end(), returns.begin(), returns.end());
        });
        break;
      case Kind::rule:
        call(item, symbol.index);
        if (tables().rules[symbol.index].nullable) pending_.push_back({item.symbol + 1, item.frame});
        break;
    }
  }
}

// Adds a caller to the frame of a rule. A call at the end of an alternative returns directly to its own rule's return,
// so that repetitions do not accumulate frames.
void GrammarState::call(GrammarItem item, std::uint32_t rule) {
  const bool last = tables().symbols[item.symbol + 1].kind == Kind::end;
  // R ::= x R with an empty x calls R again: nothing new.
  if (last && entered_[rule].closure == closures_ && entered_[rule].frame == item.frame) return;
  std::vector<GrammarItem>& callers = callers_[rule];
  if (callers.empty()) {
    called_.emplace_back(tables().rules[rule].rank, rule);
    std::push_heap(called_.begin(), called_.end(), smallest_first);
  }
  if (!last) {
    const GrammarItem after{item.symbol + 1, item.frame};
    if (callers.empty() || !is_wider(callers.back(), after)) callers.push_back(after);
  } else {
    for_new_returns(item.frame, rule, [&](std::span<const GrammarItem> returns) {
      callers.insert(callers.end(), returns.begin(), returns.end());
      work_ += returns.size();
    });
  }
}

// Calls `use` with the returns of a frame, except those of large frames that had their turn in this closure already.
template <class Use>
void GrammarState::for_new_returns(std::uint32_t frame, std::uint32_t use_id, Use use) {
  while (frames_[frame].size() >= large_frame) {
    if (!visited_.insert({use_id | is_use, frame})) return;
    const auto growth = growths_.find(frame);
    if (growth == growths_.end()) break;
    use(std::span<const GrammarItem>(growth->second.rest));
    frame = growth->second.part;
  }
  use(frames_[frame]);
}

// In the order of ranks, no rule is called again after its alternatives have been entered, so its frame is complete.
void GrammarState::run_calls() {
  while (!called_.empty()) {
    std::pop_heap(called_.begin(), called_.end(), smallest_first);
    const std::uint32_t id = called_.back().second;
    called_.pop_back();
    const std::uint32_t frame = frame_of_callers(id);
    if (tables().rules[id].first_alternative == not_made) make(id);
    const Grammar::Rule& rule = tables().rules[id];
    for (std::uint32_t i = 0; i < rule.alternatives; ++i) {
      visit({tables().alternatives[rule.first_alternative + i], frame});
    }
    if (entries() > max_entries + most_entries_) fail_too_ambiguous();
  }
}

std::uint32_t GrammarState::frame_of_callers(std::uint32_t rule) {
  std::vector<GrammarItem>& callers = callers_[rule];
  sort_unique(callers);
  drop_narrower(callers);
  const std::uint32_t frame = intern_frame(callers, entered_[rule].frame);
  callers.clear();
  entered_[rule] = {closures_, frame};
  return frame;
}

GrammarState::State GrammarState::finish_closure() {
  sort_unique(found_);
  const State state = states_.intern(found_);
  if (state == bytes_to_end_.size()) {
    bytes_to_end_.push_back(bytes_to_end(found_));
    begin_transitions();
  }
  if (entries() > max_entries + most_entries_) fail_too_ambiguous();
  return state;
}

// Adds a row to transitions_. All bytes that no item takes lead nowhere.
void GrammarState::begin_transitions() {
  transitions_.resize(states_.size() * classes_, rules_ ? dead : unknown);
  ByteSet& taken = taken_bytes_.emplace_back();
  for (const GrammarItem& item : found_) {
    const Grammar::Symbol symbol = tables().symbols[item.symbol];
    if (symbol.kind == Kind::bytes) taken |= tables().byte_sets[symbol.index];
  }
  if (!rules_) return;
  Move* const row = transitions_.data() + transitions_.size() - classes_;
  for_each_byte(taken, [&](std::size_t byte) { row[byte] = unknown; });
  begin_runs();
}

// Keeps the longest texts of each kind that an item of found_ takes.
void GrammarState::begin_runs() {
  auto& runs = state_runs_.emplace_back();
  for (const GrammarItem& item : found_) {
    const std::uint64_t bytes = tables().bytes_to_end[item.symbol] + frame_bytes_to_end_[item.frame];
    for (std::size_t kind = 0; kind < text_kinds; ++kind) {
      const GrammarRules::TextRun& run = runs_[item.symbol][kind];
      const bool longer = run.characters > runs[kind].characters;
      const bool shorter_end = run.characters == runs[kind].characters && bytes + run.bytes < runs[kind].bytes;
      if (longer || shorter_end) runs[kind] = {run.characters, runs[kind].most, bytes + run.bytes};
      runs[kind].most = std::max<std::uint32_t>(runs[kind].most, run.most);
    }
  }
}

// `part` is a frame whose returns the new one may have, all of them.
std::uint32_t GrammarState::intern_frame(std::span<const GrammarItem> returns, std::uint32_t part) {
  const std::uint32_t frame = frames_.intern(returns);
  if (frame == frame_bytes_to_end_.size()) {
    frame_bytes_to_end_.push_back(returns.empty() ? 0 : bytes_to_end(returns));
    if (!tables().places.empty()) add_widths(returns);
    const std::span<const GrammarItem> before = frames_[part];
    if (before.size() >= large_frame && std::ranges::includes(returns, before)) {
      Growth& growth = growths_[frame];
      growth.part = part;
      std::ranges::set_difference(returns, before, std::back_inserter(growth.rest));
    }
  }
  return frame;
}

// A frame with one return is narrower than one that returns to an earlier place of the same path, or to the same place
// in a frame that is wider.
void GrammarState::add_widths(std::span<const GrammarItem> returns) {
  std::array<Width, 2>& its = widths_.emplace_back();
  if (returns.size() != 1) return;
  const GrammarItem to = returns.front();
  const auto family = [&](std::uint64_t kind, std::uint64_t a, std::uint64_t b) {
    return families_.try_emplace(kind << 63 | a << 32 | b, static_cast<std::uint32_t>(families_.size() + 1))
        .first->second;
  };
  const Grammar::Place place = tables().places[to.symbol];
  if (place.path != 0) its[0] = {family(0, place.path, to.frame), place.place};
  for (const Width& outer : widths_[to.frame]) {
    if (outer.family != 0) its[1] = {family(1, to.symbol, outer.family), outer.place};
  }
}

bool GrammarState::is_wider(GrammarItem a, GrammarItem b) const {
  if (tables().places.empty() || a.frame != b.frame) return false;
  const Grammar::Place& first = tables().places[a.symbol];
  const Grammar::Place& second = tables().places[b.symbol];
  return first.path != 0 && first.path == second.path && first.place <= second.place;
}

// Removes items that allow nothing that others do not. `items` are sorted.
void GrammarState::drop_narrower(std::vector<GrammarItem>& items) {
  if (tables().places.empty()) return;
  const auto drop = [&](auto width_of) {
    if (items.size() < 2) return;
    candidates_.clear();
    for (std::uint32_t i = 0; i < items.size(); ++i) {
      const auto [family, place] = width_of(items[i]);
      if (family != 0) candidates_.push_back({family, place, i});
    }
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return std::tie(a.family, a.place) < std::tie(b.family, b.place);
    });
    for (std::size_t i = 1; i < candidates_.size(); ++i) {
      if (candidates_[i].family == candidates_[i - 1].family) items[candidates_[i].item].symbol = dropped;
    }
    std::erase_if(items, [](const GrammarItem& item) { return item.symbol == dropped; });
  };
  using Wide = std::pair<std::uint64_t, std::uint32_t>;
  drop([&](const GrammarItem& item) {
    const Grammar::Place place = tables().places[item.symbol];
    return Wide{place.path == 0 ? 0 : std::uint64_t{place.path} << 32 | item.frame, place.place};
  });
  for (std::size_t i = 0; i < 2; ++i) {
    drop([&](const GrammarItem& item) {
      const Width width = widths_[item.frame][i];
      return Wide{width.family == 0 ? 0 : std::uint64_t{item.symbol} << 32 | width.family, width.place};
    });
  }
}

std::uint64_t GrammarState::bytes_to_end(std::span<const GrammarItem> items) const {
  std::uint64_t shortest = Grammar::longest_text;
  for (const GrammarItem& item : items) {
    shortest = std::min(shortest, tables().bytes_to_end[item.symbol] + frame_bytes_to_end_[item.frame]);
  }
  return shortest;
}

std::size_t GrammarState::entries() const {
  const auto size = [](const GrammarItemLists& lists) { return lists.items() + 5 * lists.size(); };
  return size(frames_) + size(states_) + size(kernels_) + transitions_.size();
}

void GrammarState::begin_step() {
  work_ = work_to_end_ = 0;
  most_work_ = max_step_work;
  if (entries() > most_entries_) make_room(current_, current_);
}

std::size_t GrammarState::memory() const {
  return 8 * entries() + masks_.size() * kept_mask_.size() * sizeof(std::uint64_t);
}

void GrammarState::forget() {
  forget_all_but(current_, current_);
}

void GrammarState::make_room(State& followed, State& start) {
  if (forget_all_but(followed, start) > max_entries / 2) fail_too_ambiguous();
}

// Forgets all states but the one up to which the text is followed and the one in which that started, which it gives new
// numbers. Returns what the former takes, of max_entries. What the latter takes does not count.
std::size_t GrammarState::forget_all_but(State& followed, State& start) {
  const GrammarItemLists frames = std::exchange(frames_, {}), states = std::exchange(states_, {});
  const auto drop = [](auto&... known) { (..., void(std::exchange(known, {}))); };
  drop(frame_bytes_to_end_, widths_, growths_, families_, masks_, mask_wanted_, next_of_all_, loops_, taken_bytes_,
       bytes_to_end_, ways_, state_runs_, kernels_, kernel_states_, transitions_);
  std::fill(entered_.begin(), entered_.end(), Entered());
  std::vector<std::uint32_t> numbers(frames.size(), not_kept);
  const State kept = keep(frames, states[followed], numbers);
  const std::size_t size = entries();
  start = keep(frames, states[start], numbers);
  followed = kept;
  most_entries_ = max_entries + entries() - size;
  return size;
}

// Returns the new number of a state with these items of old frames. `numbers` are the frames' new ones. Frames refer
// only to earlier frames.
GrammarState::State GrammarState::keep(const GrammarItemLists& frames, std::span<const GrammarItem> items,
                                       std::vector<std::uint32_t>& numbers) {
  std::vector<bool> needed(frames.size());
  needed[0] = true;
  for (const GrammarItem& item : items) needed[item.frame] = true;
  for (auto frame = static_cast<std::uint32_t>(frames.size()); frame-- > 0;) {
    if (!needed[frame]) continue;
    for (const GrammarItem& item : frames[frame]) needed[item.frame] = true;
  }
  const auto renumbered = [&](std::span<const GrammarItem> list) {
    std::vector<GrammarItem> result(list.begin(), list.end());
    for (GrammarItem& item : result) item.frame = numbers[item.frame];
    std::sort(result.begin(), result.end());
    return result;
  };
  for (std::uint32_t frame = 0; frame < frames.size(); ++frame) {
    if (needed[frame] && numbers[frame] == not_kept) numbers[frame] = intern_frame(renumbered(frames[frame]));
  }
  found_ = renumbered(items);
  return finish_closure();
}

}  // namespace minimind
