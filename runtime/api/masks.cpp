#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/api/failures.h"
#include "runtime/api/minimind.h"
#include "runtime/api/request_grammar.h"
#include "runtime/api/structures.h"
#include "runtime/grammar/state.h"
#include "runtime/grammar/token_trie.h"
#include "weights/base/error.h"

namespace minimind {

// The tokens of a minimind_vocabulary.
struct MaskTokens {
  std::vector<std::string> tokens;  // by id; end tokens are empty
  std::vector<bool> is_end;         // [tokens]
  std::vector<std::int32_t> ends;
  std::optional<TokenTrie> trie;
};

}  // namespace minimind

using namespace minimind;

struct minimind_vocabulary {
  std::shared_ptr<const MaskTokens> vocabulary;
};

struct minimind_grammar {
  std::shared_ptr<const Grammar> grammar;
  std::string notes;
};

struct minimind_matcher {
  minimind_matcher(std::shared_ptr<const MaskTokens> of, std::shared_ptr<const Grammar> given)
      : vocabulary(std::move(of)), grammar(std::move(given)), allowed(token_words(vocabulary->tokens.size())) {
    begin();
  }

  void begin() {
    state.emplace(grammar);
    state->measure_ends_in(*vocabulary->trie, std::vector<bool>(vocabulary->tokens.size(), true));
  }

  bool take(std::int32_t id) {
    if (id < 0 || static_cast<std::size_t>(id) >= vocabulary->tokens.size()) {
      throw Failure(MINIMIND_BAD_ARGUMENT,
                    fmt::format("ids has {}, expected ids from 0 to {}", id, vocabulary->tokens.size() - 1));
    }
    const auto token = static_cast<std::size_t>(id);
    const std::string& bytes = vocabulary->tokens[token];
    if (vocabulary->is_end[token]) {
      if (end_tokens == 0 && !state->may_end()) return false;
      ++end_tokens;
    } else if (end_tokens > 0 || bytes.empty() || !state->advance(bytes)) {
      return false;
    }
    starts.push_back(text.size());
    text += bytes;
    return true;
  }

  void remove(std::size_t count) {
    in_time = true;
    if (count > starts.size()) {
      throw Failure(MINIMIND_BAD_ARGUMENT,
                    fmt::format("count is {}, expected at most {}, the tokens of the text", count, starts.size()));
    }
    if (count == 0 && state) return;
    text.resize(count == 0 ? text.size() : starts[starts.size() - count]);
    starts.resize(starts.size() - count);
    end_tokens -= std::min(end_tokens, count);
    if (state) {
      state->restart();
    } else {
      begin();
    }
    state->advance(text);
  }

  // Marks the tokens that may follow. If the text cannot be complete in `most` tokens, all that the grammar allows.
  void mark(std::uint64_t most) {
    std::ranges::fill(allowed, 0);
    const bool may_end = end_tokens > 0 || state->may_end();
    if (end_tokens == 0 && most > 0) {
      const bool was_in_time = std::exchange(in_time, state->bytes_to_end() <= most);
      if (was_in_time && !in_time) {
        while (!state->measure_end()) continue;
        in_time = state->ends_in(most);
      }
      state->mark_allowed(*vocabulary->trie, allowed, in_time ? most - 1 : Grammar::longest_text);
      if (!may_end && std::ranges::all_of(allowed, [](std::uint64_t word) { return word == 0; })) {
        throw Failure(MINIMIND_BAD_INPUT, "no token of the vocabulary continues the text as the grammar requires");
      }
    }
    if (!may_end) return;
    for (const std::int32_t end : vocabulary->ends) add_token(allowed.data(), end);
  }

  Failures failures;
  const std::shared_ptr<const MaskTokens> vocabulary;
  const std::shared_ptr<const Grammar> grammar;
  std::optional<GrammarState> state;  // unset: it failed
  bool in_time = true;                // the text can end within its limit, when that was last asked for
  std::string text;
  std::vector<std::size_t> starts;  // [tokens], in the text
  std::size_t end_tokens = 0;       // of the tokens, the last
  TokenBits allowed;
};

namespace {

// Calls work(). If it fails, the state is unusable until begin().
template <class Work>
minimind_status use(minimind_matcher* matcher, Work&& work) {
  return guarded(matcher, [&] {
    if (!matcher->state) {
      throw Failure(MINIMIND_BAD_INPUT, "the text failed before, expected a rollback of its last tokens");
    }
    try {
      work();
    } catch (const Failure&) {
      throw;
    } catch (...) {
      matcher->state.reset();
      throw;
    }
  });
}

}  // namespace

