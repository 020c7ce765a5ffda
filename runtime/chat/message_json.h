#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/chat/chat_json.h"
#include "runtime/chat/message.h"
#include "runtime/generate/generate.h"

namespace minimind {

// Each takes some KB of memory, whatever its text.
inline constexpr std::size_t max_messages = 65'536;

// Fields of messages and of their texts that mark them for a cache, without effect.
inline constexpr auto cache_marks = {"cache_control", "prompt_cache_breakpoint"};

// A conversation in a JSON file.
struct SavedConversation {
  std::vector<Message> messages;
  std::string tools;  // as parse_tools() returns them; empty for none
};

// Reads {"messages": [...], "tools": [...]}, MiniMind's {"conversations": [...]} (training_conversation.h), only the
// list of messages, or what the chat page exports. Messages are those of OpenAI's chat completions: role, content (a
// string, a list of texts, or null in an answer), name, reasoning_content, tool_calls and tool_call_id; or, as before
// there were tools, function_call and the role function. Results may have Swarm's tool_name for name, and answers its
// sender, without effect. Arguments of calls are a JSON object or text, which may be empty for none. A message and its
// texts may have cache_control. A text of an answer may be a refusal, and `refusal` may stand for its content. Other
// keys may be null, [] or {}. Any other key throws Error, which starts with `source` and names the message. An invalid
// order throws Error too, see check_order(), and so do more than max_messages.
SavedConversation parse_conversation(std::string_view json, const std::string& source);

// Writes the conversation as indented JSON with a line feed at the end. Arguments are strings, as in OpenAI's format.
std::string conversation_json(const SavedConversation& conversation);

// Reads the functions that a model may call: a list, or {"tools": [...]}. Each is OpenAI's {"type": "function",
// "function": {"name": ..., "description": ..., "parameters": {...}}} or only such a function. Returns the list as JSON
// on one line, with the order of keys kept; the template gets all of it. Throws Error, which starts with `source`.
std::string parse_tools(std::string_view json, const std::string& source);

// Throws Error, naming the message, unless every tool message follows an answer, or others after it. The answer may
// have fewer calls: MiniMind's scripts leave them in its text, some clients drop them, and others send each part of a
// result by itself. An answer may come first, such as the greeting of a character.
void check_order(const std::vector<Message>& messages, const std::string& source);

// Returns the arguments of a call as an object, or as the text itself if that is no JSON object.
ChatJson arguments_json(const std::string& arguments);

// Returns the chat template's input for the messages: reasoning_content next to the content. A verbatim text replaces
// both as the content. The arguments of calls are as arguments_json() has them, or strings for a template that writes
// strings unchanged.
enum class Arguments { objects, texts };
jinja::Value template_messages(const std::vector<Message>& messages, Arguments arguments = Arguments::objects);

// Returns OpenAI's finish_reason of an answer: "tool_calls" if it ended by itself with calls, else the reason's name.
std::string_view finish_reason_name(FinishReason reason, const Message& answer);

// Returns the list of messages as parse_conversation() reads it; `exact` keeps verbatim texts, under that name.
ChatJson messages_json(const std::vector<Message>& messages, bool exact);
std::vector<Message> read_messages(const ChatJson& list, bool exact, const std::string& source);

}  // namespace minimind
