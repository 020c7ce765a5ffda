#include "tools/options/setting_options.h"

#include <fmt/core.h>

namespace minimind {
namespace {

std::string_view options_of(Setting setting) {
  switch (setting) {
    case Setting::none:
      return "";
    case Setting::model:
      return "--model";
    case Setting::identity:
      return "--model, --lora, --type, --rope-scaling and --compute";
    case Setting::lora:
      return "--lora";
    case Setting::config:
      return "--config";
    case Setting::heads:
      return "--heads and --kv-heads, or --config";
    case Setting::experts:
      return "--experts-per-token";
    case Setting::rope_scaling:
      return "--rope-scaling";
    case Setting::arithmetic:
      return "--type bf16 or --compute f32";
    case Setting::compute:
      return "--compute";
    case Setting::context:
      return "--ctx-size";
    case Setting::kv_type:
      return "--kv-type";
    case Setting::tokenizer:
      return "--tokenizer";
  }
  return "";
}

std::string_view option_of_field(std::string_view field) {
  if (field == "num_attention_heads") return "--heads";
  if (field == "num_key_value_heads") return "--kv-heads";
  if (field == "num_experts_per_tok") return "--experts-per-token";
  return "--rope-scaling";
}

}  // namespace

std::string message_of(const Error& error) {
  const std::string_view options = options_of(error.setting());
  return options.empty() ? error.what() : fmt::format("{} ({})", error.what(), options);
}

Fact source_of(std::string_view field, const ConfigSource& source) {
  switch (source.kind) {
    case ConfigSource::Kind::caller:
      return Fact("{}", option_of_field(field));
    case ConfigSource::Kind::assumed:
      return Fact("assumed: {}", source.detail);
    default:
      return source.detail;
  }
}

}  // namespace minimind
