#include "weights/gguf/settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {
namespace {

// As for config.json: enough for any model, and products of a few sizes cannot overflow 64 bits.
constexpr std::int64_t largest_size = std::int64_t{1} << 24;

// As for config.json: what is computed as f32 must not be 0 or infinite there.
constexpr double least_positive = std::numeric_limits<float>::min();

// The settings of a model, most of them under "<architecture>.".
class Settings : public GgufFields {
 public:
  Settings(const GgufMetadata& metadata, std::string source)
      : GgufFields(metadata, std::move(source)), architecture_(text("general.architecture").value_or("")) {}

  const std::string& architecture() const { return architecture_; }

  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }

  // A value per layer is accepted if all values are equal.
  std::optional<std::size_t> size(std::string_view name) const {
    if (!find(key(name))) return std::nullopt;
    constexpr const char* wanted = "a whole number from 0 to 16777216, the same for all layers";
    const std::vector<std::int64_t> numbers = whole_numbers(key(name), wanted, largest_tensor_count);
    const auto fits = [&](std::int64_t number) {
      return number == numbers.front() && number >= 0 && number <= largest_size;
    };
    if (numbers.empty() || !std::all_of(numbers.begin(), numbers.end(), fits)) fail(key(name), wanted);
    return static_cast<std::size_t>(numbers.front());
  }

  std::optional<double> positive(std::string_view name) const {
    const auto* const stored = get<double>(key(name), "a positive number");
    if (!stored) return std::nullopt;
    if (!(*stored >= least_positive) || !(*stored < 1e30)) {
      fail(key(name), "a positive number, at least 1.2e-38, the least of f32");
    }
    return as_meant(*stored, find(key(name))->type);
  }

  // Requires a setting that is supported only with one of these values.
  void reject_unless(std::string_view name, std::initializer_list<double> neutral) const {
    const GgufValue* value = find(key(name));
    if (!value) return;
    const auto* real = std::get_if<double>(&value->data);
    const auto* whole = std::get_if<std::uint64_t>(&value->data);
    for (const double number : neutral) {
      if ((real && *real == number) || (whole && static_cast<double>(*whole) == number)) return;
    }
    fail(key(name), fmt::format("{:g} or nothing: it is not supported", *neutral.begin()));
  }

  std::vector<std::int32_t> token_ids(const std::string& full_key) const {
    std::vector<std::int32_t> ids;
    for (const std::int64_t id : whole_numbers(full_key, "token ids", most_end_ids)) {
      if (id < 0 || id > largest_size) fail(full_key, "token ids");
      ids.push_back(static_cast<std::int32_t>(id));
    }
    return ids;
  }

  // Returns the architecture's settings that were not read.
  std::vector<std::string> unused_settings() const {
    std::vector<std::string> keys = unused();
    std::erase_if(keys, [&](const std::string& name) {
      const bool elsewhere = name == gguf_vector_type || name.starts_with("minimind.tokenizer.");
      return elsewhere || !name.starts_with(architecture_ + ".");
    });
    return keys;
  }

 private:
  std::string architecture_;
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

Family family_of(const Settings& settings) {
  const std::string key(gguf_family);
  if (const auto stated = settings.text(key)) {
    for (const Family family :
         {Family::v1, Family::v2_early, Family::v2, Family::v3, Family::llama, Family::qwen3, Family::qwen3_moe}) {
      if (*stated == name_of(family) && fits(family, settings.architecture())) return family;
    }
    settings.fail(key, "a family that the architecture can be");
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
void reject_unsupported(const Settings& settings) {
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
  if (!settings.flag(settings.key("attention.causal")).value_or(true)) {
    settings.fail(settings.key("attention.causal"), "true");
  }
}

std::size_t required_size(const Settings& settings, std::string_view name) {
  const auto value = settings.size(name);
  if (!value || *value == 0) {
    throw Error(fmt::format("{}: {} is {}", settings.source(), settings.key(name), value ? "0" : "missing"));
  }
  return *value;
}

void read_hyper_parameter(const Settings& settings, const HyperParameter& parameter, StatedConfig& stated) {
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
void read_dense_parameters(const Settings& settings, StatedConfig& stated) {
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
    settings.fail(settings.key(name), fmt::format("{}, the size of a head's keys", *stated.head_dim));
  }
}

RopeScaling::RampEnd ramp_end(const Settings& settings) {
  const std::string key(gguf_ramp_end);
  const std::string end = settings.text(key).value_or(std::string(gguf_head_dim));
  if (end == gguf_half_head_dim) return RopeScaling::RampEnd::half_head_dim;
  if (end == gguf_head_dim) return RopeScaling::RampEnd::head_dim;
  settings.fail(key, fmt::format("{} or {}", gguf_half_head_dim, gguf_head_dim));
}

RopeScaling read_yarn(const Settings& settings, double factor) {
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
void read_rope(const Settings& settings, StatedConfig& stated) {
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
    settings.fail(settings.key("rope.scaling.type"), "none, linear or yarn");
  }
}

// Whether the weights of the chosen experts are divided by their sum. llama.cpp fixes this to true for llama (Mixtral)
// and qwen3moe, also with one expert. A file that states otherwise describes a computation that llama.cpp does not do.
bool divides_by_sum(const Settings& settings) {
  const std::string& architecture = settings.architecture();
  const bool open = architecture == gguf_bailingmoe || architecture == gguf_minimind;
  const bool stated = settings.flag(settings.key("expert_weights_norm")).value_or(!open);
  if (!stated && !open) {
    settings.fail(settings.key("expert_weights_norm"), fmt::format("true, as {} is computed", architecture));
  }
  return stated;
}

void read_experts(const Settings& settings, StatedConfig& stated) {
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
  stated.norm_topk_prob = settings.flag(gguf_norm_topk_prob).value_or(divided);
  if (architecture == gguf_llama && *stated.num_experts_per_tok == 1) {
    throw Error(
        fmt::format("{}: {} is 1: an MoE model of the architecture llama with one expert per token is not supported",
                    settings.source(), settings.key("expert_used_count")));
  }
}

}  // namespace

StatedConfig gguf_settings(const GgufMetadata& metadata, const std::string& source) {
  const Settings settings(metadata, source);
  check_architecture(settings);
  StatedConfig stated;
  stated.source = fmt::format("the metadata of {}", source);
  stated.family = family_of(settings);
  reject_unsupported(settings);
  read_dense_parameters(settings, stated);
  read_rope(settings, stated);
  read_experts(settings, stated);
  const auto act = settings.text(gguf_hidden_act);
  stated.hidden_act = act ? parse_hidden_act(*act, source) : HiddenAct::silu;
  stated.eos_token_id = settings.token_ids(std::string(gguf_eos_token_ids));
  if (stated.eos_token_id.empty()) stated.eos_token_id = settings.token_ids("tokenizer.ggml.eos_token_id");
  stated.unused = settings.unused_settings();
  stated.settings = metadata.entries().size() - stated.unused.size();
  return stated;
}

float gguf_attention_factor(double attention_factor, double yarn_factor) {
  return static_cast<float>(attention_factor / (1 + 0.1 * std::log(yarn_factor)));
}

}  // namespace minimind
