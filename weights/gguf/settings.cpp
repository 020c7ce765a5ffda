#include "weights/gguf/settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <set>
#include <utility>

#include "weights/base/error.h"
#include "weights/base/quote.h"
#include "weights/gguf/metadata.h"

namespace minimind {
namespace {

// As for config.json: enough for any model, and products of a few sizes cannot overflow 64 bits.
constexpr std::uint64_t largest_size = std::uint64_t{1} << 24;

// Looks up values under "<architecture>.", remembers the keys looked up, and reports errors with the file and the key.
class Settings {
 public:
  Settings(const GgufMetadata& metadata, std::string source) : metadata_(metadata), source_(std::move(source)) {
    architecture_ = text("general.architecture").value_or("");
  }

  const std::string& architecture() const { return architecture_; }
  const std::string& source() const { return source_; }

  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }

  const GgufValue* find(const std::string& full_key) {
    used_.insert(full_key);
    return metadata_.find(full_key);
  }

  // A value per layer is accepted if all values are equal.
  std::optional<std::size_t> size(std::string_view name) {
    const GgufValue* value = find(key(name));
    if (!value) return std::nullopt;
    constexpr const char* wanted = "a whole number from 0 to 16777216, the same for all layers";
    std::optional<std::uint64_t> found;
    for (const std::uint64_t number : whole_numbers(*value, key(name), wanted)) {
      if (number > largest_size || (found && *found != number)) fail(key(name), *value, wanted);
      found = number;
    }
    if (!found) fail(key(name), *value, wanted);
    return static_cast<std::size_t>(*found);
  }

  std::optional<double> positive(std::string_view name) {
    const GgufValue* value = find(key(name));
    if (!value) return std::nullopt;
    const double* stored = std::get_if<double>(&value->data);
    if (!stored || !(*stored > 0) || !(*stored < 1e30)) fail(key(name), *value, "a positive number");
    return as_meant(*stored, value->type);
  }

  // Requires a setting that is supported only with one of these values.
  void reject_unless(std::string_view name, std::initializer_list<double> neutral) {
    const GgufValue* value = find(key(name));
    if (!value) return;
    const auto* real = std::get_if<double>(&value->data);
    const auto* whole = std::get_if<std::uint64_t>(&value->data);
    for (const double number : neutral) {
      if ((real && *real == number) || (whole && static_cast<double>(*whole) == number)) return;
    }
    fail(key(name), *value, fmt::format("{:g} or nothing: it is not supported", *neutral.begin()));
  }

  std::optional<bool> boolean(std::string_view name) { return boolean_of(key(name)); }

  std::optional<bool> boolean_of(const std::string& full_key) {
    const GgufValue* value = find(full_key);
    if (!value) return std::nullopt;
    const bool* stored = std::get_if<bool>(&value->data);
    if (!stored) fail(full_key, *value, "true or false");
    return *stored;
  }

  std::optional<std::string> text(const std::string& full_key) {
    const GgufValue* value = find(full_key);
    if (!value) return std::nullopt;
    const std::string* stored = std::get_if<std::string>(&value->data);
    if (!stored) fail(full_key, *value, "a string");
    return *stored;
  }

  std::vector<std::int32_t> token_ids(const std::string& full_key) {
    const GgufValue* value = find(full_key);
    if (!value) return {};
    std::vector<std::int32_t> ids;
    for (const std::uint64_t id : whole_numbers(*value, full_key, "token ids")) {
      if (id > largest_size) fail(full_key, *value, "token ids");
      ids.push_back(static_cast<std::int32_t>(id));
    }
    return ids;
  }

  // Returns the architecture's settings that were not read.
  std::vector<std::string> unused() const {
    std::vector<std::string> keys;
    for (const auto& [name, value] : metadata_.entries()) {
      const bool elsewhere = name == gguf_vector_type || name.starts_with("minimind.tokenizer.");
      if (name.starts_with(architecture_ + ".") && !elsewhere && !used_.contains(name)) keys.push_back(name);
    }
    return keys;
  }

  [[noreturn]] void fail(const std::string& full_key, const GgufValue& found, std::string_view wanted) const {
    throw Error(fmt::format("{}: {} is {}, expected {}", source_, full_key, shown(found), wanted));
  }

 private:
  std::vector<std::uint64_t> whole_numbers(const GgufValue& value, const std::string& full_key,
                                           const char* wanted) const {
    if (const auto* number = std::get_if<std::uint64_t>(&value.data)) return {*number};
    if (const auto* numbers = std::get_if<GgufNumbers<std::uint64_t>>(&value.data)) return numbers->widened();
    std::vector<std::int64_t> signed_numbers;
    if (const auto* number = std::get_if<std::int64_t>(&value.data)) {
      signed_numbers = {*number};
    } else if (const auto* numbers = std::get_if<GgufNumbers<std::int64_t>>(&value.data)) {
      signed_numbers = numbers->widened();
    } else {
      fail(full_key, value, wanted);
    }
    if (std::any_of(signed_numbers.begin(), signed_numbers.end(), [](std::int64_t n) { return n < 0; })) {
      fail(full_key, value, wanted);
    }
    return {signed_numbers.begin(), signed_numbers.end()};
  }

