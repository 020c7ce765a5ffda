#include "runtime/chat/conversation.h"

#include <fmt/core.h>

#include <utility>

#include "runtime/chat/conversation_prompt.h"
#include "runtime/chat/message_json.h"
#include "runtime/text/utf8.h"
#include "weights/base/cancel.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

void require_utf8(const std::string& text, std::string_view what) {
  if (const auto at = first_not_utf8(text)) {
    throw UsageError(fmt::format("{} is not UTF-8 at byte {}, expected text in UTF-8", what, *at));
  }
}

// Passes an answer's text to its message and to the listener.
class Collector {
 public:
  Collector(ThinkState state, const AnswerListener& listener, std::size_t first_call, bool plain)
      : parser_(state), listener_(listener), next_call_(first_call), plain_(plain) {}

  void push(std::string_view text) {
    if (plain_) {
      events_.push_back({.kind = AnswerEvent::Kind::text, .text = std::string(text), .call = {}});
    } else {
      parser_.push(text, events_);
    }
    take_events();
  }

  Message finish() {
    parser_.finish(events_);
    take_events();
    return std::move(message_);
  }

 private:
  void take_events() {
    for (AnswerEvent& event : events_) {
      add_event(event, message_, next_call_);
      if (listener_.on_event) listener_.on_event(event);
    }
    events_.clear();
  }

  AnswerParser parser_;
  const AnswerListener& listener_;
  std::size_t next_call_;
  bool plain_;
  std::vector<AnswerEvent> events_;
  Message message_{.role = Role::assistant};
};

PromptSettings settings_of(const ConversationState& state) {
  return {.tools = state.tools, .think = state.think, .now = state.now};
}

AnswerStats stats_of(const Generated& result, std::size_t prompt_tokens) {
  return {.prompt_tokens = prompt_tokens,
          .reused_tokens = result.prompt_tokens_reused,
          .computed_tokens = result.prompt_tokens_done,
          .generated_tokens = result.tokens.size(),
          .decoded_tokens = result.decoded_tokens(),
          .drafted_tokens = result.drafted,
          .accepted_tokens = result.accepted,
          .prompt_seconds = result.prompt_seconds,
          .decode_seconds = result.decode_seconds};
}

// Returns the text with the bytes of ordinary tokens marked. The other tokens of a text are the tags of an answer.
MarkedText marked_text(const Generated& generated, const Tokenizer& tokenizer) {
  const std::vector<std::int32_t> tags = answer_tag_tokens(tokenizer);
  MarkedText text;
  std::string ordinary;
  const auto end_ordinary = [&] { text.append(MarkedText::all(to_utf8_lossy(std::exchange(ordinary, "")))); };
  for (const std::int32_t token : generated.tokens) {
    const bool is_tag = std::ranges::find(tags, token) != tags.end();
    if (tokenizer.is_special(token) && !is_tag) continue;
    if (!tokenizer.is_added(token)) {
      ordinary += tokenizer.token_bytes(token);
      continue;
    }
    end_ordinary();
    text.append(tokenizer.token_bytes(token));
  }
  end_ordinary();
  // A stop string has cut the end.
  if (!text.bytes.starts_with(generated.text)) return MarkedText::all(generated.text);
  return text.part(std::string_view(text.bytes).substr(0, generated.text.size()));
}

}  // namespace

AnswerStats& AnswerStats::operator+=(const AnswerStats& other) {
  prompt_tokens += other.prompt_tokens;
  reused_tokens += other.reused_tokens;
  computed_tokens += other.computed_tokens;
  decoded_tokens += other.decoded_tokens;
  generated_tokens += other.generated_tokens;
  drafted_tokens += other.drafted_tokens;
  accepted_tokens += other.accepted_tokens;
  prompt_seconds += other.prompt_seconds;
  decode_seconds += other.decode_seconds;
  return *this;
}

Conversation::Conversation(Forward& forward, Context& context, const Tokenizer& tokenizer,
                           const ChatTemplate& chat_template, ConversationOptions options)
    : forward_(forward),
      context_(context),
      tokenizer_(tokenizer),
      chat_template_(chat_template),
      options_(std::move(options)) {
  state_.now = std::time(nullptr);
  options_.generate.text_tokens = answer_tag_tokens(tokenizer);
}

Answer Conversation::ask(const std::string& text, const AnswerListener& listener,
                         const std::atomic<bool>& interrupted) {
  require_utf8(text, "the message");
  std::vector<Message> messages = state_.messages;
  messages.push_back({.role = Role::user, .content = text});
  return answer(std::move(messages), listener, interrupted);
}

