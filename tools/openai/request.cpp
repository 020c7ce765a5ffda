#include "tools/openai/request.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/chat/message_json.h"
#include "tools/openai/constraint_fields.h"
#include "tools/openai/request_error.h"
#include "tools/openai/samplers.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr std::size_t most_texts_asked = 4096;

void read_parameters(const BodyFields& body, Request& request) {
  body.read_parameters(request, Dialect::openai);
  read_samplers(body, request);
  for (const char* const name : {"max_tokens", "max_completion_tokens", "n_predict"}) {
    const ChatJson* const length = body.find(name);
    if (request.chat && length && *length == 0) body.fail(name, fmt::format("a whole number, 1 to {}", largest_whole));
  }
  SamplingOptions& sampling = request.sampling;
  if (const ChatJson* const breakers = body.find("dry_sequence_breakers")) {
    if (!breakers->is_array()) body.fail("dry_sequence_breakers", "a list of strings");
    sampling.dry.sequence_breakers = body.short_texts("dry_sequence_breakers");
  }
  if (auto biases = read_logit_bias(body); !biases.empty()) sampling.logit_bias = std::move(biases);
}

// As vLLM has them.
void read_prompt_facts(const BodyFields& body, Request& request, const RequestDefaults& defaults) {
  request.return_tokens = body.flag("return_token_ids").value_or(false);
  request.tokens_as_ids = body.flag("return_tokens_as_token_ids").value_or(false);
  if (const auto top = body.whole("prompt_logprobs", 0, defaults.most_logprobs)) request.prompt_logprobs = *top;
}

// Any effort but none is thinking.
void read_effort(const BodyFields& fields, const char* name, Request& request) {
  const auto effort = fields.text(name);
  if (!effort) return;
  const auto efforts = {"none", "minimal", "low", "medium", "high", "xhigh", "max", "default"};  // the last is Groq's
  if (std::ranges::count(efforts, *effort) == 0) {
    fields.fail(name, "none, minimal, low, medium, high, xhigh, max or default");
  }
  request.think = *effort != "none";
}

// The objects of OpenRouter, and of Anthropic, DeepSeek and Volcengine. A thought is as long as the model makes it.
void read_thinking_objects(const BodyFields& body, Request& request) {
  if (const ChatJson* const reasoning = body.object("reasoning")) {
    const BodyFields fields(*reasoning, "reasoning");
    read_effort(fields, "effort", request);
    if (const auto think = fields.flag("enabled")) request.think = think;
    fields.require("exclude", false);
    fields.take_hints({"max_tokens"}, request.hints);
    fields.reject_the_rest();
  }
  if (const ChatJson* const thinking = body.object("thinking")) {
    const BodyFields fields(*thinking, "thinking");
    const std::string type = fields.required_text("type");
    if (type != "enabled" && type != "disabled" && type != "auto") fields.fail("type", "enabled, disabled or auto");
    if (type != "auto") request.think = type == "enabled";
    fields.take_hints({"budget_tokens"}, request.hints);
    fields.reject_the_rest();
  }
}

void read_thinking(const BodyFields& body, Request& request) {
  read_effort(body, "reasoning_effort", request);
  read_thinking_objects(body, request);
  for (const char* const name : {"open_thinking", "enable_thinking"}) {
    if (const auto think = body.flag(name)) request.think = think;
  }
  const ChatJson* const settings = body.object("chat_template_kwargs");
  if (!settings) return;
  BodyFields fields(*settings, "chat_template_kwargs");
  read_effort(fields, "reasoning_effort", request);
  for (const char* const name : {"open_thinking", "enable_thinking", "thinking"}) {  // the last is DeepSeek's
    if (const auto think = fields.flag(name)) request.think = think;
  }
  fields.reject_the_rest();
}

// Takes the marks of answers from the messages: `prefix` of DeepSeek and Mistral, `partial` of Qwen and Kimi. Returns
// the field that says that the last message is to be continued; empty if none does. Mistral's client marks all answers.
std::string take_prefix_marks(ChatJson& messages) {
  std::string prefix;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    for (const char* const name : {"prefix", "partial"}) {
      ChatJson& message = messages[i];
      if (!message.is_object() || !message.contains(name)) continue;
      const BodyFields fields(message, fmt::format("messages[{}]", i));
      const bool is_prefix = fields.flag(name).value_or(false);
      if (is_prefix && i + 1 < messages.size()) fields.fail(name, "false, because only the last message is continued");
      if (is_prefix) prefix = fields.name_of(name);
      message.erase(name);
    }
  }
  return prefix;
}