minimind_status minimind_vocabulary_open(const char* const* tokens, const size_t* sizes, size_t count,
                                         const int32_t* end_tokens, size_t end_token_count,
                                         minimind_vocabulary** vocabulary, minimind_error* error) {
  return opened(error, [&] {
    required(vocabulary, "vocabulary") = nullptr;
    const auto texts = input(tokens, count, "tokens");
    const auto lengths = input(sizes, count, "sizes");
    auto made = std::make_shared<MaskTokens>();
    made->tokens.reserve(count);
    for (std::size_t i = 0; i < count; ++i) made->tokens.emplace_back(input_text(texts[i], lengths[i], "a token"));
    made->is_end.resize(count);
    for (const std::int32_t end : input(end_tokens, end_token_count, "end_tokens")) {
      if (end < 0 || static_cast<std::size_t>(end) >= count) {
        throw UsageError(fmt::format("end_tokens has {}, expected ids below {}", end, count));
      }
      made->tokens[static_cast<std::size_t>(end)].clear();
      made->is_end[static_cast<std::size_t>(end)] = true;
      made->ends.push_back(end);
    }
    std::vector<std::pair<std::string_view, std::int32_t>> of_trie;
    for (std::size_t i = 0; i < count; ++i) {
      if (!made->tokens[i].empty()) of_trie.emplace_back(made->tokens[i], static_cast<std::int32_t>(i));
    }
    made->trie.emplace(std::move(of_trie));
    *vocabulary = new minimind_vocabulary{std::move(made)};
  });
}

void minimind_vocabulary_close(minimind_vocabulary* vocabulary) {
  delete vocabulary;
}

minimind_status minimind_grammar_compile(const minimind_request* request, minimind_grammar** grammar,
                                         minimind_error* error) {
  return opened(error, [&] {
    required(grammar, "grammar") = nullptr;
    minimind_request defaults;
    minimind_default_request(&defaults, sizeof defaults);
    auto made = std::make_unique<minimind_grammar>();
    made->grammar =
        grammar_of(read_structure(&required(request, "request"), defaults, "minimind_request"), made->notes);
    if (!made->grammar) {
      throw UsageError("the request has no constraint, expected one of grammar, json_schema, regex and choices");
    }
    *grammar = made.release();
  });
}

const char* minimind_grammar_notes(const minimind_grammar* grammar) {
  return grammar ? grammar->notes.c_str() : no_handle;
}

void minimind_grammar_close(minimind_grammar* grammar) {
  delete grammar;
}

minimind_status minimind_matcher_open(const minimind_grammar* grammar, const minimind_vocabulary* vocabulary,
                                      minimind_matcher** matcher, minimind_error* error) {
  return opened(error, [&] {
    required(matcher, "matcher") = nullptr;
    *matcher =
        new minimind_matcher(required(vocabulary, "vocabulary").vocabulary, required(grammar, "grammar").grammar);
  });
}

minimind_status minimind_matcher_mask(minimind_matcher* matcher, size_t max_tokens, uint32_t* bits, size_t capacity) {
  return use(matcher, [&] {
    const std::size_t words = (matcher->vocabulary->tokens.size() + 31) / 32;
    check_room(capacity, words);
    required(bits, "bits");
    matcher->mark(max_tokens);
    std::memcpy(bits, matcher->allowed.data(), words * sizeof *bits);
  });
}

minimind_status minimind_matcher_accept(minimind_matcher* matcher, const int32_t* ids, size_t count, size_t* taken) {
  return use(matcher, [&] {
    std::size_t& number = required(taken, "taken") = 0;
    for (const std::int32_t id : input(ids, count, "ids")) {
      if (!matcher->take(id)) break;
      ++number;
    }
  });
}

minimind_status minimind_matcher_rollback(minimind_matcher* matcher, size_t count) {
  return guarded(matcher, [&] { matcher->remove(count); });
}

minimind_status minimind_matcher_end(minimind_matcher* matcher, uint64_t* tokens, int* may_end) {
  return use(matcher, [&] {
    const bool ended = matcher->end_tokens > 0;
    while (!ended && !matcher->state->measure_end()) continue;
    required(tokens, "tokens") = ended ? 0 : matcher->state->most_tokens_to_end();
    required(may_end, "may_end") = ended || matcher->state->may_end() ? 1 : 0;
  });
}

void minimind_matcher_close(minimind_matcher* matcher) {
  delete matcher;
}

const char* minimind_matcher_error(const minimind_matcher* matcher) {
  return message_of_handle(matcher);
}
