#include "runtime/chat/chat_template.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "runtime/chat/chat_json.h"
#include "runtime/chat/training_conversation.h"
#include "weights/base/error.h"
#include "weights/io/input_file.h"
#include "weights/io/text_file.h"

namespace minimind {
namespace {

// Our own. chat_template_test.cpp compares its output with the templates of MiniMind's tokenizers.
constexpr std::string_view first_template = R"({%- if messages[0].role == 'system' %}
  {{- messages[0].content }}
{%- endif %}
{%- for turn in messages %}
  {%- if turn.role == 'user' %}
    {{- '<s>user\n' + turn.content + '</s>\n<s>assistant\n' }}
  {%- elif turn.role == 'assistant' %}
    {{- turn.content + '</s>\n' }}
  {%- endif %}
{%- endfor %})";

// For the families from v2 on, after a line that sets `thinks` and `default_system`.
constexpr std::string_view later_template = R"(
{%- macro turn_of(role, text) %}{{ '<|im_start|>' + role + '\n' + text + '<|im_end|>\n' }}{% endmacro %}
{%- set given_system = messages[0].content if messages[0].role == 'system' else none %}
{%- if tools %}
  {%- set signatures %}
    {%- for tool in tools %}{{ '\n' + tool | tojson }}{% endfor %}
  {%- endset %}
  {{- turn_of('system', (given_system + '\n\n' if given_system is not none else '') +
      '# Tools\n\nYou may call one or more functions to assist with the user query.\n\n' +
      'You are provided with function signatures within <tools></tools> XML tags:\n<tools>' + signatures +
      '\n</tools>\n\nFor each function call, return a json object with function name and arguments within ' +
      '<tool_call></tool_call> XML tags:\n<tool_call>\n' +
      '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>') }}
{%- elif given_system is not none or default_system is not none %}
  {{- turn_of('system', default_system if given_system is none else given_system) }}
{%- endif %}
{%- for turn in messages %}
  {%- set text = turn.content if turn.content is string else '' %}
  {%- if turn.role == 'user' or (turn.role == 'system' and not loop.first) %}
    {{- turn_of(turn.role, text) }}
  {%- elif turn.role == 'assistant' %}
    {{- '<|im_start|>assistant\n' }}
    {%- set answer = text %}
    {%- if thinks %}
      {%- set thought = '' %}
      {%- if turn.reasoning_content is string %}
        {%- set thought = turn.reasoning_content %}
      {%- elif '</think>' in text %}
        {%- set thought = text.split('</think>')[0].split('<think>')[-1] %}
        {%- set answer = text.split('</think>')[-1].lstrip('\n') %}
      {%- endif %}
      {{- '<think>\n' + thought.strip('\n') + '\n</think>\n\n' + answer.lstrip('\n') }}
    {%- else %}
      {{- answer }}
    {%- endif %}
    {%- for given in turn.tool_calls or [] %}
      {%- set called = given.function or given %}
      {{- '\n' if answer or not loop.first else '' }}
      {{- '<tool_call>\n{"name": "' ~ called.name ~ '", "arguments": ' }}
      {{- called.arguments if called.arguments is string else called.arguments | tojson }}
      {{- '}\n</tool_call>' }}
    {%- endfor %}
    {{- '<|im_end|>\n' }}
  {%- elif turn.role == 'tool' %}
    {%- if loop.first or loop.previtem.role != 'tool' %}{{ '<|im_start|>user' }}{% endif %}
    {{- '\n<tool_response>\n' + text + '\n</tool_response>' }}
    {%- if loop.last or loop.nextitem.role != 'tool' %}{{ '<|im_end|>\n' }}{% endif %}
  {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
  {{- '<|im_start|>assistant\n' }}
  {%- if not thinks %}
    {{- '<think>\n\n</think>\n\n' if enable_thinking is false else '' }}
  {%- else %}
    {{- '<think>\n' if open_thinking is true else '<think>\n\n</think>\n\n' }}
  {%- endif %}
{%- endif %})";

bool is_list_of_objects(const ChatJson& value) {
  return value.is_array() &&
         std::all_of(value.begin(), value.end(), [](const ChatJson& item) { return item.is_object(); });
}

}  // namespace

