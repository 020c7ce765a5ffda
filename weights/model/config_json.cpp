#include "weights/model/config_json.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>
#include <set>
#include <utility>

#include "weights/io/error.h"
#include "weights/io/json_depth.h"
#include "weights/io/mistaken_file.h"
#include "weights/io/quote.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

// Wide enough for any model, small enough that products of a few sizes cannot overflow 64 bits.
constexpr std::size_t largest_size = std::size_t{1} << 24;

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  return text;
}

// Looks fields up, remembers which were looked at, and complains with the file and the key.
class Fields {
 public:
  Fields(const Json& object, std::string source) : object_(object), source_(std::move(source)) {}

  // The first of `keys` that is there and not null.
  const Json* find(std::initializer_list<const char*> keys) {
    const Json* found = nullptr;
    for (const char* key : keys) {
      used_.insert(key);
      const auto entry = object_.find(key);
      if (entry == object_.end() || entry->is_null()) continue;
      if (found && *found != *entry) fail(key, *entry, fmt::format("the same as {} = {}", key_, shown(*found)));
      if (!found) key_ = key;
      found = &*entry;
    }
    return found;
  }

  bool is_null(const char* key) const {
    const auto entry = object_.find(key);
    return entry != object_.end() && entry->is_null();
  }

  std::optional<std::size_t> size(std::initializer_list<const char*> keys) {
    const Json* value = find(keys);
    if (!value) return std::nullopt;
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() > largest_size) {
      fail(key_, *value, fmt::format("a whole number from 0 to {}", largest_size));
    }
    return value->get<std::size_t>();
  }

  std::optional<double> positive(std::initializer_list<const char*> keys) {
    const Json* value = find(keys);
    if (!value) return std::nullopt;
    if (!value->is_number() || !(value->get<double>() > 0) || !(value->get<double>() < 1e30)) {
      fail(key_, *value, "a positive number");
    }
    return value->get<double>();
  }

  std::optional<bool> boolean(std::initializer_list<const char*> keys) {
    const Json* value = find(keys);
    if (!value) return std::nullopt;
    if (!value->is_boolean()) fail(key_, *value, "true or false");
    return value->get<bool>();
  }

  std::optional<std::string> string(std::initializer_list<const char*> keys) {
    const Json* value = find(keys);
    if (!value) return std::nullopt;
    if (!value->is_string()) fail(key_, *value, "a string");
    return value->get<std::string>();
  }

  [[noreturn]] void fail(const std::string& key, const Json& found, const std::string& wanted) const {
    throw Error(fmt::format("{}: {} is {}, expected {}", source_, key, shown(found), wanted));
  }

  std::vector<std::string> unused() const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : object_.items()) {
      if (!used_.contains(key)) keys.push_back(key);
    }
    return keys;
  }

  const std::string& source() const { return source_; }
  const std::string& key() const { return key_; }

 private:
  const Json& object_;
  std::string source_;
  std::string key_;
  std::set<std::string> used_;
};

// transformers lets attention_factor default to 0.1 ln(factor) + 1; MiniMind always writes 1.
RopeScaling parse_yarn(Fields& fields, bool minimind, std::optional<std::size_t> max_position_embeddings) {
  RopeScaling scaling;
  scaling.kind = RopeScaling::Kind::yarn;
  scaling.ramp_end = minimind ? RopeScaling::RampEnd::half_head_dim : RopeScaling::RampEnd::head_dim;
  const auto factor = fields.positive({"factor"});
  if (!factor && !minimind) throw Error(fmt::format("{}: rope scaling yarn without a factor", fields.source()));
  scaling.factor = factor.value_or(scaling.factor);
  const double fallback =
      minimind ? scaling.original_max_position_embeddings : static_cast<double>(max_position_embeddings.value_or(0));
  scaling.original_max_position_embeddings = fields.positive({"original_max_position_embeddings"}).value_or(fallback);
  scaling.beta_fast = fields.positive({"beta_fast"}).value_or(32);
  scaling.beta_slow = fields.positive({"beta_slow"}).value_or(1);
  const double default_attention = minimind || scaling.factor <= 1 ? 1.0 : 0.1 * std::log(scaling.factor) + 1.0;
  scaling.attention_factor = fields.positive({"attention_factor"}).value_or(default_attention);
  if (!fields.boolean({"truncate"}).value_or(true)) fields.fail("truncate", Json(false), "true");
  for (const char* key : {"mscale", "mscale_all_dim"}) {
    if (const Json* value = fields.find({key})) fields.fail(key, *value, "rope scaling without this setting");
  }
  return scaling;
}

