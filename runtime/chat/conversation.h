#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/chat/answer_parser.h"
#include "runtime/chat/chat_template.h"
#include "runtime/chat/message.h"
#include "runtime/engine/context.h"
#include "runtime/generate/generate.h"
#include "runtime/tokenizer/tokenizer.h"

namespace minimind {

struct ConversationOptions {
  // Options of each answer. The n-th answer since the start, including undone and regenerated answers, is sampled with
  // sampling.seed + n - 1: answers differ, and all are repeatable.
  GenerateOptions generate;
  // The number of turns before the last one in the prompt; all that fit, if not given. MiniMind's eval_llm.py uses
  // none.
  std::optional<std::size_t> history;
  bool no_shift = false;  // throws Error if a conversation no longer fits, instead of dropping its oldest turns
  // Answers are plain text without tags, because JSON may have them in its strings.
  bool plain_answers = false;
  // Messages, results and tools are ordinary text, also where they spell control tokens: only the chat template and the
  // model write these. Otherwise as in transformers, where a user can write them, too.
  bool plain_content = false;
};

// The state of a conversation without the model, complete enough to continue with it later.
struct ConversationState {
  std::vector<Message> messages;
  std::string tools;              // as parse_tools() returns them; empty for none
  std::optional<bool> think;      // std::nullopt: the template decides
  std::size_t dropped_turns = 0;  // the oldest, which are no longer part of the prompt
  std::uint64_t answers = 0;      // generated so far
  std::time_t now = 0;            // the time for templates, constant in a conversation
  // The last prompt and the tokens generated after it; the context has a prefix of them.
  std::vector<std::int32_t> tokens;
};

// The cost of an answer.
struct AnswerStats {
  std::size_t prompt_tokens = 0;     // of the whole prompt: reused + computed, unless it was interrupted
  std::size_t reused_tokens = 0;     // of the prompt, found in the context
  std::size_t computed_tokens = 0;   // of the prompt, run through the model
  std::size_t generated_tokens = 0;  // the end token included
  std::size_t decoded_tokens = 0;    // of them: all except an answer's first, which is sampled from the prompt's logits
  std::size_t drafted_tokens = 0;    // as Generated::drafted and accepted
  std::size_t accepted_tokens = 0;
  double prompt_seconds = 0;
  double decode_seconds = 0;

  AnswerStats& operator+=(const AnswerStats& other);
};

struct Answer {
  Message message;  // role assistant; the calls have ids
  FinishReason finish_reason = FinishReason::stop;
  bool conforms = true;  // as Generated::conforms
  // The answer was interrupted before it started. The conversation is as before the question; message is empty.
  bool withdrawn = false;
  std::size_t dropped_turns = 0;  // for this answer
  AnswerStats stats;
};

// Callbacks while an answer is generated. Each may be empty.
struct AnswerListener {
  std::function<void(const AnswerEvent&)> on_event;
  std::function<void(std::size_t turns)> on_dropped;  // before the prompt is computed: the oldest turns are omitted
  std::function<void(std::string_view)> on_written;   // each piece of text as the model writes it, with all tags
};

// A conversation with a model through its chat template. A turn is a message of the user and all messages up to the
// next one.
//
// Prompts are those of MiniMind's own scripts, token for token: the template gets an answer as the text that the model
// wrote, and its output is encoded again. If the template makes the same text of content, reasoning_content and
// tool_calls, or requires these fields, it gets them instead.
//
// The common prefix of the prompt and the tokens in the context is not computed again, see generate().
//
// A full context ends an answer. A reserve of min(max_tokens, capacity / 4) positions is kept free after every prompt.
// If prompt and reserve do not fit, the oldest turns are dropped until the prompt takes at most half of the capacity.
// The system prompt and the last turn are never dropped; they may take all positions except one. So at least a quarter
// of the context is filled before turns are dropped again, and only then the whole prompt is computed again.
class Conversation {
 public:
  // All arguments must outlive the conversation. `context` may already have tokens, those of a session.
  Conversation(Forward& forward, Context& context, const Tokenizer& tokenizer, const ChatTemplate& chat_template,
               ConversationOptions options);

