#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/chat/chat_json.h"
#include "runtime/chat/message.h"

namespace minimind {

// A conversation as a file for people holds it.
struct SavedConversation {
  std::vector<Message> messages;
  std::string tools;  // as parse_tools() returns them; empty for none
};

// Reads {"messages": [...], "tools": [...]}, MiniMind's {"conversations": [...]} (training_conversation.h), or the list
// of messages alone, as OpenAI's chat completions write them: role, content (a string, or null beside calls), name,
// reasoning_content, tool_calls and tool_call_id; arguments of calls as a JSON object or the text of one. What else
// stands there may be null; anything more throws Error, which starts with `source` and names the message. So does an
// order that makes no conversation, see check_order().
SavedConversation parse_conversation(std::string_view json, const std::string& source);

// The same as JSON that people can read and edit: indented, a line feed at the end. Arguments are texts, as OpenAI
// writes them.
std::string conversation_json(const SavedConversation& conversation);

// Reads the functions that a model may call: a list, or {"tools": [...]}, of OpenAI's {"type": "function", "function":
// {"name": ..., "description": ..., "parameters": {...}}} or of such functions alone. Returns the list as JSON on one
// line, with the keys in their order; everything of it goes to the template. Throws Error, which starts with `source`.
std::string parse_tools(std::string_view json, const std::string& source);

// Throws Error, naming the message, unless there is a user message before the first answer, and every tool message
// follows an answer that has a call for it.
void check_order(const std::vector<Message>& messages, const std::string& source);

// What a chat template is given for the messages: reasoning_content beside the content; of a message with a verbatim
// text, that as content alone. The arguments of calls are objects, or texts for a template that writes texts as they
// are.
enum class Arguments { objects, texts };
jinja::Value template_messages(const std::vector<Message>& messages, Arguments arguments = Arguments::objects);

// The list of messages as parse_conversation() reads it; `exact` keeps verbatim texts, under that name.
ChatJson messages_json(const std::vector<Message>& messages, bool exact);
std::vector<Message> read_messages(const ChatJson& list, bool exact, const std::string& source);

}  // namespace minimind
