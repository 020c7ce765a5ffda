#include "tools/chat/output.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "runtime/chat/message_json.h"
#include "tools/options/generation_options.h"
#include "tools/terminal/note.h"
#include "tools/terminal/standard_output.h"
#include "tools/terminal/terminal.h"
#include "weights/io/json_fields.h"

namespace minimind {

ChatNotices::ChatNotices(std::FILE* file, bool for_scripts, bool quiet)
    : file_(file), for_scripts_(for_scripts), quiet_(quiet), styles_(takes_styles(file)) {}

ChatNotices ChatNotices::on_screen(std::FILE* screen) {
  return {screen, false, false};
}

ChatNotices ChatNotices::for_scripts(bool quiet) {
  return {stderr, true, quiet};
}

void ChatNotices::say_text(std::string_view text) const {
  if (quiet_) return;
  if (for_scripts_) return note("{}", text);
  std::fputs((styled(localized("({})", terminal_text(text)), Style::dim, styles_) + "\n").c_str(), file_);
  std::fflush(file_);
}

void ChatNotices::show(std::string_view lines) const {
  if (quiet_) return;
  const std::string text = terminal_text(lines);
  std::fputs((text + (text.ends_with('\n') ? "" : "\n")).c_str(), file_);
  std::fflush(file_);
}

void ChatNotices::complain(std::string_view text) const {
  note("{}", text);
}

TextOutput::TextOutput(const ChatNotices& notices, bool show_thinking)
    : notices_(notices),
      on_terminal_(isatty(STDOUT_FILENO) != 0),
      as_written_(show_thinking && !on_terminal_),
      styles_(takes_styles(stdout)) {}

void TextOutput::written(std::string_view piece) {
  if (as_written_) write(piece, false);
}

void TextOutput::event(const AnswerEvent& event) {
  switch (event.kind) {
    case AnswerEvent::Kind::thought:
      if (!on_terminal_) return;
      begin(Part::thinking);
      return write(event.text, true);
    case AnswerEvent::Kind::tool_call:
      return call(event.call);
    case AnswerEvent::Kind::not_a_call:
      has_no_call_ = true;
      break;
    case AnswerEvent::Kind::text:
    case AnswerEvent::Kind::arguments:    // only of a parser that streams calls
    case AnswerEvent::Kind::broken_call:  // likewise
      break;
  }
  if (as_written_) return;
  begin(Part::text);
  write(event.text, false);
}

void TextOutput::begin(Part part) {
  if (part == part_) return;
  if (part_ != Part::nothing) {
    end_part();
    write_output("\n");
  }
  part_ = part;
}

void TextOutput::end_part() {
  if (on_terminal_) write(safe_.finish(), part_ == Part::thinking);
  if (!at_line_begin_) write_output("\n");
  at_line_begin_ = true;
  part_ = Part::nothing;
}

void TextOutput::write(std::string_view text, bool dim) {
  if (text.empty()) return;
  on_terminal_ ? write_sequences(styled(safe_.push(text), Style::dim, styles_ && dim)) : write_output(text);
  at_line_begin_ = text.ends_with('\n');
}

void TextOutput::call(const ToolCall& call) {
  if (!on_terminal_) return notices_.say("the model calls {}", call_text(call));
  begin(Part::call);
  write_sequences(styled(terminal_text("→ " + call_text(call)), Style::call, styles_) + "\n");
}

void TextOutput::finish(const Answer& answer) {
  end_part();
  if (std::exchange(has_no_call_, false)) {
    notices_.say(
        "the text after <tool_call> is not a call, expected {{\"name\": ..., \"arguments\": {{...}}}}; shown as text");
  }
  if (answer.withdrawn) return;
  const bool empty = answer.message.content.empty() && answer.message.tool_calls.empty();
  if (empty && answer.finish_reason == FinishReason::stop) notices_.say("the answer is empty");
}

void JsonOutput::finish(const Answer& answer) {
  write_output(answer_json(answer) + "\n");
}

std::string call_text(const ToolCall& call) {
  return fmt::format("{}({})", call.name, call.arguments);
}

std::string answer_json(const Answer& answer) {
  ChatJson calls = ChatJson::array();
  for (const ToolCall& call : answer.message.tool_calls) {
    calls.push_back(
        {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  const AnswerStats& stats = answer.stats;
  ChatJson json{
      {"content", answer.message.content},
      {"reasoning_content", answer.message.reasoning ? ChatJson(*answer.message.reasoning) : ChatJson(nullptr)},
      {"tool_calls", calls},
      {"finish_reason", finish_reason_name(answer.finish_reason, answer.message)},
      {"dropped_turns", answer.dropped_turns},
      {"usage",
       {{"prompt_tokens", stats.prompt_tokens},
        {"reused", stats.reused_tokens},
        {"completion_tokens", stats.generated_tokens}}},
      {"timings",
       {{"prompt_seconds", stats.prompt_seconds},
        {"prompt_tokens_per_second", per_second(stats.computed_tokens, stats.prompt_seconds)},
        {"decode_seconds", stats.decode_seconds},
        {"decode_tokens_per_second", per_second(stats.decoded_tokens, stats.decode_seconds)}}}};
  if (stats.drafted_tokens > 0) {
    json["speculation"] = speculation_json(stats.drafted_tokens, stats.accepted_tokens);
  }
  return dump_json(json);
}

}  // namespace minimind
