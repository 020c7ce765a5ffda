#include "runtime/chat/message_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "runtime/chat/tool_call.h"
#include "runtime/chat/training_conversation.h"
#include "runtime/jinja/show.h"
#include "weights/io/error.h"
#include "weights/io/quote.h"
#include "weights/io/suggestion.h"

namespace minimind {
namespace {

using jinja::Dict;
using jinja::Value;

Value list_of(std::vector<Value> items) {
  jinja::Budget budget({.steps = SIZE_MAX, .depth = SIZE_MAX, .bytes = SIZE_MAX, .output = SIZE_MAX});
  return jinja::make_list(std::move(items), budget);
}

Value value_of(Dict dict) {
  jinja::Budget budget({.steps = SIZE_MAX, .depth = SIZE_MAX, .bytes = SIZE_MAX, .output = SIZE_MAX});
  return jinja::make_dict(std::move(dict), budget);
}

// An object of a file, and what messages call it.
class Fields {
 public:
  Fields(const Value& value, std::string where) : object_(value.dict()), where_(std::move(where)) {
    if (!object_) throw Error(fmt::format("{} is {}, expected an object", where_, value.kind_name()));
  }

  // Null counts as absent.
  const Value* find(const char* key) const {
    const Value* const value = object_->find(key);
    return value && !value->is_none() ? value : nullptr;
  }

  std::optional<std::string> text(const char* key) const {
    const Value* const value = find(key);
    if (!value) return std::nullopt;
    if (!value->text()) fail(key, *value, "a string");
    return value->text()->bytes;
  }

  std::string required_text(const char* key) const {
    auto value = text(key);
    if (!value) throw Error(fmt::format("{} has no \"{}\"", where_, key));
    return *std::move(value);
  }

  // What we do not know would be lost.
  void allow_only(std::initializer_list<std::string_view> keys) const {
    for (const auto& [key, value] : object_->entries()) {
      if (value.is_none() || std::find(keys.begin(), keys.end(), key.text()->bytes) != keys.end()) continue;
      throw Error(fmt::format("{} has {}, which means nothing here; take it away", where_, quote(key.text()->bytes)));
    }
  }

  [[noreturn]] void fail(const char* key, const Value& found, std::string_view wanted) const {
    throw Error(fmt::format("{}.{} is {}, expected {}", where_, key, found.kind_name(), wanted));
  }

  const std::string& where() const { return where_; }

