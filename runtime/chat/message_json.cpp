#include "runtime/chat/message_json.h"

#include <fmt/core.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/chat/training_conversation.h"
#include "weights/base/error.h"
#include "weights/base/suggestion.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

// Returns the value, which must be a list.
const ChatJson& items_of(const ChatJson& value, const std::string& where, std::string_view wanted) {
  if (!value.is_array()) throw Error(fmt::format("{} is {}, expected {}", where, kind_of(value), wanted));
  return value;
}

Role read_role(const ChatFields& fields) {
  const std::string name = fields.required_text("role");
  if (name == "developer") return Role::system;  // OpenAI's newer name
  if (name == "function") return Role::tool;     // OpenAI's older name
  std::vector<std::string> names;
  for (const Role role : {Role::system, Role::user, Role::assistant, Role::tool}) {
    if (name == name_of(role)) return role;
    names.emplace_back(name_of(role));
  }
  throw Error(fmt::format("{}.role: {}", fields.where(), unknown_choice(name, names)));
}

ToolCall read_call(const ChatJson& value, const std::string& where) {
  const ChatFields outer(value, where);
  // Clients that collect a stream keep the index.
  outer.allow_only({"id", "type", "function", "name", "arguments", "index"});
  const ChatJson* const function = outer.find("function");
  const ChatFields fields = function ? ChatFields(*function, where + ".function") : outer;
  if (function) fields.allow_only({"name", "arguments"});
  ToolCall call{.id = outer.text("id").value_or(""), .name = fields.required_text("name"), .arguments = "{}"};
  const ChatJson* const arguments = fields.find("arguments");
  if (!arguments) return call;
  if (!arguments->is_string() && !arguments->is_object()) fields.fail("arguments", "a JSON object, or text");
  call.arguments = arguments->is_string() ? arguments->get<std::string>() : json_line(*arguments);
  if (trimmed(call.arguments).empty()) call.arguments = "{}";  // as some servers write none
  return call;
}

// A message or a part of it may be marked for a cache as in Anthropic's API, a part as in OpenAI's.
void check_marks(const ChatFields& fields) {
  for (const char* const name : cache_marks) {
    const ChatJson* const mark = fields.find(name);
    if (mark && !mark->is_object()) fields.fail(name, "an object");
  }
}

// Returns the text of a part of a content. An answer's may be a refusal.
std::string read_part(const ChatFields& part, bool answers) {
  const std::string type = part.required_text("type");
  const bool refuses = answers && type == "refusal";
  if (type != "text" && !refuses) {
    throw Error(fmt::format("{}.type is {}, expected \"text\": the model reads text only", part.where(), quote(type)));
  }
  const std::string_view key = refuses ? "refusal" : "text";
  part.allow_only({"type", key, "cache_control", "prompt_cache_breakpoint"});
  check_marks(part);
  return part.required_text(key);
}

// Returns a content that is a string, or a list of parts, whose texts become lines.
std::optional<std::string> read_content(const ChatFields& fields, bool answers) {
  const ChatJson* const content = fields.find("content");
  const std::string refusal = fields.text("refusal").value_or("");  // what OpenAI's models say instead
  if (!refusal.empty()) {
    if (content && !content->empty() && *content != "") fields.fail("refusal", "none beside content");
    return refusal;
  }
  if (!content || !content->is_array()) return fields.text("content");
  std::string joined;
  std::size_t index = 0;
  for (const ChatJson& part : *content) {
    const ChatFields of_part(part, fmt::format("{}.content[{}]", fields.where(), index++));
    if (index > 1) joined += '\n';
    joined += read_part(of_part, answers);
  }
  if (index == 0) fields.fail("content", "a string or a list of texts that is not empty");
  return joined;
}

// The marks of a text of `size` bytes: [begin, end, begin, end, ...].
TextMarks read_marks(const ChatFields& fields, std::size_t size) {
  constexpr const char* key = "verbatim_plain";
  TextMarks marks;
  const ChatJson* const list = fields.find(key);
  if (!list) return marks;
  std::size_t before = 0;
  const auto follows = [&](const ChatJson& bound) {
    return bound.is_number_unsigned() && bound.get<std::uint64_t>() >= before && bound.get<std::uint64_t>() <= size;
  };
  for (std::size_t i = 0; list->is_array() && i < list->size(); before = (*list)[i++].get<std::size_t>()) {
    if (!follows((*list)[i])) fields.fail(key, "positions in the text, in order");
    if (i % 2 == 1) marks.add(before, (*list)[i].get<std::size_t>());
  }
  if (!list->is_array() || list->size() % 2 != 0) fields.fail(key, "a list of pairs of positions");
  return marks;
}

