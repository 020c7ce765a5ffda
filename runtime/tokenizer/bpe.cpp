#include "runtime/tokenizer/bpe.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

#include "runtime/text/utf8.h"
#include "weights/base/cancel.h"
#include "weights/base/error.h"

namespace minimind {

std::size_t end_of_run(std::string_view text, std::size_t begin, CharClass wanted) {
  std::size_t end = begin;
  for (std::size_t count = 0; end < text.size(); ++count) {
    if (count % 65536 == 65535) check_cancelled();
    const Utf8Char next = first_utf8(text.substr(end));
    if (class_of(next.code_point) != wanted) break;
    end += next.size;
  }
  return end;
}

namespace {

std::size_t contraction_size(std::string_view text) {
  for (const std::string_view contraction : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(contraction)) return contraction.size();
  }
  return 0;
}

// \s+(?!\S)|\s+ : the last whitespace character belongs to the next word, unless it is the only one.
std::size_t white_space_size(std::string_view text) {
  const std::size_t end = end_of_run(text, 0, CharClass::space);
  if (end == text.size()) return end;
  const std::size_t all_but_last = end - last_utf8(text.substr(0, end)).size;
  return all_but_last > 0 ? all_but_last : end;
}

}  // namespace

std::size_t gpt2_word_size(std::string_view text) {
  if (text[0] == '\'') {
    if (const std::size_t size = contraction_size(text); size > 0) return size;
  }
  const std::size_t begin = text[0] == ' ' ? 1 : 0;
  if (begin == text.size()) return begin;
  const CharClass first = class_of(first_utf8(text.substr(begin)).code_point);
  return first == CharClass::space ? white_space_size(text) : end_of_run(text, begin, first);
}

namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
constexpr std::int32_t merged_away = -1;

}  // namespace

// A word as a linked list, so that a merge is O(1), and the pending merges by rank << 32 | position, the smallest
// first. An entry can be out of date: it is valid only if the pair at its position still merges to its token.
struct Bpe::Word {
  struct Symbol {
    std::int32_t id;  // or merged_away
    std::uint32_t previous;
    std::uint32_t next;
  };

  std::vector<Symbol> symbols;
  std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> queue;
};

Bpe::Bpe(std::span<const BpeMerge> merges, std::size_t vocab_size)
    : first_rule_(vocab_size + 1), rules_(merges.size()) {
  for (const BpeMerge& merge : merges) ++first_rule_[static_cast<std::size_t>(merge.left) + 1];
  std::partial_sum(first_rule_.begin(), first_rule_.end(), first_rule_.begin());
  std::vector<std::uint32_t> next = first_rule_;
  result_of_.reserve(merges.size());
  for (const BpeMerge& merge : merges) {
    const auto rank = static_cast<std::uint32_t>(result_of_.size());
    rules_[next[static_cast<std::size_t>(merge.left)]++] = {merge.right, rank, merge.result};
    result_of_.push_back(merge.result);
  }
  for (std::size_t id = 0; id < vocab_size; ++id) {
    std::ranges::sort(rules_.begin() + first_rule_[id], rules_.begin() + first_rule_[id + 1], {},
                      [](const Rule& rule) { return std::pair(rule.right, rule.rank); });
  }
}

const Bpe::Rule* Bpe::find(std::int32_t left, std::int32_t right) const {
  const Rule* const begin = rules_.data() + first_rule_[static_cast<std::size_t>(left)];
  const Rule* const end = rules_.data() + first_rule_[static_cast<std::size_t>(left) + 1];
  const Rule* const after =
      std::upper_bound(begin, end, right, [](std::int32_t id, const Rule& rule) { return id < rule.right; });
  return after != begin && after[-1].right == right ? after - 1 : nullptr;
}

void Bpe::merge(std::vector<std::int32_t>& ids) const {
  if (ids.size() >= none) throw Error(fmt::format("a word of {} bytes is too long to merge; cut the text", ids.size()));
  const auto size = static_cast<std::uint32_t>(ids.size());
  Word word;
  word.symbols.reserve(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    word.symbols.push_back({ids[i], i == 0 ? none : i - 1, i + 1 == size ? none : i + 1});
  }
  for (std::uint32_t i = 0; i < size; ++i) queue_merge(word, i);
  merge_queued(word);
  ids.clear();
  for (const Word::Symbol& symbol : word.symbols) {
    if (symbol.id != merged_away) ids.push_back(symbol.id);
  }
}

// Queues the merge of the symbol at `position` with the next one, if there is a rule for it.
void Bpe::queue_merge(Word& word, std::uint32_t position) const {
  check_cancelled();
  const Word::Symbol& left = word.symbols[position];
  const Rule* const rule = left.next == none ? nullptr : find(left.id, word.symbols[left.next].id);
  if (rule != nullptr) word.queue.push(static_cast<std::uint64_t>(rule->rank) << 32 | position);
}

void Bpe::merge_queued(Word& word) const {
  std::vector<Word::Symbol>& symbols = word.symbols;
  while (!word.queue.empty()) {
    check_cancelled();
    const std::uint64_t entry = word.queue.top();
    word.queue.pop();
    const auto position = static_cast<std::uint32_t>(entry);
    Word::Symbol& left = symbols[position];
    if (left.id == merged_away || left.next == none) continue;
    Word::Symbol& right = symbols[left.next];
    const Rule* const due = find(left.id, right.id);
    if (due == nullptr || due->result != result_of_[entry >> 32]) continue;
    left.id = due->result;
    left.next = right.next;
    right.id = merged_away;
    if (left.next != none) symbols[left.next].previous = position;
    queue_merge(word, position);
    if (left.previous != none) queue_merge(word, left.previous);
  }
}

}  // namespace minimind
