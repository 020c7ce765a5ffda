#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
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
  // As for one answer. The n-th answer since the beginning, those that were undone or regenerated included, is sampled
  // with sampling.seed + n - 1: another one each time, and all of them repeatable.
  GenerateOptions generate;
  // How many turns before the last one the model is shown; all that fit, if not given. MiniMind's eval_llm.py shows
  // none.
  std::optional<std::size_t> history;
  bool no_shift = false;  // a conversation that no longer fits is an Error, instead of losing its oldest turns
  // An answer is text alone, and tags in it mean nothing: JSON may have them in its strings.
  bool plain_answers = false;
};

// What a conversation is, apart from the model: enough to continue with it later.
struct ConversationState {
  std::vector<Message> messages;
  std::string tools;              // as parse_tools() returns them; empty for none
  std::optional<bool> think;      // nothing: as the template does when it is not told
  std::size_t dropped_turns = 0;  // the oldest, which are no longer part of the prompt
  std::uint64_t answers = 0;      // generated so far
  std::time_t now = 0;            // the time that templates see, the same throughout
  // The last prompt and what was generated after it, of which the context holds the start.
  std::vector<std::int32_t> tokens;
};

// What an answer took.
struct AnswerStats {
  std::size_t prompt_tokens = 0;     // of the whole prompt: reused + computed, unless it was interrupted
  std::size_t reused_tokens = 0;     // of the prompt, found in the context
  std::size_t computed_tokens = 0;   // of the prompt, run through the model
  std::size_t generated_tokens = 0;  // the end token included
  std::size_t decoded_tokens = 0;    // of them: all but an answer's first, which comes out of the prompt's logits
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
  // It was interrupted before it began. The conversation is as it was before the question; message is empty.
  bool withdrawn = false;
  std::size_t dropped_turns = 0;  // for this answer
  AnswerStats stats;
};

// Told of an answer while it comes. Each may be empty.
struct AnswerListener {
  std::function<void(const AnswerEvent&)> on_event;
  std::function<void(std::size_t turns)> on_dropped;  // before the prompt is computed: the oldest turns are omitted
  std::function<void(std::string_view)> on_written;   // each piece of text as the model writes it, with all tags
};

// A conversation with a model through its chat template. A turn is a message of the user and all that follows it up to
// the next one.
//
// Prompts are those of MiniMind's own scripts, token for token: an answer is given to the template as the text that the
// model wrote, and what the template makes of it is encoded again. Where the template makes the same of content,
// reasoning_content and tool_calls, or requires these, it is given them instead.
//
// What the prompt has in common with the tokens in the context is not computed again, see generate().
//
// The context ends an answer when it is full. So that there is room for one, a reserve of
// min(max_tokens, capacity / 4) positions is kept free after every prompt. Where it does not fit, the oldest turns are
// dropped from the prompt until that takes at most half of the capacity (never the system prompt or the last turn,
// which may take all but one position): then at least a quarter of the context is filled before that happens again, and
// only then all of the prompt is computed again.
class Conversation {
 public:
  // All of them must outlive this. `context` may hold tokens already, those of a session.
  Conversation(Forward& forward, Context& context, const Tokenizer& tokenizer, const ChatTemplate& chat_template,
               ConversationOptions options);

  // Answers a message of the user. Throws UsageError when it is not UTF-8; Error as the template and generate() do,
  // when the last turn alone does not fit, or, with no_shift, when prompt and reserve do not fit; UsageError when there
  // is a grammar and the prompt opens a thought, which no grammar is for. After a throw the conversation is as it was
  // before. Interrupted answers stay in the conversation as far as they went.
  Answer ask(const std::string& text, const AnswerListener& listener, const std::atomic<bool>& interrupted);

  // The calls of the last answer that wait for results; empty when it made none.
  std::vector<ToolCall> pending_calls() const;

  // Answers the results of all pending calls, in their order. Throws UsageError when there are not as many, and as
  // ask().
  Answer give_results(const std::vector<std::string>& results, const AnswerListener& listener,
                      const std::atomic<bool>& interrupted);

  // Answers again what the last answer answered, which goes; or continues to answer where a conversation that was
  // loaded ends with the user or a tool. Throws UsageError when there is nothing to answer, and as ask().
  Answer regenerate(const AnswerListener& listener, const std::atomic<bool>& interrupted);

  // Takes the last turn away. Returns the user's message; std::nullopt if there is none.
  std::optional<std::string> undo();

  // Takes all turns away; system prompt, tools and thinking stay.
  void reset();

  // Replaces the system prompt; nothing takes it away. Throws UsageError when it is not UTF-8.
  void set_system(const std::optional<std::string>& text);
  std::optional<std::string> system() const;

  // Sets the variables open_thinking (MiniMind's) and enable_thinking (Qwen's) of the template; nothing leaves both
  // undefined, with which MiniMind does not think and Qwen does.
  void set_think(std::optional<bool> think) { state_.think = think; }
  std::optional<bool> think() const { return state_.think; }

  // Settings that the chat template takes no notice of, so that the model never hears of them: "thinking", "tools".
  std::vector<std::string_view> unheard() const;

  // As parse_tools() returns them; empty for none.
  void set_tools(std::string tools) { state_.tools = std::move(tools); }

  // The messages, those of dropped turns included.
  const std::vector<Message>& messages() const { return state_.messages; }
  std::size_t turns() const;
  // The oldest, which are not part of the prompt, for want of room or by ConversationOptions::history.
  std::size_t dropped_turns() const { return std::max(state_.dropped_turns, hidden_turns(turns())); }

  const ConversationState& state() const { return state_; }
  // Goes on with another conversation. Throws Error when its messages make no sense in their order: a system message
  // that is not the first, a tool's without a call, no user message before an answer.
  void restore(ConversationState state);

  const Context& context() const { return context_; }
  // How many positions are kept free after a prompt.
  std::size_t reserve() const;
  const AnswerStats& last_stats() const { return last_; }    // of the last answer
  const AnswerStats& total_stats() const { return total_; }  // of all since this was made

 private:
  struct Prompt {
    std::string text;
    std::vector<std::int32_t> tokens;
    std::size_t left_out_turns = 0;  // the oldest
    std::size_t dropped_turns = 0;   // of them, for want of room now
  };

  Answer answer(std::vector<Message> messages, const AnswerListener& listener, const std::atomic<bool>& interrupted);

  // How many of `turns` turns are not shown to the model by ConversationOptions::history.
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