// Returns the thought of a part of an answer, as Mistral's API has them: a text, or a list of texts.
std::string read_thought(const BodyFields& part) {
  for (const char* const name : {"type", "signature"}) part.text(name);
  part.flag("closed");
  const ChatJson& thinking = part.must_have("thinking", "a string or a list of texts");
  std::string thought = thinking.is_string() ? thinking.get<std::string>() : "";
  if (!thinking.is_string() && !thinking.is_array()) part.fail("thinking", "a string or a list of texts");
  for (std::size_t i = 0; thinking.is_array() && i < thinking.size(); ++i) {
    const BodyFields text(thinking[i], fmt::format("{}.thinking[{}]", part.where(), i));
    if (text.text("type").value_or("") != "text") text.fail("type", "text");
    thought += text.required_text("text");
    text.reject_the_rest();
  }
  part.reject_the_rest();
  return thought;
}

// Moves the thoughts of an answer from the parts of its content to the field that other APIs have for them.
void move_thoughts(ChatJson& message, const std::string& where) {
  const auto content = message.find("content");
  if (text_or_empty(message, "role") != "assistant" || content == message.end() || !content->is_array()) return;
  std::string thought;
  ChatJson others = ChatJson::array();
  for (std::size_t i = 0; i < content->size(); ++i) {
    const ChatJson& part = (*content)[i];
    const bool is_thought = text_or_empty(part, "type") == "thinking";
    if (is_thought) {
      thought += read_thought(BodyFields(part, fmt::format("{}.content[{}]", where, i)));
    } else {
      others.push_back(part);
    }
  }
  if (others.size() == content->size()) return;
  for (const char* const name : {"reasoning_content", "reasoning"}) {
    const std::string own = text_or_empty(message, name);
    if (!own.empty() && own != thought) {
      throw RequestError(
          fmt::format("{} has both {} and other thoughts in its content, expected one of them", where, name),
          "messages");
    }
  }
  message["reasoning_content"] = thought;
  message.erase("reasoning");
  if (others.empty()) {
    message.erase("content");
  } else {
    message["content"] = std::move(others);
  }
}

// continue_final_message and add_generation_prompt, as vLLM has them; `prefix` is a field in place of the first.
// Without any, what follows an answer that is last is another one, as in OpenAI's API.
void read_continuation(const BodyFields& body, Request& request, const std::string& prefix, bool only_prompt) {
  const std::string mark = prefix.empty() ? "continue_final_message" : prefix;
  request.continues = body.flag("continue_final_message").value_or(!prefix.empty());
  if (!request.continues && !prefix.empty()) body.fail("continue_final_message", "true, as " + prefix);
  const auto prompts_answer = body.flag("add_generation_prompt");
  const bool new_answer = prompts_answer.value_or(!request.continues);
  request.starts_answer = new_answer || request.continues || !only_prompt;
  if (!request.starts_answer) return;
  if (new_answer == request.continues) {
    throw RequestError(fmt::format("an answer is either new or continued: expected {} or add_generation_prompt", mark),
                       request.continues ? mark : "add_generation_prompt");
  }
  const Message& last = request.messages.back();
  if (request.continues && (last.role != Role::assistant || !last.tool_calls.empty())) {
    throw RequestError(mark + " requires that messages ends with an answer without calls", mark);
  }
  if (!last.tool_calls.empty() && !prompts_answer) {
    throw RequestError("messages ends with a call, expected its result", "messages");
  }
}

// A template is a program, which vLLM takes of trusted clients alone, too.
void read_template(const BodyFields& body, Request& request, const RequestDefaults& defaults) {
  const auto source = body.text("chat_template");
  if (!source) return;
  if (!defaults.trusts_templates) {
    throw RequestError(
        "chat_template is a program, expected none unless the server was started with --trust-request-chat-template",
        "chat_template");
  }
  request.chat_template = *source;
}

