#include "runtime/conversation_prompt.h"

#include <algorithm>
#include <utility>

#include "runtime/answer_parser.h"
#include "runtime/jinja_json.h"
#include "runtime/message_json.h"
#include "runtime/tool_call.h"
#include "weights/error.h"

namespace minimind {
namespace {

std::size_t common_prefix(const std::string& a, const std::string& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// The end of the prompt that belongs to the answer's thoughts: "<think>\n", or an empty thought.
std::string begun_thought(const std::string& prompt) {
  return think_state(prompt) == ThinkState::none ? "" : prompt.substr(prompt.rfind("<think>"));
}

// A message that may follow the last one, for what templates do with answers that are not the last.
Message follower(const Message& answer) {
  if (answer.tool_calls.empty()) return {.role = Role::user, .content = "?"};
  const ToolCall& call = answer.tool_calls.front();
  return {.role = Role::tool, .content = "?", .tool_call_id = call.id, .name = call.name};
}

std::string render(const ChatTemplate& chat_template, const PromptSettings& settings,
                   const std::vector<Message>& messages, bool for_answer, Arguments arguments) {
  ChatInput input;
  input.messages = template_messages(messages, arguments);
  if (!settings.tools.empty()) input.tools = jinja::parse_json(settings.tools, "the tools");
  input.add_generation_prompt = for_answer;
  if (settings.think) {
    for (const char* const name : {"open_thinking", "enable_thinking"}) {
      input.variables.emplace_back(name, *settings.think);
    }
  }
  return chat_template.render(input, settings.now);
}

// Whether an object would lose how the arguments are written: spaces, digits, keys that are repeated.
bool spelled_otherwise(const ToolCall& call) {
  return json_line(jinja::parse_json(call.arguments, "the arguments of a call")) != call.arguments;
}

// Templates are given objects. MiniMind's and many others write a text as it is, which keeps the spelling: those are
// given texts where that matters.
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
    const bool alike = render(chat_template, settings, probe, false, Arguments::objects) ==
                       render(chat_template, settings, probe, false, Arguments::texts);
    return alike ? Arguments::texts : Arguments::objects;
  } catch (const Error&) {
    return Arguments::objects;
  }
}

// Whether the text goes on with the end of a thought or call.
bool closes(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text.starts_with("</think>") || text.starts_with("</tool_call>");
}

// Whether a first message gets another prompt with `b` than with `a`.
bool differs(const ChatTemplate& chat_template, const PromptSettings& a, const PromptSettings& b) {
  const std::vector<Message> first = {{.role = Role::user, .content = "?"}};
  try {
    return render_prompt(chat_template, a, first, true) != render_prompt(chat_template, b, first, true);
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

std::string render_prompt(const ChatTemplate& chat_template, const PromptSettings& settings,
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

std::optional<std::string> verbatim_form(const ChatTemplate& chat_template, const PromptSettings& settings,
                                         const std::vector<Message>& messages, const std::string& prompt,
                                         const std::string& written) {
  const std::string known = prompt + written;
  std::vector<Message> probe = messages;
  probe.push_back(follower(messages.back()));
  Message& answer = probe[messages.size() - 1];
  // How much of it is `known`, and whether that is all and not followed by the end of what the model left open.
  using Likeness = std::pair<std::size_t, bool>;
  const auto likeness = [&](const std::optional<std::string>& verbatim) {
    answer.verbatim = verbatim;
    try {
      const std::string text = render_prompt(chat_template, settings, probe, false);
      const std::size_t common = common_prefix(known, text);
      return Likeness(common, common == known.size() && !closes(std::string_view(text).substr(common)));
    } catch (const Error&) {
      return Likeness(0, false);  // the template wants something else to follow: it is asked when that has come
    }
  };
  std::optional<std::string> best;
  Likeness best_likeness = likeness(best);
  for (const std::string& form : {written, begun_thought(prompt) + written}) {
    if (best_likeness == Likeness(known.size(), true)) break;
    const Likeness of_form = likeness(form);
    if (of_form > best_likeness) best = form;
    best_likeness = std::max(best_likeness, of_form);
  }
  return best;
}

}  // namespace minimind
