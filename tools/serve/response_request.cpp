#include "tools/serve/response_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "runtime/chat/message_json.h"
#include "tools/openai/body_fields.h"
#include "tools/openai/constraint_fields.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

// A string, or a list of texts, as the content of a chat's message.
ChatJson chat_content(const ChatJson& content, const std::string& where) {
  if (!content.is_array()) return content;
  ChatJson parts = ChatJson::array();
  for (const ChatJson& part : content) {
    const std::string type = text_or_empty(part, "type");
    if (type == "refusal") {  // of an answer alone, as in a chat
      parts.push_back({{"type", type}, {"refusal", part.value("refusal", ChatJson())}});
      continue;
    }
    if (type != "input_text" && type != "output_text" && type != "text") {
      throw RequestError(fmt::format("{} has a part of type {}, expected input_text or output_text, because the model "
                                     "reads text alone",
                                     where, quote(type)),
                         "input");
    }
    parts.push_back({{"type", "text"}, {"text", part.value("text", ChatJson())}});
    for (const char* const mark : cache_marks) {
      if (part.contains(mark)) parts.back()[mark] = part[mark];
    }
  }
  return parts;
}

// The items of `input` become messages.
class InputReader {
 public:
  explicit InputReader(ChatJson& messages) : messages_(messages) {}

  void add(const ChatJson& item, std::size_t index) {
    const std::string where = fmt::format("input[{}]", index);
    if (!item.is_object()) throw RequestError(fmt::format("{} is {}, expected an item", where, kind_of(item)), "input");
    const BodyFields fields(item, where);
    const std::string type = fields.text("type").value_or("message");
    for (const char* const name : {"id", "status"}) fields.text(name);
    if (type.starts_with("function_call")) fields.require("caller", {{"type", "direct"}});  // the model, no program
    if (type == "message") {
      add_message(fields);
    } else if (type == "function_call") {
      add_call(fields);
    } else if (type == "function_call_output") {
      messages_.push_back({{"role", "tool"},
                           {"tool_call_id", fields.required_text("call_id")},
                           {"content", chat_content(fields.get("output"), where)}});
    } else if (type == "reasoning") {
      add_thought(fields);
    } else {
      fields.fail("type", "message, function_call, function_call_output, reasoning or item_reference");
    }
    fields.reject_the_rest();
  }

 private:
  ChatJson answer(const ChatJson& content) {
    ChatJson message{{"role", "assistant"}, {"content", content}};
    if (!thought_.empty()) message["reasoning_content"] = std::exchange(thought_, {});
    return message;
  }

  void add_message(const BodyFields& fields) {
    const std::string role = fields.required_text("role");
    const ChatJson content = chat_content(fields.get("content"), fields.where());
    fields.text("phase");
    messages_.push_back(role == "assistant" ? answer(content) : ChatJson{{"role", role}, {"content", content}});
  }

  // A call belongs to the answer before it.
  void add_call(const BodyFields& fields) {
    const bool has_answer = !messages_.empty() && messages_.back()["role"] == "assistant" && thought_.empty();
    if (!has_answer) messages_.push_back(answer(""));
    ChatJson& calls = messages_.back()["tool_calls"];
    calls.push_back(
        {{"id", fields.required_text("call_id")},
         {"type", "function"},
         {"function", {{"name", fields.required_text("name")}, {"arguments", fields.required_text("arguments")}}}});
  }

  void add_thought(const BodyFields& fields) {
    fields.find("summary");
    if (!fields.text("encrypted_content").value_or("").empty()) {
      fields.fail("encrypted_content", "none, because the server's thoughts are in content");
    }
    const ChatJson* const content = fields.find("content");
    if (!content) return;
    if (!content->is_array()) fields.fail("content", "a list of texts");
    for (const ChatJson& part : *content) thought_ += text_or_empty(part, "text");
  }

  ChatJson& messages_;
  std::string thought_;  // of the answer that follows
};