void read_chat(const BodyFields& body, Request& request, const RequestDefaults& defaults) {
  ChatJson messages = body.must_have("messages", "a list of messages");
  if (!messages.is_array()) body.fail("messages", "a list of messages");
  if (messages.empty()) throw RequestError("messages is empty, expected at least one message", "messages");
  const std::string prefix = take_prefix_marks(messages);
  request.messages = about("messages", [&] {
    for (std::size_t i = 0; i < messages.size(); ++i) move_thoughts(messages[i], fmt::format("messages[{}]", i));
    return read_messages(messages, false, "messages");
  });
  take_message_hints(messages, request.hints);
  read_continuation(body, request, prefix, defaults.only_prompt);
  const ChatJson* const functions = body.find("functions");
  request.function_call = functions && *functions != ChatJson::array();  // of programs that have none the list is empty
  ToolChoice choice = request.function_call ? read_functions(body) : read_tools(body);
  request.tools = std::move(choice.tools);
  request.calls = choice.rule;
  request.only_function = std::move(choice.only_function);
  if (is_forced(choice.rule)) {
    request.grammar = std::move(choice.grammar);
    request.grammar_param = request.function_call ? "function_call" : "tool_choice";
  } else {
    request.call_grammar = std::move(choice.grammar);
  }
  read_thinking(body, request);
  if (const auto plain = body.flag("plain_content")) {
    if (request.plain_content && !*plain) body.fail("plain_content", "true, as for every request here");
    request.plain_content = *plain;
  }
  const bool wants_logprobs = body.flag("logprobs").value_or(false);
  read_template(body, request, defaults);
  const auto top = body.whole("top_logprobs", 0, defaults.most_logprobs);
  if (top.value_or(0) > 0 && !wants_logprobs) {
    throw RequestError("top_logprobs requires logprobs, but logprobs is not true", "top_logprobs");
  }
  if (wants_logprobs) request.logprobs = top.value_or(0);
  body.require("modalities", ChatJson::array({"text"}));
  for (const char* const name : {"echo", "add_special_tokens"}) body.require(name, false);
  body.require("best_of", 1);
  if (body.object("prediction")) request.hints.emplace_back("prediction");
}

TextPrompt prompt_of(const BodyFields& body, const ChatJson& value, bool one_prompt) {
  if (value.is_string()) return {.text = value.get<std::string>()};
  if (!value.empty() && is_token_list(value)) return {.tokens = value.get<std::vector<std::int32_t>>()};
  if (value.empty()) body.fail("prompt", "at least one token");
  body.fail("prompt",
            one_prompt ? "a string or a list of token ids" : "a string, a list of token ids, or a list of either");
}

void read_completion(const BodyFields& body, Request& request, const RequestDefaults& defaults) {
  const ChatJson& prompt = body.must_have("prompt", "a string or a list of token ids");
  const bool several = !defaults.one_prompt && prompt.is_array() && !prompt.empty() && !is_token(prompt.front());
  for (std::size_t i = 0; i < (several ? prompt.size() : 1); ++i) {
    request.prompts.push_back(prompt_of(body, several ? prompt[i] : prompt, defaults.one_prompt));
  }
  request.echo = body.flag("echo").value_or(false);
  body.require("add_special_tokens", true);
  const bool has_logprobs = body.get("logprobs") != false;  // a chat's word for none
  if (has_logprobs) request.logprobs = body.whole("logprobs", 0, defaults.most_logprobs);
  require_no_suffix(body);
}

// What a stream has of its usage: also OpenRouter's usage.include, and of each chunk vLLM's continuous_usage_stats,
// which needs the usage at the end, and Volcengine's chunk_include_usage, which does not.
void read_usage(const BodyFields& body, Request& request) {
  if (const ChatJson* const usage = body.object("usage")) {
    const BodyFields fields(*usage, "usage");
    request.include_usage = fields.flag("include").value_or(false) && request.stream;
    fields.reject_the_rest();
  }
  const ChatJson* const options = body.object("stream_options");
  if (!options) return;
  if (!request.stream) {
    throw RequestError("stream_options requires stream, but stream is not true", "stream_options");
  }
  const BodyFields fields(*options, "stream_options");
  request.include_usage = fields.flag("include_usage").value_or(false) || request.include_usage;
  const bool continuous = fields.flag("continuous_usage_stats").value_or(false);
  request.usage_of_each_chunk =
      fields.flag("chunk_include_usage").value_or(false) || (continuous && request.include_usage);
  fields.flag("include_obfuscation");  // padding against eavesdroppers, which clients ignore
  fields.reject_the_rest();
}

