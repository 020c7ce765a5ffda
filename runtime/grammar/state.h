#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/grammar/grammar.h"
#include "runtime/grammar/json_memory.h"
#include "runtime/grammar/token_trie.h"
#include "weights/io/json_place.h"

namespace minimind {

// A position in a grammar's symbols, and the frame to return to at the end of its rule.
struct GrammarItem {
  std::uint32_t symbol;
  std::uint32_t frame;

  auto operator<=>(const GrammarItem&) const = default;
};

// Lists of items, each stored once under a number, so that lists are equal if their numbers are.
class GrammarItemLists {
 public:
  // `items` must be sorted and without duplicates.
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
  // Adds an item; returns true if it is new.
  bool insert(GrammarItem item);
  void clear();

 private:
  void place(std::uint64_t key);

  static constexpr std::uint64_t none = ~std::uint64_t{0};
  std::vector<std::uint64_t> slots_ = std::vector<std::uint64_t>(64, none);  // open addressing; a power of two
  std::vector<std::uint64_t> keys_;
};

// The position of a text in a grammar, byte by byte.
//
// All readings of an ambiguous text are followed at once, as in Earley's parser. Readings with equal expectations are
// merged, so that their number is bounded by the grammar and the length of the text, never exponential in it. Results
// are cached: if texts repeat, a byte costs one table lookup. Memory stays below about 100 MB, and rules that are made
// when a text needs them are kept beside that, up to a number of symbols that an Error names. Every function that is
// not const throws Error if a text is so ambiguous or so deeply nested that it would need more memory, or that a byte
// of it, or the tokens that may follow, would take more than a number of steps of work, some milliseconds. The
// state is unusable afterwards.
class GrammarState {
 public:
  explicit GrammarState(std::shared_ptr<const Grammar> grammar);

  // Returns to the start of the text; keeps cached results.
  void restart();

  // Most of the bytes of cached results.
  std::size_t memory() const;
  // Forgets all but where the text is, and the rules that were made.
  void forget();

  // Takes the bytes, which may end inside a character. Returns false, leaving the state unchanged, if no text of the
  // grammar continues so. Many bytes at once are followed quicker than one by one.
  bool advance(std::string_view bytes);

  // Takes as many of the bytes as some text of the grammar continues with, and returns their number.
  std::size_t advance_within(std::string_view bytes);

  // Returns true if advance() would take the bytes.
  bool allows(std::string_view bytes);

  // Return true if the text so far is one of the grammar, and if it is and nothing can follow.
  bool may_end() const;
  bool must_end() const;

  // Returns the length of the shortest text that completes the text so far; at most Grammar::longest_text.
  std::uint64_t bytes_to_end() const { return bytes_to_end_[current_]; }

  // From here on, ends are also measured in tokens: those of the trie, which must outlive this, for which `usable`
  // [ids] is true.
  void measure_ends_in(const TokenTrie& trie, std::vector<bool> usable);

  // Looks at the end of the text so far for most_tokens_to_end(), some milliseconds at most. Returns false after a part
  // of the work that is not the last: until then, the end counts more.
  bool measure_end();

  // Returns how many tokens complete the text so far, at most: the fewest for a text of bytes_to_end() bytes, of which
  // one is looked at. Its end counts in bytes if it is long. Without measure_ends_in() all of it does.
  std::uint64_t most_tokens_to_end();

  // Whether the text so far can be completed by so many tokens, as far as these two tell.
  bool ends_in(std::uint64_t tokens) { return bytes_to_end() <= tokens || most_tokens_to_end() <= tokens; }

  // Adds every token of the trie whose text can follow and leaves most_tokens_to_end() at most at `most_to_end` to the
  // TokenBits `allowed`. Leaves out those after which an item could only end as one that must not be repeated, as far
  // as a limit of work tells.
  void mark_allowed(const TokenTrie& trie, std::span<std::uint64_t> allowed,
                    std::uint64_t most_to_end = Grammar::longest_text);

 private:
  using State = std::uint32_t;  // a list of states_
  static constexpr State dead = ~0u, unknown = ~0u - 1;

  // A state after a byte, with the byte's event above its number.
  using Move = std::uint32_t;
  static constexpr unsigned event_shift = 27;
  static constexpr State state_of(Move move) { return move & ((1u << event_shift) - 1); }

  struct Position {
    State state = 0;
    JsonMemory::Scope scope = 0;
  };

