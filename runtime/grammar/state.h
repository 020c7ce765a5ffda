#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/grammar/grammar.h"
#include "runtime/grammar/items.h"
#include "runtime/grammar/token_trie.h"

namespace minimind {

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