std::optional<RopeScaling> parse_rope_scaling(Fields& fields, bool minimind,
                                              std::optional<std::size_t> max_position_embeddings) {
  const std::string kind = fields.string({"rope_type", "type"}).value_or("default");
  if (kind == "default") return std::nullopt;
  if (kind == "yarn") return parse_yarn(fields, minimind, max_position_embeddings);
  if (kind == "linear") {
    RopeScaling scaling;
    scaling.kind = RopeScaling::Kind::linear;
    const auto factor = fields.positive({"factor"});
    if (!factor) throw Error(fmt::format("{}: rope scaling linear without a factor", fields.source()));
    scaling.factor = *factor;
    return scaling;
  }
  throw Error(
      fmt::format("{}: rope scaling {} is not supported; default, linear and yarn are", fields.source(), quote(kind)));
}

// A negative id is how some say that there is none.
std::vector<std::int32_t> parse_token_ids(Fields& fields, const char* key) {
  const Json* value = fields.find({key});
  if (!value) return {};
  std::vector<std::int32_t> ids;
  for (const Json& id : value->is_array() ? *value : Json::array({*value})) {
    if (id.is_number_integer() && id < 0) continue;
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > largest_size) fields.fail(key, *value, "token ids");
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

// LMConfig writes n_shared_experts as true or false.
std::optional<std::size_t> parse_shared_experts(Fields& fields) {
  const Json* value = fields.find({"n_shared_experts"});
  if (value && value->is_boolean()) return value->get<bool>() ? 1 : 0;
  return fields.size({"n_shared_experts"});
}

// MiniMind wrote a first YaRN in late 2025, without attention_factor, whose frequencies follow another formula. Each
// YaRN that its later code writes has one.
void refuse_first_yarn(const Fields& fields, const Json& rope) {
  const bool yarn = rope.value("type", Json()) == "yarn" || rope.value("rope_type", Json()) == "yarn";
  if (!yarn || !rope.contains("beta_fast") || rope.contains("attention_factor")) return;
  throw Error(fmt::format(
      "{}: rope_scaling is MiniMind's first YaRN, without attention_factor, whose formula is not supported; "
      "set inference_rope_scaling to false to run the model without YaRN",
      fields.source()));
}

void refuse_partial_rotary(Fields& fields) {
  const auto factor = fields.positive({"partial_rotary_factor"});
  if (factor && *factor != 1.0) fields.fail("partial_rotary_factor", Json(*factor), "1: RoPE over the whole head");
}

void refuse_unsupported(Fields& fields, bool minimind) {
  if (fields.boolean({"use_sliding_window"}).value_or(false)) {
    throw Error(
        fmt::format("{}: use_sliding_window is true; sliding-window attention is not supported", fields.source()));
  }
  const auto bias = fields.boolean({"attention_bias"});
  if (bias.value_or(false) && !minimind)
    fields.fail("attention_bias", Json(true), "false: biases on q, k, v and o are not supported");
  refuse_partial_rotary(fields);
  const auto scoring = fields.string({"scoring_func"});
  if (scoring && *scoring != "softmax") fields.fail("scoring_func", Json(*scoring), "\"softmax\"");
}

void read_rope(Fields& fields, bool minimind, StatedConfig& stated) {
  stated.rope_theta = fields.positive({"rope_theta"});
  const Json* rope = fields.find({"rope_scaling", "rope_parameters"});
  if (!rope) return;
  if (!rope->is_object()) fields.fail(fields.key(), *rope, "an object");
  Fields nested(*rope, fmt::format("{}: {}", fields.source(), fields.key()));
  const auto theta = nested.positive({"rope_theta"});
  if (theta && stated.rope_theta && *theta != *stated.rope_theta) {
    nested.fail("rope_theta", Json(*theta), fmt::format("the rope_theta beside it, {}", *stated.rope_theta));
  }
  if (theta) stated.rope_theta = theta;
  if (minimind && stated.inference_rope_scaling.value_or(false)) refuse_first_yarn(fields, *rope);
  stated.rope_scaling = parse_rope_scaling(nested, minimind, stated.max_position_embeddings);
  refuse_partial_rotary(nested);
  for (const std::string& key : nested.unused()) stated.unused.push_back(fields.key() + "." + key);
}

}  // namespace

