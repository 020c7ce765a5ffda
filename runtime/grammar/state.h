#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/grammar/grammar.h"

namespace minimind {

// A place in a grammar's symbols, and the frame to return to at the end of its rule.
struct GrammarItem {
  std::uint32_t symbol;
  std::uint32_t frame;

  auto operator<=>(const GrammarItem&) const = default;
};

// Lists of items, each kept once and known by a number, so that equal lists are told by equal numbers.
class GrammarItemLists {
 public:
  // `items` are sorted and without duplicates.
  std::uint32_t intern(std::span<const GrammarItem> items);

  std::span<const GrammarItem> operator[](std::uint32_t list) const {
    return {items_.data() + begins_[list], begins_[list + 1] - begins_[list]};
  }
  std::size_t size() const { return begins_.size() - 1; }
  std::size_t items() const { return items_.size(); }
  void clear();

 private:
  void grow();
  std::size_t slot_of(std::span<const GrammarItem> items) const;

  std::vector<GrammarItem> items_;
  std::vector<std::size_t> begins_{0};
  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(64, none);  // open addressing; a power of two
  static constexpr std::uint32_t none = ~0u;
};

// A set of items that is emptied often.
class GrammarItemSet {
 public:
  // Whether it was not in it before.
  bool insert(GrammarItem item);
  void clear();

 private:
  void place(std::uint64_t key);

  static constexpr std::uint64_t none = ~std::uint64_t{0};
  std::vector<std::uint64_t> slots_ = std::vector<std::uint64_t>(64, none);  // open addressing; a power of two
  std::vector<std::uint64_t> keys_;
};

// Texts of tokens by their beginnings, laid out so that one pass over it visits every text: a node, then its children.
struct TokenTrie {
  struct Node {
    std::uint8_t byte;
    std::uint32_t depth;        // 1 for the first byte of a text
    std::uint32_t after;        // the node that follows what begins with this one
    std::uint32_t first_token;  // in `tokens`
    std::uint32_t token_count;  // of the tokens that end here
  };

  // Texts are not empty; several tokens may have the same.
  explicit TokenTrie(std::vector<std::pair<std::string_view, std::int32_t>> texts);

  std::vector<Node> nodes;
  std::vector<std::int32_t> tokens;
  std::size_t longest = 0;  // bytes in the longest text
};

// How far a text has come through a grammar, byte by byte.
//
// All readings of an ambiguous text are followed at once, as Earley's parser does: readings that expect the same are
// one, so that their number is bounded by the grammar and the length of the text, never exponential in it. What was
// once worked out is remembered: where texts repeat, a byte costs a look into a table. Memory stays below about 100 MB;
// every function that is not const throws Error when a text is so ambiguous or nested so deeply that it would take
// more, or that one step would take seconds. The state is then of no further use.
class GrammarState {
 public:
  explicit GrammarState(std::shared_ptr<const Grammar> grammar);

  // Back to the beginning of the text; what was worked out is kept.
  void restart();

  // Takes the bytes, which may end inside a character. Returns false, and stays where it is, when no text of the
  // grammar goes on so.
  bool advance(std::string_view bytes);

  // Whether advance() would take them.
  bool allows(std::string_view bytes);

  // Whether the text so far is one of the grammar, and whether it is and nothing can follow.
  bool may_end() const;
  bool must_end() const;

  // The length of the shortest text that completes the text so far; Grammar::longest_text where it is longer.
  std::uint64_t bytes_to_end() const { return bytes_to_end_[current_]; }

  // Sets allowed[token] to 1 for every token of the trie whose text could follow and leave bytes_to_end() at most at
  // `most_bytes_to_end`. The rest is left as it is.
  void mark_allowed(const TokenTrie& trie, std::span<std::uint8_t> allowed,
                    std::uint64_t most_bytes_to_end = Grammar::longest_text);

 private:
  using State = std::uint32_t;  // a list of states_
  static constexpr State dead = ~0u, unknown = ~0u - 1;

  State next(State state, std::uint8_t byte) {
    const State known = transitions_[state * classes_ + grammar_->byte_class[byte]];
    return known != unknown ? known : work_out(state, grammar_->byte_class[byte]);
  }
  State follow(std::string_view bytes);
  State work_out(State state, std::uint8_t byte_class);
  State state_after(std::span<const GrammarItem> kernel);
  State initial_state();

  void begin_closure();
  void visit(GrammarItem item);
  void call(GrammarItem item, std::uint32_t rule);
  void run_calls();
  State finish_closure();

  void begin_step();
  void forget_all_but_current();
  std::size_t entries() const;
  std::uint32_t intern_frame(std::span<const GrammarItem> returns);
  std::uint64_t bytes_to_end(std::span<const GrammarItem> items) const;

  std::shared_ptr<const Grammar> grammar_;
  std::size_t classes_;

  GrammarItemLists frames_;  // where a rule returns to: the items behind its callers. Frame 0 is empty.
  std::vector<std::uint64_t> frame_bytes_to_end_;  // [frames], of the shortest text from the return to the end
  GrammarItemLists states_;                        // items before bytes or at `accept`
  std::vector<std::uint64_t> bytes_to_end_;        // [states]
  GrammarItemLists kernels_;                       // items just behind a byte
  std::vector<State> kernel_states_;               // [kernels], the state that each leads to
  std::vector<State> transitions_;                 // [states, classes]
  State current_ = 0;

  // Of the closure that is being made.
  std::vector<GrammarItem> pending_, found_;
  std::vector<std::vector<GrammarItem>> callers_;                // [rules], frames that are being gathered
  std::vector<std::pair<std::uint32_t, std::uint32_t>> called_;  // heap of (rank, rule)
  GrammarItemSet visited_;
  std::size_t work_ = 0;     // in this step
  std::vector<State> path_;  // [depth of a trie]
};

}  // namespace minimind
