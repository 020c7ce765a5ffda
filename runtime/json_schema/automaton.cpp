#include "runtime/json_schema/automaton.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>

#include "runtime/grammar/work.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

constexpr Automaton::State no_state = ~0u;
constexpr std::uint64_t no_bytes = std::numeric_limits<std::uint64_t>::max();

void check_states(std::size_t states) {
  if (states <= Automaton::most_states) return;
  throw Error(
      fmt::format("the strings are too complex: they need over {} states; simplify the pattern, shorten its "
                  "repetitions or the lengths next to it",
                  Automaton::most_states));
}

// Joins neighbouring edges to the same state. `edges` must be in order.
void join_edges(std::vector<Automaton::Edge>& edges) {
  std::size_t kept = 0;
  for (const Automaton::Edge& edge : edges) {
    if (kept > 0 && edges[kept - 1].to == edge.to && edges[kept - 1].last + 1 == edge.first) {
      edges[kept - 1].last = edge.last;
    } else {
      edges[kept++] = edge;
    }
  }
  edges.resize(kept);
}

}  // namespace

Automaton::State Automaton::Draft::add(bool accepts) {
  spend(1);
  check_states(edges.size() + 1);
  edges.emplace_back();
  accepting.push_back(accepts);
  return static_cast<State>(edges.size() - 1);
}

Automaton::Automaton(const Draft& draft) {
  const std::size_t count = draft.edges.size();
  if (count == 0) return;
  std::vector<std::vector<State>> before(count);
  std::vector<State> pending;
  std::vector<bool> live(count);
  for (State state = 0; state < count; ++state) {
    for (const Edge& edge : draft.edges[state]) before[edge.to].push_back(state);
    if (!draft.accepting[state]) continue;
    live[state] = true;
    pending.push_back(state);
  }
  while (!pending.empty()) {
    const State state = pending.back();
    pending.pop_back();
    for (const State from : before[state]) {
      if (live[from]) continue;
      live[from] = true;
      pending.push_back(from);
    }
  }
  if (!live[0]) return;
  std::vector<State> number(count, no_state), order{0};
  number[0] = 0;
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < order.size(); ++i) {
    edges.clear();
    for (Edge edge : draft.edges[order[i]]) {
      if (!live[edge.to]) continue;
      if (number[edge.to] == no_state) {
        number[edge.to] = static_cast<State>(order.size());
        order.push_back(edge.to);
      }
      edge.to = number[edge.to];
      edges.push_back(edge);
    }
    spend(1 + edges.size());
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.first < b.first; });
    join_edges(edges);
    edges_.insert(edges_.end(), edges.begin(), edges.end());
    begins_.push_back(static_cast<std::uint32_t>(edges_.size()));
    accepting_.push_back(draft.accepting[order[i]]);
  }
}

Automaton Automaton::everything() {
  return of_lengths(0, std::nullopt);
}

Automaton Automaton::of_lengths(std::size_t min, std::optional<std::size_t> max) {
  if (max && *max < min) return {};
  Draft draft;
  const std::size_t last = max.value_or(min);
  for (std::size_t length = 0; length <= last; ++length) {
    draft.add(length >= min);
    const bool to_itself = !max && length == last;
    if (length == last && !to_itself) break;
    const auto to = static_cast<State>(to_itself ? length : length + 1);
    for (const CodePoints::Range& range : CodePoints::all().ranges()) {
      draft.edges.back().push_back({range.first, range.last, to});
    }
  }
  return Automaton(draft);
}

Automaton Automaton::of_texts(std::vector<std::u32string> texts) {
  Draft draft;
  std::sort(texts.begin(), texts.end());
  if (!texts.empty()) draft.add(false);
  for (const std::u32string& text : texts) {
    State state = 0;
    for (const char32_t c : text) {
      // Texts are sorted: a shared prefix is that of the text before.
      const bool shared = !draft.edges[state].empty() && draft.edges[state].back().first == c;
      if (shared) {
        state = draft.edges[state].back().to;
        continue;
      }
      const State next = draft.add(false);
      draft.edges[state].push_back({c, c, next});
      state = next;
    }
    draft.accepting[state] = true;
  }
  return Automaton(draft);
}