Message read_message(const ChatJson& value, bool exact, const std::string& where) {
  const ChatFields fields(value, where);
  Message message{.role = read_role(fields)};
  const bool answers = message.role == Role::assistant;
  if (answers && exact) {
    fields.allow_only({"role", "content", "name", "sender", "reasoning_content", "reasoning", "tool_calls",
                       "function_call", "verbatim", "verbatim_plain"});
    message.verbatim = fields.text("verbatim");
    message.verbatim_plain = read_marks(fields, message.verbatim.value_or("").size());
  } else if (answers) {
    fields.allow_only({"role", "content", "name", "sender", "reasoning_content", "reasoning", "tool_calls",
                       "function_call", "refusal", "cache_control"});
  } else if (message.role == Role::tool) {
    fields.allow_only({"role", "content", "name", "tool_name", "tool_call_id", "id", "extra", "cache_control"});
  } else {
    fields.allow_only({"role", "content", "name", "cache_control"});
  }
  check_marks(fields);
  message.name = fields.text({"name", "tool_name"}).value_or("");  // the latter is of results, as Swarm names it
  fields.text("sender");                                           // the agent that gave an answer, as Swarm has it
  message.reasoning = fields.text("reasoning_content");
  if (const auto reasoning = fields.text("reasoning")) {  // as vLLM and OpenRouter name it
    if (message.reasoning.value_or(*reasoning) != *reasoning) fields.fail("reasoning", "that of reasoning_content");
    message.reasoning = reasoning;
  }
  const std::string id = fields.text("id").value_or("");  // of results, as Qwen-Agent names it
  message.tool_call_id = fields.text("tool_call_id").value_or(id);
  if (const ChatJson* const calls = fields.find("tool_calls")) {
    const std::string place = where + ".tool_calls";
    for (const ChatJson& call : items_of(*calls, place, "a list of calls")) {
      message.tool_calls.push_back(read_call(call, fmt::format("{}[{}]", place, message.tool_calls.size())));
    }
  }
  // A call as OpenAI's API had it before tools.
  if (const ChatJson* const call = fields.find("function_call")) {
    if (!message.tool_calls.empty()) fields.fail("function_call", "none beside tool_calls");
    message.tool_calls.push_back(read_call(*call, where + ".function_call"));
  }
  const auto content = read_content(fields, answers);
  if (!content && !answers) fields.required_text("content");  // an answer may have calls or thoughts alone
  message.content = content.value_or("");
  return message;
}

ChatJson call_json(const ToolCall& call, Arguments arguments) {
  const bool text = arguments == Arguments::texts;
  ChatJson json;
  if (!call.id.empty()) json["id"] = call.id;
  json["type"] = "function";
  json["function"]["name"] = call.name;
  json["function"]["arguments"] = text ? ChatJson(call.arguments) : arguments_json(call.arguments);
  return json;
}

ChatJson message_json(const Message& message, Arguments arguments) {
  ChatJson json;
  json["role"] = name_of(message.role);
  json["content"] = message.content;
  if (!message.name.empty()) json["name"] = message.name;
  if (message.reasoning) json["reasoning_content"] = *message.reasoning;
  if (!message.tool_call_id.empty()) json["tool_call_id"] = message.tool_call_id;
  for (const ToolCall& call : message.tool_calls) json["tool_calls"].push_back(call_json(call, arguments));
  return json;
}

ChatJson read_tools(const ChatJson& tools, const std::string& where) {
  std::size_t index = 0;
  for (const ChatJson& tool : items_of(tools, where, "a list of functions")) {
    const std::string place = fmt::format("{}[{}]", where, index++);
    const ChatFields outer(tool, place);
    const auto type = outer.text("type");
    if (type && *type != "function") {
      throw Error(fmt::format("{}.type is {}, expected \"function\"", place, quote(*type)));
    }
    const ChatJson* const function = outer.find("function");
    if (type && !function) throw Error(fmt::format("{} has no \"function\"", place));
    const ChatFields fields = function ? ChatFields(*function, place + ".function") : outer;
    if (fields.required_text("name").empty()) throw Error(fmt::format("{}.name is empty", fields.where()));
    fields.text("description");
    const ChatJson* const parameters = fields.find("parameters");
    if (parameters && !parameters->is_object()) fields.fail("parameters", "a JSON schema, which is an object");
  }
  return tools;
}

}  // namespace

std::vector<Message> read_messages(const ChatJson& list, bool exact, const std::string& source) {
  std::vector<Message> messages;
  const std::string where = source + ": messages";
  const ChatJson& items = items_of(list, where, "a list of messages");
  if (items.size() > max_messages) {
    throw Error(fmt::format("{} are {}, expected at most {}", where, items.size(), max_messages));
  }
  for (const ChatJson& message : items) {
    messages.push_back(read_message(message, exact, fmt::format("{}[{}]", where, messages.size())));
  }
  check_order(messages, source);
  return messages;
}