  // Answers a message of the user. Throws UsageError if the message is not UTF-8, or if there is a grammar and the
  // prompt opens a thought. Throws Error as the template and generate() do, if the last turn alone does not fit, or,
  // with no_shift, if prompt and reserve do not fit. After an exception the conversation is unchanged. Interrupted
  // answers stay in the conversation with the text so far.
  Answer ask(const std::string& text, const AnswerListener& listener, const std::atomic<bool>& interrupted);

  // Returns the calls of the last answer that require results; empty if it made none. Valid until the messages change.
  std::span<const ToolCall> pending_calls() const;

  // Answers the results of all pending calls, in their order. Throws UsageError if their number differs, and as ask().
  Answer give_results(const std::vector<std::string>& results, const AnswerListener& listener,
                      const std::atomic<bool>& interrupted);

  // Replaces the last answer with a new one. If a loaded conversation ends with the user or a tool, answers it. Throws
  // UsageError if there is nothing to answer, and as ask().
  Answer regenerate(const AnswerListener& listener, const std::atomic<bool>& interrupted);

  // Removes the last turn. Returns the user's message; std::nullopt if there is none.
  std::optional<std::string> undo();

  // Removes all turns; system prompt, tools and thinking stay.
  void reset();

  // Replaces the system prompt; std::nullopt removes it. Throws UsageError if it is not UTF-8.
  void set_system(const std::optional<std::string>& text);
  std::optional<std::string> system() const;

  // Sets the template's variables open_thinking (MiniMind's) and enable_thinking (Qwen's). std::nullopt leaves both
  // undefined; then MiniMind does not think and Qwen does.
  void set_think(std::optional<bool> think) { state_.think = think; }
  std::optional<bool> think() const { return state_.think; }

  // Returns the settings that the chat template ignores, so that the model never sees them: "thinking", "tools".
  std::vector<std::string_view> unheard() const;

  // Returns the tools as parse_tools() does; empty for none.
  void set_tools(std::string tools) { state_.tools = std::move(tools); }

  // Returns the messages, including those of dropped turns.
  const std::vector<Message>& messages() const { return state_.messages; }
  std::size_t turns() const;
  // Returns the number of oldest turns that are not in the prompt, because they do not fit or by
  // ConversationOptions::history.
  std::size_t dropped_turns() const { return std::max(state_.dropped_turns, hidden_turns(turns())); }

  const ConversationState& state() const { return state_; }
  // Continues with another conversation. Throws Error if a tool's message has no call before it.
  void restore(ConversationState state);

  const Context& context() const { return context_; }
  // Returns the number of positions kept free after a prompt.
  std::size_t reserve() const;
  const AnswerStats& last_stats() const { return last_; }    // of the last answer
  const AnswerStats& total_stats() const { return total_; }  // of all since this was made

 private:
  struct Prompt {
    MarkedText text;
    std::vector<std::int32_t> tokens;
    std::size_t left_out_turns = 0;  // the oldest turns, not in the prompt
    std::size_t dropped_turns = 0;   // of them, dropped for this prompt
  };

  Answer answer(std::vector<Message> messages, const AnswerListener& listener, const std::atomic<bool>& interrupted);

  // Returns how many of `turns` turns ConversationOptions::history excludes from the prompt.
  std::size_t hidden_turns(std::size_t turns) const;
  Prompt make_prompt(const std::vector<Message>& messages, std::size_t left_out_turns) const;
  Prompt fit(const std::vector<Message>& messages) const;

  Forward& forward_;
  Context& context_;
  const Tokenizer& tokenizer_;
  const ChatTemplate& chat_template_;
  ConversationOptions options_;
  ConversationState state_;
  AnswerStats last_, total_;
};

}  // namespace minimind