  const GgufMetadata& metadata_;
  std::string source_;
  std::string architecture_;
  std::set<std::string> used_;
};

void check_architecture(const Settings& settings) {
  constexpr std::array known{gguf_llama, gguf_qwen3, gguf_qwen3moe, gguf_bailingmoe, gguf_minimind};
  if (std::find(known.begin(), known.end(), settings.architecture()) != known.end()) return;
  throw Error(
      fmt::format("{}: general.architecture is {}; llama, qwen3 and qwen3moe can be run, and what minimind wrote",
                  settings.source(), quote(settings.architecture())));
}

// qwen3 and qwen3moe have q_norm, llama and bailingmoe do not; our own architecture is of any family.
bool fits(Family family, std::string_view architecture) {
  if (architecture == gguf_minimind) return true;
  return has_q_norm(family) == (architecture == gguf_qwen3 || architecture == gguf_qwen3moe);
}

Family family_of(Settings& settings) {
  const std::string key(gguf_family);
  if (const auto stated = settings.text(key)) {
    for (const Family family :
         {Family::v1, Family::v2_early, Family::v2, Family::v3, Family::llama, Family::qwen3, Family::qwen3_moe}) {
      if (*stated == name_of(family) && fits(family, settings.architecture())) return family;
    }
    settings.fail(key, *settings.find(key), "a family that the architecture can be");
  }
  if (settings.architecture() == gguf_llama) return Family::llama;
  if (settings.architecture() == gguf_qwen3) return Family::qwen3;
  if (settings.architecture() == gguf_qwen3moe) return Family::qwen3_moe;
  throw Error(
      fmt::format("{}: general.architecture is {}, but there is no {}, so minimind did not write it; llama, "
                  "qwen3 and qwen3moe of other writers can be run",
                  settings.source(), settings.architecture(), key));
}

// Rejects llama.cpp's features beyond MiniMind's models if they are switched on.
void reject_unsupported(Settings& settings) {
  for (const char* name :
       {"attention.sliding_window", "leading_dense_block_count", "expert_group_count",
        "rope.scaling.yarn_log_multiplier", "rope.scaling.alpha", "attention.scale", "attention.clamp_kqv",
        "attention.max_alibi_bias", "attn_logit_softcapping", "final_logit_softcapping"}) {
    settings.reject_unless(name, {0});
  }
  for (const char* name : {"expert_weights_scale", "logit_scale", "residual_scale", "embedding_scale"}) {
    settings.reject_unless(name, {0, 1});
  }
  constexpr double softmax = 1;
  settings.reject_unless("expert_gating_func", {softmax});
  if (!settings.boolean("attention.causal").value_or(true)) {
    settings.fail(settings.key("attention.causal"), *settings.find(settings.key("attention.causal")), "true");
  }
}

std::size_t required_size(Settings& settings, std::string_view name) {
  const auto value = settings.size(name);
  if (!value || *value == 0) {
    throw Error(fmt::format("{}: {} is {}", settings.source(), settings.key(name), value ? "0" : "missing"));
  }
  return *value;
}

void read_hyper_parameter(Settings& settings, const HyperParameter& parameter, StatedConfig& stated) {
  if (parameter.gguf_key.empty()) return;
  if (const auto* size = std::get_if<HyperParameter::Members<std::size_t>>(&parameter.members)) {
    stated.*size->stated = settings.size(parameter.gguf_key);
  } else {
    std::optional<double>& number = stated.*std::get<HyperParameter::Members<double>>(parameter.members).stated;
    number = settings.positive(parameter.gguf_key);
    if (!number && parameter.gguf_default > 0) number = parameter.gguf_default;
  }
}

// All except those of experts, with llama.cpp's values for missing keys.
void read_dense_parameters(Settings& settings, StatedConfig& stated) {
  for (const char* name : {"embedding_length", "block_count", "attention.head_count", "context_length"}) {
    required_size(settings, name);
  }
  for (const HyperParameter& parameter : hyper_parameters) {
    if (!parameter.of_experts) read_hyper_parameter(settings, parameter, stated);
  }
  if (!stated.num_key_value_heads) stated.num_key_value_heads = stated.num_attention_heads;
  if (!stated.head_dim) stated.head_dim = *stated.hidden_size / *stated.num_attention_heads;
  if (!stated.rms_norm_eps) {
    throw Error(fmt::format("{}: {} is missing, expected a positive number", settings.source(),
                            settings.key("attention.layer_norm_rms_epsilon")));
  }
  for (const char* name : {"attention.value_length", "rope.dimension_count"}) {
    if (settings.size(name).value_or(*stated.head_dim) == *stated.head_dim) continue;
    settings.fail(settings.key(name), *settings.find(settings.key(name)),
                  fmt::format("{}, the size of a head's keys", *stated.head_dim));
  }
}

RopeScaling::RampEnd ramp_end(Settings& settings) {
  const std::string key(gguf_ramp_end);
  const std::string end = settings.text(key).value_or(std::string(gguf_head_dim));
  if (end == gguf_half_head_dim) return RopeScaling::RampEnd::half_head_dim;
  if (end == gguf_head_dim) return RopeScaling::RampEnd::head_dim;
  settings.fail(key, *settings.find(key), fmt::format("{} or {}", gguf_half_head_dim, gguf_head_dim));
}

RopeScaling read_yarn(Settings& settings, double factor) {
  RopeScaling yarn;
  yarn.factor = factor;
  yarn.ramp_end = ramp_end(settings);
  yarn.original_max_position_embeddings =
      static_cast<double>(required_size(settings, "rope.scaling.original_context_length"));
  yarn.beta_fast = settings.positive("rope.scaling.yarn_beta_fast").value_or(32);
  yarn.beta_slow = settings.positive("rope.scaling.yarn_beta_slow").value_or(1);
  const float attn_factor = static_cast<float>(settings.positive("rope.scaling.attn_factor").value_or(1));
  const bool is_one = attn_factor == gguf_attention_factor(1, factor);
  yarn.attention_factor = is_one ? 1 : attn_factor * (1 + 0.1 * std::log(factor));
  return yarn;
}

// As in llama.cpp: a factor without a type means linear scaling, and one key is an old name.
void read_rope(Settings& settings, StatedConfig& stated) {
  const std::string type = settings.text(settings.key("rope.scaling.type")).value_or("linear");
  const auto old_factor = settings.positive("rope.scale_linear");
  const auto new_factor = settings.positive("rope.scaling.factor");
  const double factor = new_factor ? *new_factor : old_factor.value_or(1);
  if (type == "yarn") {
    stated.rope_scaling = read_yarn(settings, factor);
    return;
  }
  settings.reject_unless("rope.scaling.attn_factor", {1});
  if (type == "linear" && factor != 1) {
    stated.rope_scaling = RopeScaling{};
    stated.rope_scaling->kind = RopeScaling::Kind::linear;
    stated.rope_scaling->factor = factor;
  } else if (type != "none" && type != "linear") {
    settings.fail(settings.key("rope.scaling.type"), *settings.find(settings.key("rope.scaling.type")),
                  "none, linear or yarn");
  }
}

// Whether the weights of the chosen experts are divided by their sum. llama.cpp fixes this to true for llama (Mixtral)
// and qwen3moe, also with one expert. A file that states otherwise describes a computation that llama.cpp does not do.
bool divides_by_sum(Settings& settings) {
  const std::string& architecture = settings.architecture();
  const bool open = architecture == gguf_bailingmoe || architecture == gguf_minimind;
  const bool stated = settings.boolean("expert_weights_norm").value_or(!open);
  if (!stated && !open) {
    settings.fail(settings.key("expert_weights_norm"), *settings.find(settings.key("expert_weights_norm")),
                  fmt::format("true, as {} is computed", architecture));
  }
  return stated;
}

void read_experts(Settings& settings, StatedConfig& stated) {
  const std::string& architecture = settings.architecture();
  if (architecture != gguf_bailingmoe && architecture != gguf_minimind) {
    settings.reject_unless("expert_shared_count", {0});
  }
  if (settings.size("expert_count").value_or(0) == 0) return;
  required_size(settings, "expert_used_count");
  for (const HyperParameter& parameter : hyper_parameters) {
    if (parameter.of_experts) read_hyper_parameter(settings, parameter, stated);
  }
  if (!stated.n_shared_experts) stated.n_shared_experts = 0;
  const bool divided = divides_by_sum(settings);
  stated.norm_topk_prob = settings.boolean_of(std::string(gguf_norm_topk_prob)).value_or(divided);
  if (architecture == gguf_llama && *stated.num_experts_per_tok == 1) {
    throw Error(
        fmt::format("{}: {} is 1: an MoE model of the architecture llama with one expert per token is not supported",
                    settings.source(), settings.key("expert_used_count")));
  }
}

}  // namespace

StatedConfig gguf_settings(const GgufMetadata& metadata, const std::string& source) {
  Settings settings(metadata, source);
  check_architecture(settings);
  StatedConfig stated;
  stated.source = fmt::format("the metadata of {}", source);
  stated.family = family_of(settings);
  reject_unsupported(settings);
  read_dense_parameters(settings, stated);
  read_rope(settings, stated);
  read_experts(settings, stated);
  const auto act = settings.text(std::string(gguf_hidden_act));
  stated.hidden_act = act ? parse_hidden_act(*act, source) : HiddenAct::silu;
  stated.eos_token_id = settings.token_ids(std::string(gguf_eos_token_ids));
  if (stated.eos_token_id.empty()) stated.eos_token_id = settings.token_ids("tokenizer.ggml.eos_token_id");
  stated.unused = settings.unused();
  stated.settings = metadata.entries().size() - stated.unused.size();
  return stated;
}

float gguf_attention_factor(double attention_factor, double yarn_factor) {
  return static_cast<float>(attention_factor / (1 + 0.1 * std::log(yarn_factor)));
}

}  // namespace minimind