ChatJson arguments_json(const std::string& arguments) {
  if (!trimmed(arguments).ends_with('}')) return arguments;  // as of most calls that were cut off: no parser is needed
  try {
    ChatJson json = parse_chat_json(arguments, "the arguments of a call", LargeIntegers::rounded);
    if (json.is_object()) return json;
  } catch (const Error&) {  // they stay text
  }
  return arguments;
}

std::string_view finish_reason_name(FinishReason reason, const Message& answer) {
  return reason == FinishReason::stop && !answer.tool_calls.empty() ? "tool_calls" : name_of(reason);
}

ChatJson messages_json(const std::vector<Message>& messages, bool exact) {
  ChatJson list = ChatJson::array();
  for (const Message& message : messages) {
    list.push_back(message_json(message, Arguments::texts));
    if (!exact || !message.verbatim) continue;
    list.back()["verbatim"] = *message.verbatim;
    for (const auto& [begin, end] : message.verbatim_plain.ranges()) {
      for (const std::size_t bound : {begin, end}) list.back()["verbatim_plain"].push_back(bound);
    }
  }
  return list;
}

jinja::Value template_messages(const std::vector<Message>& messages, Arguments arguments) {
  jinja::Budget budget({.steps = SIZE_MAX, .depth = SIZE_MAX, .bytes = SIZE_MAX, .output = SIZE_MAX});
  std::vector<jinja::Value> list;
  for (const Message& message : messages) {
    if (!message.verbatim) {
      list.push_back(template_value(message_json(message, arguments)));
      continue;
    }
    jinja::Dict fields = *template_value(message_json({.role = message.role, .name = message.name}, arguments)).dict();
    fields.set("content", MarkedText(*message.verbatim, message.verbatim_plain));
    list.push_back(jinja::make_dict(std::move(fields), budget));
  }
  return jinja::make_list(std::move(list), budget);
}

void check_order(const std::vector<Message>& messages, const std::string& source) {
  bool has_answer = false;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Role role = messages[i].role;
    if (role == Role::user || role == Role::assistant) {
      has_answer = role == Role::assistant;
    } else if (role == Role::tool && !has_answer) {
      throw Error(fmt::format("{}: messages[{}], of the tool, follows no answer, which has its call", source, i));
    }
  }
}

namespace {

// "gt" is the expected answer in MiniMind's data for reinforcement learning.
SavedConversation conversation_of_data(const ChatFields& fields, const ChatJson& list, const std::string& source) {
  fields.allow_only({"conversations", "gt"});
  const TrainingConversation data = read_training_conversation(list, source + ": conversations");
  SavedConversation conversation{.messages = read_messages(data.messages, false, source), .tools = ""};
  if (!data.tools.is_null()) conversation.tools = json_line(read_tools(data.tools, source + ": tools"));
  return conversation;
}

}  // namespace

SavedConversation parse_conversation(std::string_view json, const std::string& source) {
  const ChatJson value = parse_chat_json(json, source);
  if (value.is_array()) return {.messages = read_messages(value, false, source), .tools = ""};
  const ChatFields fields(value, source + ": the JSON");
  const ChatJson* const messages = fields.find("messages");
  if (const ChatJson* const data = fields.find("conversations"); data && !messages) {
    return conversation_of_data(fields, *data, source);
  }
  // The chat page exports the last four, too, which only it reads.
  fields.allow_only({"messages", "tools", "title", "models", "compared_messages", "versions"});
  if (!messages) throw Error(fmt::format("{}: has no \"messages\"", source));
  SavedConversation conversation{.messages = read_messages(*messages, false, source), .tools = ""};
  if (const ChatJson* const tools = fields.find("tools"))
    conversation.tools = json_line(read_tools(*tools, source + ": tools"));
  return conversation;
}

std::string conversation_json(const SavedConversation& conversation) {
  ChatJson json;
  json["messages"] = messages_json(conversation.messages, false);
  if (!conversation.tools.empty())
    json["tools"] = parse_chat_json(conversation.tools, "the tools", LargeIntegers::kept);
  return json_indented(json) + "\n";
}

std::string parse_tools(std::string_view json, const std::string& source) {
  const ChatJson value = parse_chat_json(json, source, LargeIntegers::kept);
  if (!value.is_object()) return json_line(read_tools(value, source + ": tools"));
  const ChatFields fields(value, source + ": the JSON");
  fields.allow_only({"tools"});
  const ChatJson* const tools = fields.find("tools");
  if (!tools) throw Error(fmt::format("{}: has no \"tools\"", source));
  return json_line(read_tools(*tools, source + ": tools"));
}

}  // namespace minimind