std::optional<Automaton::State> Automaton::next(State state, char32_t character) const {
  const auto [begin, end] = edges(state);
  const Edge* const edge =
      std::lower_bound(begin, end, character, [](const Edge& e, char32_t c) { return e.last < c; });
  if (edge == end || edge->first > character) return std::nullopt;
  return edge->to;
}

bool Automaton::accepts(std::u32string_view text) const {
  if (empty()) return false;
  State state = 0;
  for (const char32_t c : text) {
    const auto to = next(state, c);
    if (!to) return false;
    state = *to;
  }
  return accepting_[state];
}

bool Automaton::is_finite() const {
  // All states are live, so that a language is infinite if and only if a state leads back to itself.
  std::vector<std::uint32_t> entries(states());
  for (const Edge& edge : edges_) ++entries[edge.to];
  std::vector<State> pending;
  std::size_t removed = 0;
  if (!empty() && entries[0] == 0) pending.push_back(0);
  while (!pending.empty()) {
    const State state = pending.back();
    pending.pop_back();
    ++removed;
    for (auto [edge, end] = edges(state); edge != end; ++edge) {
      if (--entries[edge->to] == 0) pending.push_back(edge->to);
    }
  }
  return removed == states();
}

std::optional<std::vector<std::u32string>> Automaton::texts(std::size_t most) const {
  std::vector<std::u32string> found;
  if (empty()) return found;
  if (!is_finite()) return std::nullopt;
  struct Pending {
    State state;
    char32_t last;  // before the state
    std::size_t length;
  };
  std::u32string text;  // up to the state
  std::vector<Pending> pending{{0, 0, 0}};
  while (!pending.empty()) {
    const auto [state, last, length] = pending.back();
    pending.pop_back();
    spend(1);
    if (length > 0) text.replace(length - 1, text.npos, 1, last);
    if (accepting_[state]) found.push_back(text);
    for (auto [edge, end] = edges(state); edge != end; ++edge) {
      if (edge->last - edge->first >= most) return std::nullopt;
      for (char32_t c = edge->first; c <= edge->last; ++c) pending.push_back({edge->to, c, length + 1});
    }
    // Every pending state leads to a text of its own.
    if (found.size() + pending.size() > most) return std::nullopt;
  }
  return found;
}

std::uint64_t json_bytes_of(char32_t first, char32_t last) {
  static constexpr std::u32string_view short_escapes = U"\"\\\b\f\n\r\t";
  if (last < 0x20) {
    const auto in_range = [&](char32_t c) { return first <= c && c <= last; };
    return std::any_of(short_escapes.begin(), short_escapes.end(), in_range) ? 2 : 6;
  }
  if (first == last && (first == '"' || first == '\\')) return 2;
  if (first < 0x80) return 1;
  return first < 0x800 ? 2 : first < 0x10000 ? 3 : 4;
}

std::vector<std::uint64_t> Automaton::bytes_to_accept() const {
  spend(states() + edges_.size());
  std::vector<std::vector<std::pair<State, std::uint64_t>>> before(states());
  for (State state = 0; state < states(); ++state) {
    for (auto [edge, end] = edges(state); edge != end; ++edge) {
      before[edge->to].emplace_back(state, json_bytes_of(edge->first, edge->last));
    }
  }
  using Entry = std::pair<std::uint64_t, State>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  std::vector<std::uint64_t> bytes(states(), no_bytes);
  for (State state = 0; state < states(); ++state) {
    if (accepting_[state]) queue.emplace(bytes[state] = 0, state);
  }
  while (!queue.empty()) {
    const auto [so_far, state] = queue.top();
    queue.pop();
    if (so_far != bytes[state]) continue;
    for (const auto& [from, cost] : before[state]) {
      if (so_far + cost >= bytes[from]) continue;
      queue.emplace(bytes[from] = so_far + cost, from);
    }
  }
  return bytes;
}