// Whether an item of the input is the result of the call.
bool has_result_of(const ChatJson& input, const ChatJson& call) {
  return input.is_array() && std::ranges::any_of(input, [&](const ChatJson& item) {
           return text_or_empty(item, "type") == "function_call_output" &&
                  text_or_empty(item, "call_id") == call["call_id"];
         });
}

// Returns the items of the response that this one continues, and of what it answered. A call that was cut is left out,
// unless its result follows.
ChatJson items_before(const BodyFields& body, const ResponseStore& store) {
  const auto previous = body.text("previous_response_id");
  if (!previous) return ChatJson::array();
  const std::shared_ptr<const StoredResponse> stored = store.find(*previous, "previous_response_id");
  if (stored->bytes() > most_brief_bytes) begin_long_work();
  ChatJson items = parse_chat_json(stored->input, "the stored input");
  const ChatJson response = parse_chat_json(stored->response, "the stored response");
  const ChatJson* const input = body.find("input");  // read_input() checks it
  for (const ChatJson& item : response["output"]) {
    const bool is_cut = item["type"] == "function_call" && item["status"] != "completed";
    if (!is_cut || (input && has_result_of(*input, item))) items.push_back(item);
  }
  return items;
}

// A conversation of too many bytes.
RequestError too_long(std::size_t bytes, std::size_t most, const std::string& param) {
  return {fmt::format("the conversation has {} bytes, expected at most {}, the limit of the server's --max-text; start "
                      "a new one",
                      bytes, most),
          param, "text_too_large"};
}

// Finds the items that an input refers to. The same one may be named many times, so that all together are limited.
class References {
 public:
  References(const ResponseStore& store, std::size_t most_text) : store_(store), most_text_(most_text) {}

  ChatJson item_of(const ChatJson& reference, std::size_t index) {
    const BodyFields fields(reference, fmt::format("input[{}]", index));
    fields.text("type");
    const std::string id = fields.required_text("id");
    fields.reject_the_rest();
    const auto text = store_.find_item(id);
    if (!text) {
      fields.fail("id", "an item of the output of a response that the server has; send the item itself");
    }
    bytes_ += text->size();
    if (bytes_ > most_text_) throw too_long(bytes_, most_text_, "input");
    if (bytes_ > most_brief_bytes) begin_long_work();
    return parse_chat_json(*text, "the stored item");
  }

 private:
  const ResponseStore& store_;
  const std::size_t most_text_;
  std::size_t bytes_ = 0;  // of the items so far
};

// Returns the messages of `items` and of the input, which it adds to them.
ChatJson read_input(const BodyFields& body, const ResponseStore& store, std::size_t most_text, ChatJson& items) {
  const ChatJson& input = body.must_have("input", "a string or a list of items");
  const std::size_t before = items.size();
  if (input.is_string()) {
    items.push_back({{"role", "user"}, {"content", input}});
  } else if (input.is_array()) {
    References references(store, most_text);
    for (const ChatJson& item : input) {
      const bool refers = text_or_empty(item, "type") == "item_reference";
      items.push_back(refers ? references.item_of(item, items.size() - before) : item);
    }
  } else {
    body.fail("input", "a string or a list of items");
  }
  ChatJson messages = ChatJson::array();
  InputReader reader(messages);
  for (std::size_t i = 0; i < items.size(); ++i) reader.add(items[i], i < before ? i : i - before);
  if (const std::size_t bytes = json_line(messages).size(); bytes > most_text) {
    throw too_long(bytes, most_text, before > 0 ? "previous_response_id" : "input");
  }
  return messages;
}

// Numbers may be longer as they are stored than in the body: 1e9 is 1000000000.0.
void check_stored(const std::string& input) {
  if (input.size() <= max_chat_json_size) return;
  throw RequestError(fmt::format("the items of the conversation have {} bytes as they are stored, expected at most {}; "
                                 "send store as false, or start a new one",
                                 input.size(), max_chat_json_size),
                     "input");
}

// An object without its type.
ChatJson without_type(ChatJson object) {
  object.erase("type");
  return object;
}