ChatInput parse_chat_input(std::string_view json, const std::string& source) {
  const ChatJson object = parse_chat_json(json, source);
  if (!object.is_object())
    throw Error(fmt::format("{}: is {}, expected a JSON object with \"messages\"", source, kind_of(object)));
  const auto require = [&](bool fits, std::string_view key, std::string_view wanted, const ChatJson& found) {
    if (!fits) throw Error(fmt::format("{}: \"{}\" is {}, expected {}", source, key, kind_of(found), wanted));
  };
  ChatInput input;
  for (const auto& [name, field] : object.items()) {
    if (name == "messages") {
      require(is_list_of_objects(field), name, "a list of objects", field);
      input.messages = template_value(field);
    } else if (name == "conversations" && !object.contains("messages")) {
      const TrainingConversation conversation = read_training_conversation(field, source + ": conversations");
      input.messages = template_value(conversation.messages);
      if (!conversation.tools.is_null()) input.tools = template_value(conversation.tools);
    } else if (name == "tools") {
      require(field.is_null() || is_list_of_objects(field), name, "a list of objects, or null", field);
      if (!field.is_null()) input.tools = template_value(field);
    } else if (name == "add_generation_prompt") {
      require(field.is_boolean(), name, "true or false", field);
      input.add_generation_prompt = field.get<bool>();
    } else {
      input.variables.emplace_back(name, template_value(field));
    }
  }
  if (input.messages.is_missing()) throw Error(fmt::format("{}: has no \"messages\"", source));
  return input;
}

SpecialTokens special_tokens_of(const TokenizerData& tokenizer) {
  SpecialTokens tokens;
  const std::array<std::pair<const char*, const std::optional<std::string>*>, 4> named = {
      {{"bos_token", &tokenizer.bos_token},
       {"eos_token", &tokenizer.eos_token},
       {"unk_token", &tokenizer.config_unk_token},
       {"pad_token", &tokenizer.pad_token}}};
  for (const auto& [name, token] : named) {
    if (*token) tokens.emplace_back(name, **token);
  }
  return tokens;
}

ChatTemplate::ChatTemplate(std::string_view source, std::string name, SpecialTokens special_tokens)
    : template_(source, std::move(name)), special_tokens_(std::move(special_tokens)) {}

std::optional<ChatTemplate> ChatTemplate::of_tokenizer(const TokenizerData& tokenizer) {
  if (!tokenizer.chat_template) return std::nullopt;
  const std::string& name = tokenizer.chat_template_source;
  ChatTemplate result(*tokenizer.chat_template, name, special_tokens_of(tokenizer));
  if (tokenizer.tool_use_template) {
    result.tool_use_template_.emplace(*tokenizer.tool_use_template, name + " named tool_use");
  }
  return result;
}

std::string family_template(Family family) {
  switch (family) {
    case Family::v1:
    case Family::v2_early:
      return std::string(first_template);
    case Family::v2:
    case Family::llama:
      return "{%- set thinks, default_system = false, 'You are a helpful assistant' %}" + std::string(later_template);
    case Family::v3:
    case Family::qwen3:
    case Family::qwen3_moe:
      break;
  }
  return "{%- set thinks, default_system = true, none %}" + std::string(later_template);
}

ChatTemplate ChatTemplate::of_family(Family family, SpecialTokens special_tokens) {
  return ChatTemplate(family_template(family), fmt::format("the chat template of family {}", name_of(family)),
                      std::move(special_tokens));
}

MarkedText ChatTemplate::render(const ChatInput& input, std::time_t now) const {
  jinja::Dict variables;
  for (const auto& [name, token] : special_tokens_) variables.set(name, token);
  variables.set("documents", jinja::None{});
  for (const auto& [name, value] : input.variables) variables.set(name, value);
  variables.set("messages", input.messages);
  variables.set("tools", input.tools);
  variables.set("add_generation_prompt", input.add_generation_prompt);
  const bool uses_tools = tool_use_template_ && !input.tools.is_none();
  return (uses_tools ? *tool_use_template_ : template_).render_marked(variables, now);
}

std::optional<FoundTemplate> find_template(const std::string& given, const TokenizerData* tokenizer) {
  if (!given.empty()) {
    SpecialTokens special = tokenizer ? special_tokens_of(*tokenizer) : SpecialTokens();
    const std::string source = read_text_or_pipe(given);
    check_not_mistaken(source, source.size(), given);
    return FoundTemplate{ChatTemplate(source, given, std::move(special)), given};
  }
  auto own = tokenizer ? ChatTemplate::of_tokenizer(*tokenizer) : std::nullopt;
  if (!own) return std::nullopt;
  return FoundTemplate{std::move(*own), tokenizer->chat_template_source};
}

FoundTemplate template_or_family(const std::string& given, const TokenizerData& tokenizer, Family family) {
  if (auto found = find_template(given, &tokenizer)) return std::move(*found);
  return {ChatTemplate::of_family(family, special_tokens_of(tokenizer)), ""};
}

}  // namespace minimind