std::vector<std::uint32_t> Automaton::characters_taken(const CodePoints& characters) const {
  const auto overlaps = [&](const Edge& edge) {
    const auto& ranges = characters.ranges();
    const auto range = std::lower_bound(ranges.begin(), ranges.end(), edge.first,
                                        [](const CodePoints::Range& r, char32_t c) { return r.last < c; });
    return range != ranges.end() && range->first <= edge.last;
  };
  spend(states() + edges_.size());
  std::vector<std::vector<State>> before(states());
  std::vector<std::uint32_t> taken(states(), any_number);
  std::vector<State> pending;
  for (State state = 0; state < states(); ++state) {
    CodePoints covered;
    for (auto [edge, end] = edges(state); edge != end; ++edge) {
      covered.add(edge->first, edge->last);
      if (overlaps(*edge)) before[edge->to].push_back(state);
    }
    if (characters.without(covered).empty()) continue;
    taken[state] = 0;
    pending.push_back(state);
  }
  // The nearest states that do not take all of them, breadth first.
  for (std::size_t i = 0; i < pending.size(); ++i) {
    for (const State from : before[pending[i]]) {
      if (taken[from] != any_number) continue;
      taken[from] = taken[pending[i]] + 1;
      pending.push_back(from);
    }
  }
  return taken;
}

Automaton Automaton::complement() const {
  Draft draft;
  if (empty()) return everything();
  for (State state = 0; state < states(); ++state) draft.add(!accepting_[state]);
  const State sink = draft.add(true);
  for (const CodePoints::Range& range : CodePoints::all().ranges()) {
    draft.edges[sink].push_back({range.first, range.last, sink});
  }
  for (State state = 0; state < states(); ++state) {
    CodePoints covered;
    for (auto [edge, end] = edges(state); edge != end; ++edge) {
      draft.edges[state].push_back(*edge);
      covered.add(edge->first, edge->last);
    }
    for (const CodePoints::Range& gap : covered.complement().ranges()) {
      draft.edges[state].push_back({gap.first, gap.last, sink});
    }
  }
  return Automaton(draft);
}

// A state is a pair, in which no_state is a side that accepts nothing any more.
template <class Accepts>
Automaton Automaton::product(const Automaton& a, const Automaton& b, bool both_needed, Accepts accepts) {
  Draft draft;
  std::unordered_map<std::uint64_t, State> numbers;
  std::vector<std::pair<State, State>> pairs;
  const auto number = [&](State left, State right) {
    const auto [place, added] =
        numbers.try_emplace(std::uint64_t{left} << 32 | right, static_cast<State>(pairs.size()));
    if (added) {
      pairs.emplace_back(left, right);
      draft.add(accepts(left != no_state && a.accepting_[left], right != no_state && b.accepting_[right]));
    }
    return place->second;
  };
  number(a.empty() ? no_state : 0, b.empty() ? no_state : 0);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto [left, right] = pairs[i];
    auto [x, x_end] = left == no_state ? std::pair<const Edge*, const Edge*>() : a.edges(left);
    auto [y, y_end] = right == no_state ? std::pair<const Edge*, const Edge*>() : b.edges(right);
    std::vector<Edge> edges;
    for (char32_t at = 0; at <= last_code_point && (x != x_end || y != y_end);) {
      const char32_t x_first = x == x_end ? last_code_point + 1 : std::max(x->first, at);
      const char32_t y_first = y == y_end ? last_code_point + 1 : std::max(y->first, at);
      at = std::min(x_first, y_first);
      const bool in_x = x_first == at, in_y = y_first == at;
      char32_t last = in_x ? x->last : y->last;
      if (in_x && in_y) last = std::min(last, y->last);
      if (in_x && !in_y && y != y_end) last = std::min<char32_t>(last, y_first - 1);
      if (in_y && !in_x && x != x_end) last = std::min<char32_t>(last, x_first - 1);
      if (!both_needed || (in_x && in_y)) {
        edges.push_back({at, last, number(in_x ? x->to : no_state, in_y ? y->to : no_state)});
      }
      at = last + 1;
      if (x != x_end && x->last < at) ++x;
      if (y != y_end && y->last < at) ++y;
    }
    spend(edges.size());
    join_edges(edges);
    draft.edges[i] = std::move(edges);
  }
  return Automaton(draft);
}

Automaton operator&(const Automaton& a, const Automaton& b) {
  if (a.empty() || b.empty()) return {};
  return Automaton::product(a, b, true, [](bool in_a, bool in_b) { return in_a && in_b; });
}

Automaton operator|(const Automaton& a, const Automaton& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return Automaton::product(a, b, false, [](bool in_a, bool in_b) { return in_a || in_b; });
}

}  // namespace minimind