  Move next(State state, std::uint8_t byte) {
    const std::uint8_t byte_class = tables().byte_class[byte];
    const Move known = transitions_[state * classes_ + byte_class];
    return known != unknown ? known : work_out(state, byte_class);
  }
  std::uint64_t measured(State state);
  bool step_closer(State state);
  std::uint64_t fewest_tokens(State state) const;
  bool ends_within(State state, std::uint64_t most);
  Position follow(std::string_view bytes);
  std::size_t skip(Position& position, std::string_view bytes, std::size_t at);
  Position step(Position from, std::uint8_t byte, std::size_t at);
  Position after_event(Position from, std::uint8_t byte, std::size_t at, Move move);
  Move work_out(State state, std::uint8_t byte_class);
  State state_without_distinct(State state, std::uint8_t byte);
  State state_after(std::vector<GrammarItem>& kernel);
  State initial_state();

  void begin_closure();
  void visit(GrammarItem item);
  void call(GrammarItem item, std::uint32_t rule);
  void run_calls();
  State finish_closure();
  void begin_transitions();

  void begin_step();
  void make_room(State& followed, State& start);
  std::size_t forget_all_but(State& followed, State& start);
  State keep(const GrammarItemLists& frames, std::span<const GrammarItem> items, std::vector<std::uint32_t>& numbers);
  std::size_t entries() const;
  std::uint32_t intern_frame(std::span<const GrammarItem> returns, std::uint32_t part = 0);
  std::uint32_t frame_of_callers(std::uint32_t rule);
  template <class Use>
  void for_new_returns(std::uint32_t frame, std::uint32_t use_id, Use use);
  void add_widths(std::span<const GrammarItem> returns);
  bool is_wider(GrammarItem a, GrammarItem b) const;
  void drop_narrower(std::vector<GrammarItem>& items);
  std::uint64_t bytes_to_end(std::span<const GrammarItem> items) const;

  // The tables of the grammar, or those of the rules that were made so far.
  const Grammar& tables() const { return rules_ ? made_ : *grammar_; }
  void begin_rules();
  void meet(std::uint32_t rule);
  void make(std::uint32_t rule);
  void make_alternatives(std::uint32_t rule);
  std::uint32_t set_of(const GrammarRules::Symbol& symbol);

  std::shared_ptr<const Grammar> grammar_;
  std::unique_ptr<GrammarRules> rules_;  // null if the grammar has its rules already
  Grammar made_;
  std::vector<std::uint64_t> rule_bytes_;  // [rules of made_], of the shortest text
  struct SetUse {
    JsonEvent event;
    bool distinct;
  };
  std::map<std::tuple<std::uint32_t, JsonEvent, bool>, std::uint32_t> set_uses_;
  std::unordered_map<ByteSet, std::uint32_t> set_ids_;
  std::vector<SetUse> uses_;                                         // [byte sets of made_]
  std::vector<std::array<GrammarRules::TextRun, text_kinds>> runs_;  // [symbols of made_]
  std::string text_;                                                 // so far, if the grammar makes its rules
  JsonMemory memory_;
  JsonMemory::Scope scope_ = 0;
  std::uint32_t accept_ = 0;  // the symbol
  std::size_t classes_;

  GrammarItemLists frames_;  // return positions of rules: the items after their callers. Frame 0 is empty.
  std::vector<std::uint64_t> frame_bytes_to_end_;  // [frames], of the shortest text from the return to the end
  // Large frames as an earlier one, all of whose returns they have, and the rest of their returns.
  struct Growth {
    std::uint32_t part = 0;
    std::vector<GrammarItem> rest;
  };
  std::unordered_map<std::uint32_t, Growth> growths_;  // by frame
  // Frames of a family differ in how much they allow: all that follows one of them may follow those of lower places. A
  // frame may be in two families.
  struct Width {
    std::uint32_t family = 0;  // 0: none
    std::uint32_t place = 0;
  };
  std::vector<std::array<Width, 2>> widths_;  // [frames], if the grammar has paths
  std::unordered_map<std::uint64_t, std::uint32_t> families_;
  struct Candidate {
    std::uint64_t family;
    std::uint32_t place, item;
  };
  std::vector<Candidate> candidates_;
  GrammarItemLists states_;                  // items before bytes or at `accept`
  std::vector<std::uint64_t> bytes_to_end_;  // [states]
  // A state takes all texts of at most `characters` characters of a kind, with bytes_to_end() of at most `bytes` after
  // them, as its rules report.
  struct StateRun {
    std::uint32_t characters = 0;
    std::uint32_t most = 0;  // it takes no longer ones
    std::uint64_t bytes = 0;
  };
  std::vector<std::array<StateRun, text_kinds>> state_runs_;  // [states], if the grammar makes its rules
  void begin_runs();
  GrammarItemLists kernels_;          // items directly after a byte
  std::vector<State> kernel_states_;  // [kernels], the state of each
  std::vector<Move> transitions_;     // [states, classes]
  std::vector<ByteSet> taken_bytes_;  // [states], the only ones that some item takes
  State current_ = 0;