std::span<const ToolCall> Conversation::pending_calls() const {
  const auto first = state_.messages.rbegin();
  auto answered = first;
  std::size_t results = 0;
  for (; answered != state_.messages.rend() && answered->role == Role::tool; ++answered) {
    const std::string& id = answered->tool_call_id;
    const bool is_part = answered != first && !id.empty() && id == std::prev(answered)->tool_call_id;
    if (!is_part) ++results;
  }
  if (answered == state_.messages.rend() || answered->role != Role::assistant) return {};
  const std::span<const ToolCall> calls = answered->tool_calls;
  return calls.subspan(std::min(results, calls.size()));
}

Answer Conversation::give_results(const std::vector<std::string>& results, const AnswerListener& listener,
                                  const std::atomic<bool>& interrupted) {
  const std::span<const ToolCall> calls = pending_calls();
  if (calls.empty()) throw UsageError("the last answer called no tool: there is no call to give results for");
  if (results.size() != calls.size()) {
    throw UsageError(fmt::format("the last answer made {} calls and got {} results; give one for each", calls.size(),
                                 results.size()));
  }
  std::vector<Message> messages = state_.messages;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    require_utf8(results[i], "the result");
    messages.push_back({.role = Role::tool, .content = results[i], .tool_call_id = calls[i].id, .name = calls[i].name});
  }
  return answer(std::move(messages), listener, interrupted);
}

Answer Conversation::regenerate(const AnswerListener& listener, const std::atomic<bool>& interrupted) {
  std::vector<Message> messages = state_.messages;
  if (!messages.empty() && messages.back().role == Role::assistant) messages.pop_back();
  const bool waits = !messages.empty() && (messages.back().role == Role::user || messages.back().role == Role::tool);
  if (!waits) throw UsageError("there is no question yet, expected one to answer again");
  return answer(std::move(messages), listener, interrupted);
}

Answer Conversation::answer(std::vector<Message> messages, const AnswerListener& listener,
                            const std::atomic<bool>& interrupted) {
  Prompt prompt;
  try {
    const Cancellation cancellation(interrupted);
    prompt = fit(messages);
  } catch (const Cancelled&) {
    Answer none;
    none.finish_reason = FinishReason::interrupted;
    none.withdrawn = true;
    return none;
  }
  const ThinkState thinks = think_state(prompt.text.bytes);
  if (options_.generate.constraint && thinks == ThinkState::open) {
    throw UsageError("a grammar or schema is for the answer, but the prompt starts a thought; turn thinking off");
  }
  Answer result;
  result.dropped_turns = prompt.dropped_turns;
  if (result.dropped_turns > 0 && listener.on_dropped) listener.on_dropped(result.dropped_turns);

  GenerateOptions options = options_.generate;
  options.sampling.seed += state_.answers;
  Collector collector(thinks, listener, tool_call_count(messages) + 1, options_.plain_answers);
  const auto show = [&](std::string_view piece) {
    if (listener.on_written) listener.on_written(piece);
    collector.push(piece);
  };
  const Generated generated = generate(forward_, context_, &tokenizer_, prompt.tokens, options, show, interrupted);
  result.message = collector.finish();
  result.finish_reason = generated.finish_reason;
  result.conforms = generated.conforms;
  result.stats = stats_of(generated, prompt.tokens.size());
  last_ = result.stats;
  total_ += result.stats;
  result.withdrawn = generated.finish_reason == FinishReason::interrupted && generated.tokens.empty();
  if (result.withdrawn) return result;

  messages.push_back(result.message);
  const auto verbatim =
      verbatim_form(chat_template_, settings_of(state_), without_turns(messages, prompt.left_out_turns),
                    marked_text(generated, tokenizer_), options_.plain_content ? &tokenizer_ : nullptr);
  if (verbatim) {
    messages.back().verbatim = verbatim->bytes;
    messages.back().verbatim_plain = verbatim->marks;
  }
  state_.messages = std::move(messages);
  if (prompt.dropped_turns > 0) state_.dropped_turns = prompt.left_out_turns;
  state_.answers += 1;
  state_.tokens = prompt.tokens;
  state_.tokens.insert(state_.tokens.end(), generated.tokens.begin(), generated.tokens.end());
  return result;
}

std::size_t Conversation::reserve() const {
  return std::max<std::size_t>(1, std::min(options_.generate.max_tokens, context_.capacity() / 4));
}

