#include "tools/chat/actions.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>

#include "runtime/chat/message_json.h"
#include "runtime/chat/session_file.h"
#include "tools/terminal/language.h"
#include "tools/terminal/text_columns.h"
#include "weights/base/cancel.h"
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/file_lock.h"
#include "weights/io/json_fields.h"
#include "weights/io/output_file.h"
#include "weights/io/path.h"
#include "weights/io/text_file.h"

namespace minimind {
namespace {

std::string counted_turns(std::size_t count) {
  return counted(count, "{} turn", "{} turns");
}

// Returns the start of a message, on one line.
std::string start_of(const std::string& text) {
  constexpr std::size_t longest = 60;
  std::string line = text.substr(0, text.find('\n'));
  const bool whole = line.size() == text.size() && line.size() <= longest;
  if (line.size() > longest) {
    std::size_t end = longest;
    while (end > 0 && !starts_character(line[end])) --end;
    line.resize(end);
  }
  return line + (whole ? "" : "…");
}

std::string thinking_is(std::optional<bool> think) {
  if (!think) return localized("the chat template decides on thinking; /think on or /think off sets it");
  return *think ? localized("thinking is on") : localized("thinking is off");
}

constexpr std::size_t label_columns = 14;

std::string speed(std::size_t tokens, double seconds) {
  return seconds > 0 ? fmt::format("{:.0f}/s", static_cast<double>(tokens) / seconds) : "-";
}

std::string counted_tokens(std::size_t count) {
  return counted(count, "{} token", "{} tokens");
}

std::string labelled(std::string_view label, const std::string& text) {
  return padded(label, label_columns) + text + '\n';
}

std::string lines_of(std::string_view label, const AnswerStats& stats) {
  const std::string prompt =
      localized("prompt of {}: {} reused, {} computed at {}", counted_tokens(stats.prompt_tokens), stats.reused_tokens,
                stats.computed_tokens, speed(stats.computed_tokens, stats.prompt_seconds));
  std::string generated = localized("{} generated at {}", counted_tokens(stats.generated_tokens),
                                    speed(stats.decoded_tokens, stats.decode_seconds));
  if (stats.drafted_tokens > 0) {
    generated += localized(", {} of {} drafts accepted", stats.accepted_tokens, stats.drafted_tokens);
  }
  return labelled(label, prompt) + labelled("", generated);
}

std::string turns_of(const Conversation& conversation) {
  const std::size_t dropped = conversation.dropped_turns();
  std::string turns = counted_turns(conversation.turns());
  if (dropped > 0) turns += counted(dropped, ", the oldest dropped", ", the oldest {} dropped");
  return labelled(translated("conversation"), turns);
}

// Returns the lines of /stats.
std::string chat_stats(const Conversation& conversation) {
  const Context& context = conversation.context();
  return labelled(translated("context"), localized("{} of {} tokens, {} reserved for answers", context.size(),
                                                   context.capacity(), conversation.reserve())) +
         turns_of(conversation) + lines_of(translated("last answer"), conversation.last_stats()) +
         lines_of(translated("all answers"), conversation.total_stats());
}

}  // namespace

ConversationState read_conversation(const std::string& path) {
  const std::string text = read_text_or_pipe(path);
  if (is_session(text)) {
    throw Error(fmt::format("{}: is a session, expected a conversation in JSON; continue it with --session", path));
  }
  SavedConversation saved = parse_conversation(text, path);
  ConversationState state;
  state.messages = std::move(saved.messages);
  state.tools = std::move(saved.tools);
  return state;
}

void write_conversation(const std::string& path, const ConversationState& state) {
  const std::string json = conversation_json({state.messages, state.tools});
  OutputFile file(path);
  file.write(std::as_bytes(std::span(json)));
  file.commit();
}

void check_not_of_model(const std::string& path, const std::set<std::string>& model_files) {
  for (const std::string& file : model_files) {
    if (is_same_file(path, file)) throw UsageError(fmt::format("{}: is a file of the model; name another file", path));
  }
}

ChatActions::ChatActions(Conversation& conversation, AnswerOutput& output, const ChatNotices& notices,
                         const std::atomic<bool>& interrupted, std::function<void()> reload,
                         const std::set<std::string>& model_files)
    : conversation_(conversation),
      output_(output),
      notices_(notices),
      interrupted_(interrupted),
      reload_(std::move(reload)),
      model_files_(model_files) {}

ChatActions::Next ChatActions::perform(const ChatEntry& entry) {
  last_finish_ = FinishReason::stop;
  if (const auto* command = std::get_if<ChatCommand>(&entry)) return perform(*command);
  ask(std::get<ChatMessage>(entry).text);
  return Next::proceed;
}

ChatActions::Next ChatActions::perform(const ChatCommand& command) {
  switch (command.action) {
    case ChatAction::help:
      notices_.show(chat_help());
      break;
    case ChatAction::reset:
      reset();
      break;
    case ChatAction::undo:
      undo();
      break;
    case ChatAction::regenerate:
      regenerate();
      break;
    case ChatAction::system:
      system(command.argument);
      break;
    case ChatAction::think:
      think(command.argument);
      break;
    case ChatAction::tool:
      tool(command.argument);
      break;
    case ChatAction::save:
      save(command.argument);
      notices_.say("saved {} in {}", counted_turns(conversation_.turns()), command.argument);
      break;
    case ChatAction::load:
      load(command.argument);
      break;
    case ChatAction::reload:
      finishes(reload_);
      break;
    case ChatAction::stats:
      notices_.show(chat_stats(conversation_));
      break;
    case ChatAction::exit:
      return Next::exit;
  }
  return Next::proceed;
}

void ChatActions::answer(const Generate& generate) {
  const AnswerListener listener{[&](const AnswerEvent& event) { output_.event(event); },
                                [&](std::size_t turns) {
                                  notices_.say("{}", counted(turns, "the context is full: the oldest turn is dropped",
                                                             "the context is full: the oldest {} turns are dropped"));
                                },
                                [&](std::string_view piece) { output_.written(piece); }};
  const Answer answer = generate(listener);
  last_finish_ = answer.finish_reason;
  if (!answer.withdrawn) results_.clear();
  output_.finish(answer);
  report(answer);
}

void ChatActions::report(const Answer& answer) const {
  if (answer.withdrawn) return notices_.say("stopped before the answer started; your message is removed");
  if (answer.finish_reason == FinishReason::interrupted) return notices_.say("stopped");
  if (answer.finish_reason == FinishReason::length) {
    const Context& context = conversation_.context();
    const bool full = context.size() + 1 >= context.capacity();
    full ? notices_.say("cut short: the context is full") : notices_.say("cut short by --max-tokens");
  }
  if (!answer.conforms) notices_.say("ended before the grammar was complete");
  const std::span<const ToolCall> calls = conversation_.pending_calls();
  if (!calls.empty()) {
    notices_.say("tool calls are not executed; type /tool RESULT to return the result of {}", calls.front().name);
  }
}

void ChatActions::ask(const std::string& text) {
  answer([&](const AnswerListener& listener) { return conversation_.ask(text, listener, interrupted_); });
}

void ChatActions::give_result(const std::string& result) {
  const std::span<const ToolCall> calls = conversation_.pending_calls();
  if (calls.empty()) throw UsageError("no tool call waits for a result: the last answer has none");
  results_.push_back(result);
  if (results_.size() < calls.size()) {
    return notices_.say("{} of {} results; next: {}", results_.size(), calls.size(), call_text(calls[results_.size()]));
  }
  const std::vector<std::string> results = std::exchange(results_, {});
  answer([&](const AnswerListener& listener) { return conversation_.give_results(results, listener, interrupted_); });
}

void ChatActions::regenerate() {
  answer([&](const AnswerListener& listener) { return conversation_.regenerate(listener, interrupted_); });
}

void ChatActions::reset() {
  conversation_.reset();
  results_.clear();
  conversation_.system() ? notices_.say("new conversation; the system message stays")
                         : notices_.say("new conversation");
}

void ChatActions::undo() {
  const auto message = conversation_.undo();
  if (!message) throw UsageError("there is nothing to undo");
  results_.clear();
  notices_.say("took back: {}", start_of(*message));
}

void ChatActions::system(const std::string& text) {
  if (text.empty()) {
    const auto system = conversation_.system();
    return notices_.show(system ? *system : localized("(no system message; the chat template may have its own)"));
  }
  conversation_.set_system(text == "none" ? std::nullopt : std::optional(text));
  text == "none" ? notices_.say("system message removed") : notices_.say("system message set");
}

void ChatActions::think(const std::string& text) {
  if (!text.empty() && text != "on" && text != "off") {
    throw UsageError(fmt::format("/think is {}, expected on or off", quote(text)));
  }
  if (!text.empty()) conversation_.set_think(text == "on");
  notices_.say("{}", thinking_is(conversation_.think()));
  const std::vector<std::string_view> unheard = conversation_.unheard();
  if (!text.empty() && std::find(unheard.begin(), unheard.end(), "thinking") != unheard.end()) {
    notices_.say("but the chat template ignores thinking: the model never sees this");
  }
}

void ChatActions::tool(const std::string& result) {
  if (!result.empty()) return give_result(result);
  const std::span<const ToolCall> calls = conversation_.pending_calls();
  for (std::size_t i = results_.size(); i < calls.size(); ++i) {
    notices_.show(localized("waiting for the result of {}", call_text(calls[i])));
  }
  if (calls.empty()) {
    const std::string& tools = conversation_.state().tools;
    notices_.show(tools.empty() ? localized("(no tools; declare them with --tools FILE)")
                                : dump_json(parse_chat_json(tools, "tools", LargeIntegers::rounded), 2));
  }
}

bool ChatActions::finishes(const std::function<void()>& work) {
  try {
    const Cancellation cancellation(interrupted_);
    work();
    return true;
  } catch (const Cancelled&) {
    last_finish_ = FinishReason::interrupted;
    notices_.say("stopped");
    return false;
  }
}

void ChatActions::load(const std::string& path) {
  ConversationState state;
  if (!finishes([&] { state = read_conversation(path); })) return;
  state.think = conversation_.think();
  if (state.tools.empty()) state.tools = conversation_.state().tools;
  conversation_.restore(std::move(state));
  results_.clear();
  notices_.say("{}: {}", path, counted_turns(conversation_.turns()));
}

// Does not overwrite a file that is in use by another process or that this process writes at its end.
void ChatActions::save(const std::string& path) const {
  check_not_of_model(path, model_files_);
  { const OutputFile probe(path); }
  const FileLock lock(path);
  write_conversation(path, conversation_.state());
}

}  // namespace minimind
