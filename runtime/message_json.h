#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/chat_template.h"
#include "runtime/message.h"

namespace minimind {

// A conversation as a file for people holds it.
struct SavedConversation {
  std::vector<Message> messages;
  std::string tools;  // as parse_tools() returns them; empty for none
};

// Reads {"messages": [...], "tools": [...]}, or the list of messages alone, as OpenAI's chat completions write them:
// role, content (a string, or null beside calls), reasoning_content, tool_calls, tool_call_id and name; arguments of
// calls as a JSON object or the text of one. What else stands there may be null; anything more throws Error, which
// begins with `source` and names the message.
SavedConversation parse_conversation(std::string_view json, const std::string& source);

// The same as JSON that people can read and edit: indented, a line feed at the end. Arguments are texts, as OpenAI
// writes them.
std::string conversation_json(const SavedConversation& conversation);

// Reads the functions that a model may call: a list, or {"tools": [...]}, of OpenAI's {"type": "function", "function":
// {"name": ..., "description": ..., "parameters": {...}}} or of such functions alone. Returns the list, as compact JSON
// with the keys in their order; everything of it goes to the template. Throws Error, which begins with `source`.
std::string parse_tools(std::string_view json, const std::string& source);

// What a chat template is given for the messages: reasoning_content beside the content, arguments as objects.
jinja::Value template_messages(const std::vector<Message>& messages);

}  // namespace minimind