void read_counts(const BodyFields& body, Request& request, const RequestDefaults& defaults) {
  request.n = body.whole("n", 1, 128).value_or(1);
  request.best_of = request.n;
  if (!request.chat) request.best_of = body.whole("best_of", request.n, 128).value_or(request.n);
  if (defaults.one_prompt) {
    body.require("stream", false);
    for (const char* const name : {"stream_options", "usage"}) body.find(name);
    return;
  }
  if (request.text_count() > most_texts_asked) {
    throw RequestError(
        fmt::format("the request is for {} texts, expected at most {}", request.text_count(), most_texts_asked),
        "prompt");  // a chat has fewer
  }
  request.stream = body.flag("stream").value_or(false);
  read_usage(body, request);
  for (const auto& [name, is_given] : {std::pair{"return_tokens_as_token_ids", request.tokens_as_ids},
                                       {"prompt_logprobs", request.prompt_logprobs.has_value()}}) {
    if (!request.stream || !is_given) continue;
    throw RequestError(fmt::format("{} is for whole answers, but stream is true; expected one of them", name), name);
  }
  if (request.stream && request.best_of > request.n) {
    throw RequestError("best_of chooses among whole texts, which a stream cannot; expected n or no stream", "best_of");
  }
}

void accept_metadata(const BodyFields& body) {
  const ChatJson* const metadata = body.object("metadata");
  const auto is_text = [](const ChatJson& value) { return value.is_string(); };
  if (metadata && !std::ranges::all_of(*metadata, is_text)) body.fail("metadata", "an object of strings");
}

void read_hints(const BodyFields& body, Request& request) {
  if (const auto verbosity = body.text("verbosity")) {
    const auto levels = {"low", "medium", "high"};
    if (std::ranges::count(levels, *verbosity) == 0) body.fail("verbosity", "low, medium or high");
  }
  if (const auto form = body.text("reasoning_format")) {  // the names that servers have for reasoning_content
    const auto forms = {"auto", "deepseek", "parsed"};
    if (std::ranges::count(forms, *form) == 0) {
      body.fail("reasoning_format", "auto, deepseek or parsed, because thoughts are in reasoning_content");
    }
  }
  body.take_hints(hint_fields, request.hints);
}

void accept_harmless(const BodyFields& body, const RequestDefaults& defaults) {
  for (const char* const name :
       {"user", "user_id", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"}) {
    body.text(name);
  }
  body.flag("store");
  accept_metadata(body);
  if (defaults.one_prompt) body.find("custom_id");
}

}  // namespace

std::vector<LogitBias> read_logit_bias(const BodyFields& body) {
  const ChatJson* const biases = body.find("logit_bias");
  std::vector<LogitBias> result;
  if (!biases) return result;
  if (!biases->is_object()) body.fail("logit_bias", "an object of token ids and numbers");
  for (const auto& [name, bias] : biases->items()) {
    const auto token = number_in<std::int32_t>(name);
    const bool is_id = token && *token >= 0 && name == std::to_string(*token);
    const double value = bias.is_number() ? bias.get<double>() : NAN;
    if (!is_id || !(std::abs(value) <= largest_term)) {
      body.fail("logit_bias",
                fmt::format("an object of token ids and numbers from {} to {}", -largest_term, largest_term));
    }
    result.push_back({*token, value});
  }
  return result;
}

void read_ends(const BodyFields& body, Dialect dialect, Request& request) {
  request.ignore_eos = body.flag("ignore_eos").value_or(false);
  if (const ChatJson* const ids = body.find("stop_token_ids")) {
    const bool fits = is_token_list(*ids) && ids->size() <= most_stop_tokens;
    if (!fits) body.fail("stop_token_ids", fmt::format("a list of at most {} ids", most_stop_tokens));
    request.stop_tokens = ids->get<std::vector<std::int32_t>>();
  }
  const std::string least = dialect == Dialect::sglang ? "min_new_tokens" : "min_tokens";
  const std::string most = dialect == Dialect::sglang ? "max_new_tokens" : "max_tokens";
  request.min_tokens = body.whole(least, 0, largest_whole).value_or(0);
  if (request.min_tokens <= request.max_tokens) return;
  body.fail(least, fmt::format("at most {}, the {}", request.max_tokens, most));
}