StatedConfig parse_config_json(const std::string& text, const std::string& source) {
  check_not_mistaken(text, source);
  const Json object = Json::parse(text, limited_depth(source), false);
  if (object.is_discarded() || !object.is_object()) {
    throw Error(fmt::format("{}: is not a JSON object, expected a model's config.json", source));
  }
  Fields fields(object, source);
  StatedConfig stated;
  stated.source = source;
  stated.model_type = fields.string({"model_type"});
  const bool minimind = !stated.model_type || *stated.model_type == "minimind";
  stated.vocab_size = fields.size({"vocab_size"});
  stated.hidden_size = fields.size({"hidden_size", "dim"});
  stated.num_hidden_layers = fields.size({"num_hidden_layers", "n_layers"});
  stated.num_attention_heads = fields.size({"num_attention_heads", "n_heads"});
  stated.num_key_value_heads = fields.size({"num_key_value_heads", "n_kv_heads"});
  stated.head_dim = fields.size({"head_dim"});
  stated.intermediate_size = fields.size({"intermediate_size", "hidden_dim"});
  stated.intermediate_size_is_null =
      !stated.intermediate_size && (fields.is_null("intermediate_size") || fields.is_null("hidden_dim"));
  stated.multiple_of = fields.size({"multiple_of"}).value_or(64);
  if (stated.multiple_of == 0) fields.fail("multiple_of", Json(0), "at least 1");
  stated.ffn_dim_multiplier = fields.positive({"ffn_dim_multiplier"});
  if (stated.ffn_dim_multiplier.value_or(1) > 1000) {
    fields.fail("ffn_dim_multiplier", Json(*stated.ffn_dim_multiplier), "at most 1000");
  }
  stated.moe_intermediate_size = fields.size({"moe_intermediate_size"});
  stated.max_position_embeddings = fields.size({"max_position_embeddings"});
  stated.max_seq_len = fields.size({"max_seq_len"});
  stated.num_experts = fields.size({"num_experts", "n_routed_experts"});
  stated.num_experts_per_tok = fields.size({"num_experts_per_tok"});
  stated.n_shared_experts = parse_shared_experts(fields);
  stated.rms_norm_eps = fields.positive({"rms_norm_eps", "norm_eps"});
  stated.tie_word_embeddings = fields.boolean({"tie_word_embeddings"});
  stated.norm_topk_prob = fields.boolean({"norm_topk_prob"});
  stated.use_moe = fields.boolean({"use_moe"});
  stated.inference_rope_scaling = fields.boolean({"inference_rope_scaling"});
  if (const auto act = fields.string({"hidden_act"})) stated.hidden_act = parse_hidden_act(*act, source);
  stated.eos_token_id = parse_token_ids(fields, "eos_token_id");
  read_rope(fields, minimind, stated);
  refuse_unsupported(fields, minimind);
  const std::vector<std::string> unused = fields.unused();
  stated.settings = object.size() - unused.size();
  stated.unused.insert(stated.unused.end(), unused.begin(), unused.end());
  return stated;
}

std::size_t default_intermediate_size(std::size_t hidden_size, std::size_t multiple_of,
                                      std::optional<double> ffn_dim_multiplier) {
  std::size_t size = 2 * (4 * hidden_size) / 3;
  if (ffn_dim_multiplier) size = static_cast<std::size_t>(*ffn_dim_multiplier * static_cast<double>(size));
  return (size + multiple_of - 1) / multiple_of * multiple_of;
}

std::size_t default_intermediate_size_v3(std::size_t hidden_size) {
  return static_cast<std::size_t>(std::ceil(static_cast<double>(hidden_size) * std::numbers::pi / 64.0)) * 64;
}

HiddenAct parse_hidden_act(const std::string& name, const std::string& source) {
  static constexpr std::array<std::pair<std::string_view, HiddenAct>, 14> names{{
      {"silu", HiddenAct::silu},
      {"swish", HiddenAct::silu},
      {"swiglu", HiddenAct::silu},
      {"sigmoid", HiddenAct::sigmoid},
      {"glu", HiddenAct::sigmoid},
      {"relu", HiddenAct::relu},
      {"reglu", HiddenAct::relu},
      {"gelu", HiddenAct::gelu},
      {"geglu", HiddenAct::gelu},
      {"gelu_pytorch_tanh", HiddenAct::gelu_tanh},
      {"gelu_new", HiddenAct::gelu_tanh},
      {"gelu_tanh", HiddenAct::gelu_tanh},
      {"linear", HiddenAct::linear},
      {"bilinear", HiddenAct::linear},
  }};
  std::string known;
  for (const auto& [spelling, act] : names) {
    if (name == spelling) return act;
    known += (known.empty() ? "" : ", ") + std::string(spelling);
  }
  throw Error(fmt::format("{}: hidden_act is {}, expected one of {}", source, quote(name), known));
}

}  // namespace minimind