 private:
  const Dict* object_;
  std::string where_;
};

const std::vector<Value>& items_of(const Value& value, const std::string& where, std::string_view wanted) {
  if (!value.list()) throw Error(fmt::format("{} is {}, expected {}", where, value.kind_name(), wanted));
  return value.list()->items;
}

Role read_role(const Fields& fields) {
  const std::string name = fields.required_text("role");
  std::vector<std::string> names;
  for (const Role role : {Role::system, Role::user, Role::assistant, Role::tool}) {
    if (name == name_of(role)) return role;
    names.emplace_back(name_of(role));
  }
  throw Error(fmt::format("{}.role: {}", fields.where(), unknown_choice(name, names)));
}

ToolCall read_call(const Value& value, const std::string& where) {
  const Fields outer(value, where);
  outer.allow_only({"id", "type", "function", "name", "arguments"});
  const Value* const function = outer.find("function");
  const Fields fields = function ? Fields(*function, where + ".function") : outer;
  if (function) fields.allow_only({"name", "arguments"});
  ToolCall call{.id = outer.text("id").value_or(""), .name = fields.required_text("name"), .arguments = "{}"};
  const Value* const arguments = fields.find("arguments");
  if (!arguments) return call;
  call.arguments = arguments->text() ? arguments->text()->bytes : json_line(*arguments);
  const std::string place = fields.where() + ".arguments";
  const Value parsed = jinja::parse_json(call.arguments, place);
  if (!parsed.dict()) throw Error(fmt::format("{} is {}, expected a JSON object", place, parsed.kind_name()));
  return call;
}

Message read_message(const Value& value, bool exact, const std::string& where) {
  const Fields fields(value, where);
  Message message{.role = read_role(fields)};
  const bool answers = message.role == Role::assistant;
  if (answers && exact) {
    fields.allow_only({"role", "content", "name", "reasoning_content", "tool_calls", "verbatim"});
    message.verbatim = fields.text("verbatim");
  } else if (answers) {
    fields.allow_only({"role", "content", "name", "reasoning_content", "tool_calls"});
  } else if (message.role == Role::tool) {
    fields.allow_only({"role", "content", "name", "tool_call_id"});
  } else {
    fields.allow_only({"role", "content", "name"});
  }
  message.name = fields.text("name").value_or("");
  message.reasoning = fields.text("reasoning_content");
  message.tool_call_id = fields.text("tool_call_id").value_or("");
  if (const Value* const calls = fields.find("tool_calls")) {
    const std::string place = where + ".tool_calls";
    for (const Value& call : items_of(*calls, place, "a list of calls")) {
      message.tool_calls.push_back(read_call(call, fmt::format("{}[{}]", place, message.tool_calls.size())));
    }
  }
  message.content = message.tool_calls.empty() ? fields.required_text("content") : fields.text("content").value_or("");
  return message;
}

Value call_value(const ToolCall& call, Arguments arguments) {
  const bool text = arguments == Arguments::texts;
  Dict function;
  function.set("name", call.name);
  function.set("arguments",
               text ? Value(call.arguments) : jinja::parse_json(call.arguments, "the arguments of a call"));
  Dict dict;
  if (!call.id.empty()) dict.set("id", call.id);
  dict.set("type", "function");
  dict.set("function", value_of(std::move(function)));
  return value_of(std::move(dict));
}

Dict message_dict(const Message& message, Arguments arguments) {
  Dict dict;
  dict.set("role", std::string(name_of(message.role)));
  dict.set("content", message.content);
  if (!message.name.empty()) dict.set("name", message.name);
  if (message.reasoning) dict.set("reasoning_content", *message.reasoning);
  if (!message.tool_call_id.empty()) dict.set("tool_call_id", message.tool_call_id);
  if (message.tool_calls.empty()) return dict;
  std::vector<Value> calls;
  for (const ToolCall& call : message.tool_calls) calls.push_back(call_value(call, arguments));
  dict.set("tool_calls", list_of(std::move(calls)));
  return dict;
}

Value read_tools(const Value& tools, const std::string& where) {
  std::size_t index = 0;
  for (const Value& tool : items_of(tools, where, "a list of functions")) {
    const std::string place = fmt::format("{}[{}]", where, index++);
    const Fields outer(tool, place);
    const auto type = outer.text("type");
    if (type && *type != "function") {
      throw Error(fmt::format("{}.type is {}, expected \"function\"", place, quote(*type)));
    }
    const Value* const function = outer.find("function");
    if (type && !function) throw Error(fmt::format("{} has no \"function\"", place));
    const Fields fields = function ? Fields(*function, place + ".function") : outer;
    if (fields.required_text("name").empty()) throw Error(fmt::format("{}.name is empty", fields.where()));
    fields.text("description");
    const Value* const parameters = fields.find("parameters");
    if (parameters && !parameters->dict()) fields.fail("parameters", *parameters, "a JSON schema, which is an object");
  }
  return tools;
}

}  // namespace

std::vector<Message> read_messages(const Value& list, bool exact, const std::string& source) {
  std::vector<Message> messages;
  const std::string where = source + ": messages";
  for (const Value& message : items_of(list, where, "a list of messages")) {
    messages.push_back(read_message(message, exact, fmt::format("{}[{}]", where, messages.size())));
  }
  check_order(messages, source);
  return messages;
}

Value messages_value(const std::vector<Message>& messages, bool exact) {
  std::vector<Value> values;
  for (const Message& message : messages) {
    Dict dict = message_dict(message, Arguments::texts);
    if (exact && message.verbatim) dict.set("verbatim", *message.verbatim);
    values.push_back(value_of(std::move(dict)));
  }
  return list_of(std::move(values));
}

Value template_messages(const std::vector<Message>& messages, Arguments arguments) {
  std::vector<Value> values;
  for (const Message& message : messages) {
    if (message.verbatim) {
      const Message plain{.role = message.role, .content = *message.verbatim, .name = message.name};
      values.push_back(value_of(message_dict(plain, arguments)));
    } else {
      values.push_back(value_of(message_dict(message, arguments)));
    }
  }
  return list_of(std::move(values));
}

void check_order(const std::vector<Message>& messages, const std::string& source) {
  bool asked = false;
  std::size_t pending = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto fail = [&](std::string_view reason) {
      throw Error(fmt::format("{}: messages[{}], of the {}, {}", source, i, name_of(messages[i].role), reason));
    };
    switch (messages[i].role) {
      case Role::system:
        break;
      case Role::user:
        asked = true;
        pending = 0;
        break;
      case Role::assistant:
        if (!asked) fail("comes before any of the user");
        pending = messages[i].tool_calls.size();
        break;
      case Role::tool:
        if (pending == 0) fail("follows no call that waits for a result");
        --pending;
    }
  }
}

namespace {

// "gt" is the answer that MiniMind's data for reinforcement learning expects.
SavedConversation conversation_of_data(const Fields& fields, const Value& list, const std::string& source) {
  fields.allow_only({"conversations", "gt"});
  const TrainingConversation data = read_training_conversation(list, source + ": conversations");
  SavedConversation conversation{.messages = read_messages(data.messages, false, source), .tools = ""};
  if (!data.tools.is_none()) conversation.tools = json_line(read_tools(data.tools, source + ": tools"));
  return conversation;
}

}  // namespace

SavedConversation parse_conversation(std::string_view json, const std::string& source) {
  const Value value = jinja::parse_json(json, source);
  if (value.list()) return {.messages = read_messages(value, false, source), .tools = ""};
  const Fields fields(value, source + ": the file");
  const Value* const messages = fields.find("messages");
  if (const Value* const data = fields.find("conversations"); data && !messages) {
    return conversation_of_data(fields, *data, source);
  }
  fields.allow_only({"messages", "tools"});
  if (!messages) throw Error(fmt::format("{}: has no \"messages\"", source));
  SavedConversation conversation{.messages = read_messages(*messages, false, source), .tools = ""};
  if (const Value* const tools = fields.find("tools"))
    conversation.tools = json_line(read_tools(*tools, source + ": tools"));
  return conversation;
}

std::string conversation_json(const SavedConversation& conversation) {
  Dict dict;
  dict.set("messages", messages_value(conversation.messages, false));
  if (!conversation.tools.empty()) dict.set("tools", jinja::parse_json(conversation.tools, "the tools"));
  return json_indented(value_of(std::move(dict))) + "\n";
}

std::string parse_tools(std::string_view json, const std::string& source) {
  const Value value = jinja::parse_json(json, source);
  if (!value.dict()) return json_line(read_tools(value, source + ": the file"));
  const Fields fields(value, source + ": the file");
  fields.allow_only({"tools"});
  const Value* const tools = fields.find("tools");
  if (!tools) throw Error(fmt::format("{}: has no \"tools\"", source));
  return json_line(read_tools(*tools, source + ": tools"));
}

}  // namespace minimind