ChatJson chat_tools(const ChatJson& tools) {
  if (!tools.is_array()) return tools;
  ChatJson list = ChatJson::array();
  for (const ChatJson& tool : tools) {
    if (text_or_empty(tool, "type") != "function") {
      throw RequestError(
          fmt::format("tools: tool {} is of type {}, expected function, because the server runs no tools",
                      list.size() + 1, quote(text_or_empty(tool, "type"))),
          "tools");
    }
    ChatJson function = without_type(tool);
    for (const char* const name : {"strict", "description", "parameters"}) {
      if (function.contains(name) && function[name].is_null()) function.erase(name);
    }
    list.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return list;
}

ChatJson chat_tool_choice(const ChatJson& choice) {
  const std::string type = text_or_empty(choice, "type");
  if (type == "function") return {{"type", "function"}, {"function", without_type(choice)}};
  if (type != "allowed_tools" || !choice.contains("tools")) return choice;
  ChatJson allowed = without_type(choice);
  allowed["tools"] = chat_tools(choice["tools"]);
  return {{"type", "allowed_tools"}, {"allowed_tools", std::move(allowed)}};
}

ChatJson chat_format(const ChatJson& format) {
  if (text_or_empty(format, "type") != "json_schema") return format;
  return {{"type", "json_schema"}, {"json_schema", without_type(format)}};
}

// Moves what is named differently from a chat completion.
void read_renamed(const BodyFields& body, ChatJson& chat, std::vector<std::string>& hints) {
  const auto move = [&](const BodyFields& from, const char* name, const char* chat_name,
                        ChatJson (*convert)(const ChatJson&)) {
    if (const ChatJson* const value = from.find(name)) chat[chat_name] = convert ? convert(*value) : *value;
  };
  move(body, "max_output_tokens", "max_tokens", nullptr);
  move(body, "tools", "tools", chat_tools);
  move(body, "tool_choice", "tool_choice", chat_tool_choice);
  if (const ChatJson* const text = body.object("text")) {
    const BodyFields fields(*text, "text");
    move(fields, "format", "response_format", chat_format);
    move(fields, "verbosity", "verbosity", nullptr);
    fields.reject_the_rest();
  }
  if (const ChatJson* const reasoning = body.object("reasoning")) {
    const BodyFields fields(*reasoning, "reasoning");
    move(fields, "effort", "reasoning_effort", nullptr);
    for (const char* const name : {"summary", "generate_summary"}) fields.text(name);
    fields.take_hints({"summary", "generate_summary"}, hints);
    fields.require("context", "auto");
    fields.require("mode", "standard");
    fields.reject_the_rest();
  }
}

// What a response may include of items that none has here.
constexpr auto of_other_items = {"reasoning.encrypted_content",   "web_search_call.action.sources",
                                 "web_search_call.results",       "file_search_call.results",
                                 "message.input_image.image_url", "computer_call_output.output.image_url",
                                 "code_interpreter_call.outputs"};

void read_logprobs_and_more(const BodyFields& body, ChatJson& chat, std::vector<std::string>& hints) {
  const std::size_t top = body.whole("top_logprobs", 0, most_top_logprobs).value_or(0);
  bool wanted = top > 0;
  if (const ChatJson* const include = body.find("include")) {
    if (!include->is_array()) body.fail("include", "a list");
    for (const ChatJson& what : *include) {
      if (what == "message.output_text.logprobs") {
        wanted = true;
      } else if (std::ranges::count(of_other_items, what) > 0) {
        hints.push_back("include: " + what.get<std::string>());
      } else {
        const std::string shown = what.is_string() ? quote(what.get<std::string>()) : std::string(kind_of(what));
        throw RequestError(fmt::format("include has {}, expected message.output_text.logprobs, because the server has "
                                       "nothing else to include",
                                       shown),
                           "include");
      }
    }
  }
  if (wanted) chat.update({{"logprobs", true}, {"top_logprobs", top}});
}

// A conversation that fits is the same with "auto". One that does not is an error, because nothing is left out of it.
void read_truncation(const BodyFields& body, std::vector<std::string>& hints) {
  const std::string truncation = body.text("truncation").value_or("disabled");
  if (truncation != "auto" && truncation != "disabled") body.fail("truncation", R"("auto" or "disabled")");
  if (truncation == "auto") hints.emplace_back("truncation: auto");
}

// Fields with the same name and meaning in a chat completion.
void read_shared(const BodyFields& body, ChatJson& chat) {
  const auto copy = [&](const std::string& name) {
    if (const ChatJson* const value = body.find(name)) chat[name] = *value;
  };
  for (const GenerationParameter& parameter : generation_parameters) {
    if (parameter.name == "max_tokens") continue;
    for (const std::string& name : names_of(parameter, Dialect::openai)) copy(name);
  }
  copy("do_sample");
  for (const char* const name : {"model",
                                 "parallel_tool_calls",
                                 "logit_bias",
                                 "samplers",
                                 "dry_sequence_breakers",
                                 "ignore_eos",
                                 "stop_token_ids",
                                 "min_tokens",
                                 "plain_content",
                                 "open_thinking",
                                 "enable_thinking",
                                 "thinking",
                                 "chat_template_kwargs",
                                 "user",
                                 "user_id",
                                 "service_tier",
                                 "safety_identifier",
                                 "prompt_cache_key",
                                 "prompt_cache_retention",
                                 "metadata"}) {
    copy(name);
  }
  for (const char* const name : hint_fields) copy(name);
  for (const std::string& name : constraint_fields()) copy(name);
}

// Copies those of the members that the field of the body has: it may have any number of others, which are null.
void copy_members(const ChatJson& body, const char* field, std::initializer_list<const char*> members, ChatJson& to) {
  const auto from = body.find(field);
  if (from == body.end() || from->is_null()) return;
  for (const char* const name : members) {
    const auto member = from->find(name);
    if (member != from->end() && !member->is_null()) to[name] = *member;
  }
}

ChatJson settings_of(const ChatJson& body, const Request& text) {
  const auto given = [&](const char* name, const ChatJson& otherwise) {
    const auto field = body.find(name);
    return field == body.end() || field->is_null() ? otherwise : *field;
  };
  ChatJson format{{"format", {{"type", "text"}}}};
  copy_members(body, "text", {"format", "verbosity"}, format);
  ChatJson reasoning{{"effort", nullptr}, {"summary", nullptr}};
  copy_members(body, "reasoning", {"effort", "summary", "generate_summary"}, reasoning);
  return {{"background", false},
          {"instructions", given("instructions", nullptr)},
          {"max_output_tokens", given("max_output_tokens", nullptr)},
          {"max_tool_calls", nullptr},
          {"metadata", given("metadata", ChatJson::object())},
          {"parallel_tool_calls", given("parallel_tool_calls", true)},
          {"previous_response_id", given("previous_response_id", nullptr)},
          {"prompt_cache_key", given("prompt_cache_key", nullptr)},
          {"reasoning", std::move(reasoning)},
          {"safety_identifier", given("safety_identifier", nullptr)},
          {"service_tier", "default"},
          {"store", given("store", true)},
          {"temperature", text.sampling.temperature},
          {"text", std::move(format)},
          {"tool_choice", given("tool_choice", "auto")},
          {"tools", given("tools", ChatJson::array())},
          {"top_logprobs", given("top_logprobs", 0)},
          {"top_p", text.sampling.top_p},
          {"truncation", given("truncation", "disabled")},
          {"user", given("user", nullptr)}};
}

}  // namespace

