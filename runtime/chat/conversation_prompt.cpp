#include "runtime/chat/conversation_prompt.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/chat/answer_parser.h"
#include "runtime/chat/chat_json.h"
#include "runtime/chat/message_json.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

// A message that may follow the last one, to show what templates do with an answer in the middle.
Message follower(const Message& answer) {
  if (answer.tool_calls.empty()) return {.role = Role::user, .content = "?"};
  const ToolCall& call = answer.tool_calls.front();
  return {.role = Role::tool, .content = "?", .tool_call_id = call.id, .name = call.name};
}

MarkedText render(const ChatTemplate& chat_template, const PromptSettings& settings,
                  const std::vector<Message>& messages, bool for_answer, Arguments arguments) {
  ChatInput input;
  input.messages = template_messages(messages, arguments);
  if (!settings.tools.empty())
    input.tools = template_value(parse_chat_json(settings.tools, "the tools", LargeIntegers::rounded));
  input.add_generation_prompt = for_answer;
  if (settings.think) {
    for (const char* const name : {"open_thinking", "enable_thinking"}) {
      input.variables.emplace_back(name, *settings.think);
    }
  }
  return chat_template.render(input, settings.now);
}

// Returns true if an object would lose the spelling of the arguments: spaces, digits, repeated keys.
bool spelled_otherwise(const ToolCall& call) {
  const ChatJson json = arguments_json(call.arguments);
  return json.is_object() && json_line(json) != call.arguments;
}

// Templates get objects. MiniMind's templates and many others write a string unchanged, which keeps the spelling; these
// get strings if the spelling matters.
Arguments arguments_for(const ChatTemplate& chat_template, const PromptSettings& settings,
                        const std::vector<Message>& messages) {
  const bool matters = std::any_of(messages.begin(), messages.end(), [](const Message& message) {
    return !message.verbatim && std::any_of(message.tool_calls.begin(), message.tool_calls.end(), spelled_otherwise);
  });
  if (!matters) return Arguments::objects;
  const std::vector<Message> probe = {
      {.role = Role::user, .content = "?"},
      {.role = Role::assistant, .tool_calls = {{.id = "call_1", .name = "f", .arguments = R"({"a": 1})"}}},
      {.role = Role::tool, .content = "?", .tool_call_id = "call_1", .name = "f"}};
  try {
    const bool alike = render(chat_template, settings, probe, false, Arguments::objects).bytes ==
                       render(chat_template, settings, probe, false, Arguments::texts).bytes;
    return alike ? Arguments::texts : Arguments::objects;
  } catch (const Error&) {
    return Arguments::objects;
  }
}

// Returns true if a first message gets another prompt with `b` than with `a`.
bool differs(const ChatTemplate& chat_template, const PromptSettings& a, const PromptSettings& b) {
  const std::vector<Message> first = {{.role = Role::user, .content = "?"}};
  try {
    return render_prompt(chat_template, a, first, true).bytes != render_prompt(chat_template, b, first, true).bytes;
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

MarkedText render_prompt(const ChatTemplate& chat_template, const PromptSettings& settings,
                         const std::vector<Message>& messages, bool for_answer) {
  return render(chat_template, settings, messages, for_answer, arguments_for(chat_template, settings, messages));
}

bool minds_thinking(const ChatTemplate& chat_template, const PromptSettings& settings) {
  PromptSettings on = settings, off = settings;
  on.think = true;
  off.think = false;
  return differs(chat_template, on, off);
}

bool minds_tools(const ChatTemplate& chat_template, const PromptSettings& settings) {
  PromptSettings without = settings;
  without.tools.clear();
  return differs(chat_template, settings, without);
}

std::vector<std::int32_t> answer_tag_tokens(const Tokenizer& tokenizer) {
  std::vector<std::int32_t> tokens;
  for (const std::string_view tag : answer_tags) {
    if (const auto id = tokenizer.id_of(tag)) tokens.push_back(*id);
  }
  return tokens;
}

std::vector<std::size_t> turn_starts(const std::vector<Message>& messages) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role == Role::user) starts.push_back(i);
  }
  return starts;
}

std::vector<Message> without_turns(const std::vector<Message>& messages, std::size_t turns) {
  if (turns == 0) return messages;
  const std::vector<std::size_t> starts = turn_starts(messages);
  const std::size_t first = turns < starts.size() ? starts[turns] : messages.size();
  std::vector<Message> left(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(starts.front()));
  left.insert(left.end(), messages.begin() + static_cast<std::ptrdiff_t>(first), messages.end());
  return left;
}

std::optional<MarkedText> verbatim_form(const ChatTemplate& chat_template, const PromptSettings& settings,
                                        const std::vector<Message>& messages, const MarkedText& written,
                                        const Tokenizer* plain_content) {
  std::vector<Message> probe = messages;
  probe.push_back(follower(messages.back()));
  Message& answer = probe[messages.size() - 1];
  const auto rendered = [&]() -> std::optional<MarkedText> {
    try {
      return render_prompt(chat_template, settings, probe, false);
    } catch (const Error&) {
      return std::nullopt;  // the template requires other messages to follow: decided once they exist
    }
  };
  answer.verbatim.reset();
  const std::optional<MarkedText> of_fields = rendered();
  answer.verbatim = written.bytes;
  answer.verbatim_plain = written.marks;
  const std::optional<MarkedText> as_written = rendered();
  if (!as_written) return std::nullopt;
  const bool same_text = of_fields && of_fields->bytes == as_written->bytes;
  const auto ids = [&](const MarkedText& text) { return plain_content->encode(text.bytes, text.marks); };
  const bool same = same_text && (!plain_content || ids(*of_fields) == ids(*as_written));
  return same ? std::nullopt : std::optional(written);
}

}  // namespace minimind
