#include "tools/serve/ollama_models.h"

#include <fmt/core.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/openai/body_fields.h"
#include "tools/openai/request_error.h"
#include "weights/io/sha256.h"

namespace minimind {
namespace {

using WallClock = std::chrono::system_clock;

constexpr std::string_view family_name = "minimind";
constexpr std::chrono::hours for_ever{100 * 365 * 24};

WallClock::time_point written_at(const ModelShelf::Listed& model, std::time_t started) {
  return WallClock::from_time_t(model.created > 0 ? static_cast<std::time_t>(model.created) : started);
}

// Returns "63.9M" or "1.2B".
std::string count_text(std::size_t count) {
  const double millions = 1e-6 * static_cast<double>(count);
  return millions < 1000 ? fmt::format("{:.1f}M", millions) : fmt::format("{:.1f}B", 1e-3 * millions);
}

std::string upper_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// Clients require every field as a string, also of a model that is not loaded, whose facts are not known.
ChatJson details_of(const CheckpointFacts& facts) {
  return {{"parent_model", ""},
          {"format", facts.format},
          {"family", family_name},
          {"families", ChatJson::array({family_name})},
          {"parameter_size", facts.parameters > 0 ? count_text(facts.parameters) : ""},
          {"quantization_level", upper_case(facts.type)}};
}

// Ollama's own client prints the start of the digest, which here tells models and their versions apart.
ChatJson listed_model(const ModelShelf::Listed& model) {
  return {{"name", model.name},
          {"model", model.name},
          {"size", model.bytes},
          {"digest", sha256_of(fmt::format("{} {}", model.name, model.created))},
          {"details", details_of(model.facts)}};
}

// A line for each parameter, by Ollama's names.
std::string parameter_lines(const RequestDefaults& defaults) {
  std::string lines;
  for (const GenerationParameter& parameter : generation_parameters) {
    if (!parameter.is_number()) continue;
    if (!lines.empty()) lines += '\n';
    lines += fmt::format("{} {}", names_of(parameter, Dialect::ollama).front(), parameter.of(defaults.parameters));
  }
  return lines;
}

// A prompt with Ollama's words in place of the contents; empty if the chat template takes no such messages.
std::string template_text(const TextModel& model) {
  Request request;
  request.chat = true;
  request.messages = {{.role = Role::system, .content = "{{ .System }}"},
                      {.role = Role::user, .content = "{{ .Prompt }}"}};
  try {
    return model.chat_prompt(request, std::time(nullptr)).bytes;
  } catch (const Error&) {
    return "";
  }
}

ChatJson capabilities_of(const TextModel& model) {
  ChatJson list = ChatJson::array({"completion"});
  if (model.minds_tools()) list.push_back("tools");
  if (model.minds_thinking()) list.push_back("thinking");
  return list;
}

ChatJson model_info(const TextModel& model) {
  const Config& config = model.llm().config;
  ChatJson info{{"general.architecture", family_name}, {"general.parameter_count", model.facts().parameters}};
  const auto add = [&](std::string_view name, std::size_t value) {
    if (value > 0) info[fmt::format("{}.{}", family_name, name)] = value;
  };
  add("context_length", model.llm().positions);
  add("embedding_length", config.hidden_size);
  add("block_count", config.num_hidden_layers);
  add("feed_forward_length", config.intermediate_size);
  add("attention.head_count", config.num_attention_heads);
  add("attention.head_count_kv", config.num_key_value_heads);
  add("vocab_size", config.vocab_size);
  add("expert_count", config.num_experts);
  add("expert_used_count", config.num_experts > 0 ? config.num_experts_per_tok : 0);
  return info;
}

}  // namespace

std::string ollama_model_name(const ChatJson& body) {
  std::string name = text_or_empty(body, "model");
  if (name.empty()) name = text_or_empty(body, "name");
  return std::string(without_tag(name));
}

void fail_without_model() {
  BodyFields::fail_missing("model", "a name that /api/tags lists");
}

std::string ollama_time(WallClock::time_point time) {
  const std::time_t seconds = WallClock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  const auto fraction =
      std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count() % 1000000;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, fraction);
}

ChatJson ollama_tags(const std::vector<ModelShelf::Listed>& models, std::time_t started) {
  ChatJson list = ChatJson::array();
  for (const ModelShelf::Listed& model : models) {
    list.push_back(listed_model(model));
    list.back()["modified_at"] = ollama_time(written_at(model, started));
  }
  return {{"models", std::move(list)}};
}

// A model stays until another needs its memory.
ChatJson ollama_running(const std::vector<ModelShelf::Listed>& models, std::time_t started) {
  ChatJson list = ChatJson::array();
  for (const ModelShelf::Listed& model : models) {
    if (model.context == 0) continue;
    list.push_back(listed_model(model));
    list.back()["expires_at"] = ollama_time(WallClock::from_time_t(started) + for_ever);
    list.back()["size_vram"] = 0;
    list.back()["context_length"] = model.context;
  }
  return {{"models", std::move(list)}};
}

ChatJson ollama_show(const ChatJson& body, const TextModel& model, const RequestDefaults& defaults,
                     std::time_t modified) {
  BodyFields fields(body);
  for (const char* const name : {"model", "name"}) fields.text(name);
  fields.flag("verbose");
  for (const char* const name : {"system", "template"}) fields.require(name, "");  // of Ollama's own client, empty
  fields.require("options", ChatJson::object());
  fields.reject_the_rest();
  if (ollama_model_name(body).empty()) fail_without_model();
  return {{"modelfile", "FROM " + model.names().front()},
          {"parameters", parameter_lines(defaults)},
          {"template", template_text(model)},
          {"details", details_of(model.facts())},
          {"model_info", model_info(model)},
          {"capabilities", capabilities_of(model)},
          {"modified_at", ollama_time(WallClock::from_time_t(modified))}};
}

}  // namespace minimind