ResponseStore::Responses::const_iterator ResponseStore::place_of(const std::string& id,
                                                                 const std::string& field) const {
  const auto found = responses_.find(id);
  if (found != responses_.end()) return found;
  throw RequestError(
      fmt::format("{} is {}, which the server does not have (any more), expected one of the latest {} responses with "
                  "store, at most {} MB of them; send the whole conversation as input",
                  field, quote(id), most_responses, most_bytes >> 20),
      field, field == "previous_response_id" ? "previous_response_not_found" : "not_found");
}

void ResponseStore::drop(const std::string& id) {
  const auto found = responses_.find(id);
  bytes_ -= found->second->bytes();
  for (const auto& [item, text] : found->second->output) owners_.erase(item);
  responses_.erase(found);
}

void ResponseStore::add(const std::string& id, StoredResponse response) {
  const auto kept = std::make_shared<const StoredResponse>(std::move(response));
  if (kept->bytes() > most_bytes / 2) return;
  const std::lock_guard lock(mutex_);
  bytes_ += kept->bytes();
  ids_.push_back(id);
  for (const auto& [item, text] : kept->output) owners_.emplace(item, id);
  responses_.emplace(id, kept);
  while (ids_.size() > most_responses || bytes_ > most_bytes) {
    drop(ids_.front());
    ids_.pop_front();
  }
}