  const TokenTrie* ends_trie_ = nullptr;
  std::vector<bool> usable_;  // [ids of tokens]
  // A byte of a shortest text that completes the text in a state, and what it leads to; the tokens of all that text.
  struct Way {
    static constexpr std::uint64_t not_measured = ~std::uint64_t{0};
    State next = unknown;  // if the rest counts in bytes, or is empty
    std::uint8_t byte = 0;
    std::uint64_t tokens = not_measured;
  };
  std::vector<Way> ways_;          // [states], as far as they were measured
  std::vector<State> unmeasured_;  // before one that is measured
  std::size_t work_to_end_ = 0;    // in this step

  // The tokens that may follow a state, if neither names and items so far nor a limit decided on any.
  struct KnownMask {
    TokenBits allowed;
    std::uint64_t most_bytes_to_end = 0;  // of the states that the tokens lead to
    std::size_t parts = 0;                // of the trie, the first of which it is about
  };
  // The mask that is being worked out.
  struct Mask {
    std::span<std::uint64_t> allowed;
    std::uint64_t limit = 0;  // of most_tokens_to_end()
    bool limited = false;     // it decided
    std::uint64_t most = 0;   // bytes_to_end() of an allowed token
  };
  std::size_t mark_known(const TokenTrie& trie, std::span<std::uint64_t> allowed, std::uint64_t most_to_end);
  void mark_others(const TokenTrie& trie, std::size_t known, std::span<std::uint64_t> allowed,
                   std::uint64_t most_to_end);
  void mark_parts(const TokenTrie& trie, std::size_t first, std::span<std::uint64_t> allowed, bool keep);
  void drop_repetitions(const TokenTrie& trie, std::span<std::uint64_t> allowed);
  void drop_dead_ends(const TokenTrie& trie, std::span<std::uint64_t> allowed, std::string_view along = {},
                      std::size_t known = 0);
  bool is_more_of_zeros(std::size_t at) const;
  bool may_differ(Position from, std::size_t at, JsonMemory::Scope array, JsonPlace place);
  void mark_part(const TokenTrie::Part& part);
  void mark_nodes(const TokenTrie::Part& part, std::uint32_t first, std::uint32_t end);
  std::uint32_t loops_of(State state);
  bool takes_all(State state, TextKind kind, std::size_t count);
  bool follows_all(State state, TextKind kind, std::size_t count);
  bool mark_by_length(const TokenTrie::Part& part);
  bool takes_none(State state, TextKind kind);
  State next_of_all(State state, TextKind kind);
  State common_next(State state, std::string_view bytes);
  std::unordered_map<State, KnownMask> masks_;
  std::vector<bool> mask_wanted_;  // [states], by mark_allowed()
  const TokenTrie* masks_trie_ = nullptr;
  Mask mask_;
  TokenBits kept_mask_;
  bool memory_decided_ = false;
  std::array<std::vector<State>, text_kinds> next_of_all_;  // [states], after any character; dead if there are several
  // [states], the classes of plain characters all of which lead back to the state; not_known where nothing asked
  std::vector<std::uint32_t> loops_;
  static constexpr std::uint32_t not_known = ~0u;
  std::size_t text_end_ = 0;              // before the texts of a trie
  JsonPlace place_ = JsonPlace::between;  // there
  std::size_t work_ahead_ = 0;            // left in this step
  std::vector<Position> path_;            // [depth of a trie]

  // The closure in progress.
  std::vector<GrammarItem> kernel_, pending_, found_;
  std::vector<std::vector<GrammarItem>> callers_;  // [rules], frames in progress
  struct Entered {
    std::uint64_t closure = 0;
    std::uint32_t frame = 0;
  };
  std::vector<Entered> entered_;  // [rules], the last time
  std::uint64_t closures_ = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> called_;  // heap of (rank, rule)
  GrammarItemSet visited_;
  std::size_t work_ = 0, most_work_ = 0;  // in this step
  std::size_t most_entries_;
};

}  // namespace minimind