std::size_t Conversation::hidden_turns(std::size_t turns) const {
  return options_.history && turns > *options_.history ? turns - 1 - *options_.history : 0;
}

Conversation::Prompt Conversation::make_prompt(const std::vector<Message>& messages, std::size_t left_out_turns) const {
  Prompt prompt;
  prompt.text = render_prompt(chat_template_, settings_of(state_), without_turns(messages, left_out_turns), true);
  // As in MiniMind's scripts, the tokenizer's post-processor adds tokens to the template's text.
  prompt.tokens =
      tokenizer_.encode_with_special(prompt.text.bytes, options_.plain_content ? prompt.text.marks : TextMarks());
  prompt.left_out_turns = left_out_turns;
  return prompt;
}

// Omits the oldest turns that are hidden or do not fit.
Conversation::Prompt Conversation::fit(const std::vector<Message>& messages) const {
  const std::size_t capacity = context_.capacity();
  const std::size_t turns = turn_starts(messages).size();
  const std::size_t hidden = std::max(state_.dropped_turns, hidden_turns(turns));
  Prompt prompt = make_prompt(messages, hidden);
  if (prompt.tokens.size() + reserve() > capacity && hidden + 1 < turns) {
    if (options_.no_shift) {
      throw Error(
          fmt::format("the conversation is {} tokens long, which leaves no room for an answer of {} in the context of "
                      "{}; start over, use a larger context, or let the oldest turns be dropped",
                      prompt.tokens.size(), reserve(), capacity),
          Setting::context);
    }
    // Dropping more turns shortens the prompt, so the smallest sufficient number is found by bisection.
    std::size_t too_few = hidden, enough = turns - 1;
    prompt = make_prompt(messages, enough);
    while (enough - too_few > 1) {
      const std::size_t middle = too_few + (enough - too_few) / 2;
      Prompt shorter = make_prompt(messages, middle);
      if (shorter.tokens.size() > capacity / 2) {
        too_few = middle;
      } else {
        enough = middle;
        prompt = std::move(shorter);
      }
    }
    prompt.dropped_turns = prompt.left_out_turns - hidden;
  }
  if (prompt.tokens.empty()) {
    throw Error("the chat template makes an empty prompt of the message, expected at least one token; write some text");
  }
  if (prompt.tokens.size() >= capacity) {
    throw Error(
        fmt::format("the message is too long: with what belongs to it, it takes {} tokens, and the context of {} has "
                    "to hold an answer too; shorten it or use a larger context",
                    prompt.tokens.size(), capacity),
        Setting::context);
  }
  return prompt;
}

std::optional<std::string> Conversation::undo() {
  const std::vector<std::size_t> starts = turn_starts(state_.messages);
  if (starts.empty()) return std::nullopt;
  std::string text = std::move(state_.messages[starts.back()].content);
  state_.messages.resize(starts.back());
  // If only dropped turns are left, those that fit are the conversation again.
  if (state_.dropped_turns >= turns()) state_.dropped_turns = 0;
  return text;
}

void Conversation::reset() {
  const std::vector<std::size_t> starts = turn_starts(state_.messages);
  if (!starts.empty()) state_.messages.resize(starts.front());
  state_.dropped_turns = 0;
}

void Conversation::set_system(const std::optional<std::string>& text) {
  if (text) require_utf8(*text, "the system prompt");
  std::vector<Message>& messages = state_.messages;
  const bool has_one = system().has_value();
  if (has_one && text) {
    messages.front().content = *text;
  } else if (has_one) {
    messages.erase(messages.begin());
  } else if (text) {
    messages.insert(messages.begin(), {.role = Role::system, .content = *text});
  }
}

std::optional<std::string> Conversation::system() const {
  const bool has_one = !state_.messages.empty() && state_.messages.front().role == Role::system;
  return has_one ? std::optional(state_.messages.front().content) : std::nullopt;
}

std::vector<std::string_view> Conversation::unheard() const {
  const PromptSettings settings = settings_of(state_);
  std::vector<std::string_view> names;
  if (settings.think && !minds_thinking(chat_template_, settings)) names.emplace_back("thinking");
  if (!settings.tools.empty() && !minds_tools(chat_template_, settings)) names.emplace_back("tools");
  return names;
}

std::size_t Conversation::turns() const {
  return turn_starts(state_.messages).size();
}

void Conversation::restore(ConversationState state) {
  check_order(state.messages, "the conversation");
  state_ = std::move(state);
}

}  // namespace minimind