std::shared_ptr<const StoredResponse> ResponseStore::find(const std::string& id, const std::string& field) const {
  const std::lock_guard lock(mutex_);
  return place_of(id, field)->second;
}

std::optional<std::string> ResponseStore::find_item(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto owner = owners_.find(id);
  if (owner == owners_.end()) return std::nullopt;
  return responses_.at(owner->second)->output.at(id);
}

void ResponseStore::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  drop(place_of(id, "response_id")->first);
  std::erase(ids_, id);
}

ResponseRequest read_response_request(const ChatJson& object, const RequestDefaults& defaults,
                                      const ResponseStore& store, std::size_t most_text) {
  const BodyFields body(object);
  ResponseRequest request;
  ChatJson items = items_before(body, store);
  const ChatJson messages = read_input(body, store, most_text, items);
  request.input = json_line(items);
  request.stream = body.flag("stream").value_or(false);
  request.stores = body.flag("store").value_or(true);
  if (request.stores) check_stored(request.input);
  ChatJson chat = ChatJson::object();
  std::vector<std::string> hints;
  read_renamed(body, chat, hints);
  read_logprobs_and_more(body, chat, hints);
  read_shared(body, chat);
  chat["messages"] = ChatJson::array();
  if (const auto instructions = body.text("instructions")) {
    chat["messages"].push_back({{"role", "system"}, {"content", *instructions}});
  }
  for (const ChatJson& message : messages) chat["messages"].push_back(message);
  body.require("background", false);
  body.require("context_management", ChatJson::array());
  read_truncation(body, hints);
  body.object("client_metadata");  // of Codex: what installation it is
  body.take_hints({"max_tool_calls", "client_metadata"}, hints);
  if (const ChatJson* const options = body.object("stream_options")) {
    const BodyFields fields(*options, "stream_options");
    fields.flag("include_obfuscation");
    fields.reject_the_rest();
  }
  body.reject_the_rest();
  try {
    request.text = read_request(chat, true, defaults);
  } catch (const RequestError& error) {
    throw response_error(error);
  }
  request.text.hints.insert(request.text.hints.end(), hints.begin(), hints.end());
  const std::string settings = json_line(settings_of(object, request.text));
  request.settings = settings.substr(1, settings.size() - 2);
  return request;
}

RequestError response_error(const RequestError& error) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {{"messages", "input"},
                                                                     {"max_tokens", "max_output_tokens"},
                                                                     {"response_format.json_schema", "text.format"},
                                                                     {"response_format", "text.format"},
                                                                     {"reasoning_effort", "reasoning.effort"},
                                                                     {"verbosity", "text.verbosity"}};
  const auto renamed = [&](std::string text) {
    for (const auto& [chat_name, name] : names) {
      if (text.starts_with(chat_name)) return std::string(name) + text.substr(chat_name.size());
    }
    return text;
  };
  return {renamed(error.what()), renamed(error.param()), error.code()};
}

}  // namespace minimind