void take_message_hints(const ChatJson& messages, std::vector<std::string>& hints) {
  for (const std::string name : cache_marks) {
    const auto has_mark = [&](const ChatJson& part) {
      const auto mark = part.find(name);
      return mark != part.end() && !mark->is_null();
    };
    const auto has_marked_part = [&](const ChatJson& message) {
      const auto content = message.find("content");
      return content != message.end() && content->is_array() && std::ranges::any_of(*content, has_mark);
    };
    if (std::ranges::any_of(messages, has_mark)) hints.push_back("messages." + name);
    if (std::ranges::any_of(messages, has_marked_part)) hints.push_back("messages.content." + name);
  }
}

void require_no_suffix(const BodyFields& body) {
  if (body.text("suffix").value_or("").empty()) return;
  body.fail("suffix", "none, because the model continues texts and cannot fill in their middle");
}

void require_no_other_sampling(const BodyFields& body, Dialect dialect) {
  for (const auto& [name, off] : {std::pair{"mirostat", 0},
                                  {"top_a", 0},
                                  {"xtc_probability", 0},
                                  {"dynatemp_range", 0},
                                  {"top_n_sigma", 0},
                                  {"n_probs", 0},
                                  {"min_keep", 0},
                                  {"tfs_z", 1}}) {
    body.require(name, off);
  }
  body.require("length_penalty", 1);
  for (const char* const name : {"use_beam_search", "include_stop_str_in_output", "early_stopping", "enable_search",
                                 "safe_prompt", "return_hidden_states", "return_routed_experts"}) {
    body.require(name, false);
  }
  if (dialect != Dialect::sglang) {
    body.require("skip_special_tokens", true);
    body.require("no_stop_trim", false);
  }
  for (const char* const name :
       {"detokenize", "penalize_newline", "include_reasoning", "separate_reasoning", "stream_reasoning"}) {
    body.require(name, true);
  }
  for (const char* const name : {"bad_words", "documents", "logits_processors", "plugins"})
    body.require(name, ChatJson::array());
  body.flag("spaces_between_special_tokens");  // there are none in a text
}

RequestDefaults defaults_of(const GenerationArguments& arguments) {
  RequestDefaults defaults;
  defaults.parameters = arguments.sampling.parameters();
  defaults.grammar = arguments.sampling.grammar(arguments.run.quiet);
  return defaults;
}

ChatJson defaults_json(const RequestDefaults& defaults) {
  ChatJson values;
  for (const GenerationParameter& parameter : generation_parameters) {
    if (!parameter.is_number()) continue;
    const double number = parameter.of(defaults.parameters);
    values[std::string(parameter.name)] =
        parameter.counts() ? ChatJson(static_cast<std::size_t>(number)) : ChatJson(number);
  }
  return values;
}

Request request_with(const RequestDefaults& defaults) {
  Request request;
  static_cast<GenerationParameters&>(request) = defaults.parameters;
  request.plain_content = defaults.plain_content;
  request.grammar = defaults.grammar;
  return request;
}

Request read_request(const ChatJson& object, bool chat, const RequestDefaults& defaults) {
  BodyFields body(object);
  Request request = request_with(defaults);
  request.chat = chat;
  if (const auto model = body.text("model"); model && !model->empty()) {
    if (!defaults.model_names.empty() && std::ranges::count(defaults.model_names, *model) == 0) {
      throw RequestError(fmt::format("model is {}, expected {}", quote(*model), quote(defaults.model_names.front())),
                         "model", "model_not_found");
    }
    request.model = *model;
  }
  read_parameters(body, request);
  read_ends(body, Dialect::openai, request);
  require_no_other_sampling(body, Dialect::openai);
  read_prompt_facts(body, request, defaults);
  chat ? read_chat(body, request, defaults) : read_completion(body, request, defaults);
  TextConstraint constraint = read_constraint(body, chat, {std::move(request.grammar), request.grammar_param});
  request.grammar = std::move(constraint.grammar);
  request.grammar_param = std::move(constraint.field);
  read_counts(body, request, defaults);
  read_hints(body, request);
  accept_harmless(body, defaults);
  body.reject_the_rest();
  return request;
}

}  // namespace minimind
