#include "weights/model/config_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/input_file.h"
#include "weights/io/json_fields.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

// Enough for any model, and products of a few sizes cannot overflow 64 bits.
constexpr std::size_t largest_size = std::size_t{1} << 24;

// The default of attention_factor in transformers is 0.1 ln(factor) + 1; MiniMind always writes 1.
RopeScaling parse_yarn(const JsonFields& fields, bool minimind, std::optional<std::size_t> max_position_embeddings) {
  RopeScaling scaling;
  scaling.kind = RopeScaling::Kind::yarn;
  scaling.ramp_end = minimind ? RopeScaling::RampEnd::half_head_dim : RopeScaling::RampEnd::head_dim;
  const auto factor = fields.positive("factor");
  if (!factor && !minimind) fields.fail("factor", "a positive number, which yarn requires");
  scaling.factor = factor.value_or(scaling.factor);
  const double fallback =
      minimind ? scaling.original_max_position_embeddings : static_cast<double>(max_position_embeddings.value_or(0));
  scaling.original_max_position_embeddings = fields.positive("original_max_position_embeddings").value_or(fallback);
  scaling.beta_fast = fields.positive("beta_fast").value_or(32);
  scaling.beta_slow = fields.positive("beta_slow").value_or(1);
  const double default_attention = minimind || scaling.factor <= 1 ? 1.0 : 0.1 * std::log(scaling.factor) + 1.0;
  scaling.attention_factor = fields.positive("attention_factor").value_or(default_attention);
  if (!fields.flag("truncate").value_or(true)) fields.fail("truncate", "true");
  for (const char* key : {"mscale", "mscale_all_dim"}) {
    if (!fields.get(key).is_null()) fields.fail(key, "rope scaling without this setting");
  }
  return scaling;
}

std::optional<RopeScaling> parse_rope_scaling(const JsonFields& fields, bool minimind,
                                              std::optional<std::size_t> max_position_embeddings) {
  const std::string kind = fields.text({"rope_type", "type"}).value_or("default");
  if (kind == "default") return std::nullopt;
  if (kind == "yarn") return parse_yarn(fields, minimind, max_position_embeddings);
  if (kind == "linear") {
    RopeScaling scaling;
    scaling.kind = RopeScaling::Kind::linear;
    const auto factor = fields.positive("factor");
    if (!factor) fields.fail("factor", "a positive number, which linear requires");
    scaling.factor = *factor;
    return scaling;
  }
  fields.fail(fields.get("rope_type").is_null() ? "type" : "rope_type",
              "default, linear or yarn: no other is supported");
}

// Some configs use a negative id for none.
std::vector<std::int32_t> parse_token_ids(const JsonFields& fields, const char* key) {
  const Json& value = fields.get(key);
  if (value.is_null()) return {};
  if (value.size() > most_end_ids) fields.fail(key, fmt::format("at most {} token ids", most_end_ids));
  std::vector<std::int32_t> ids;
  for (const Json& id : value.is_array() ? value : Json::array({value})) {
    if (id.is_number_integer() && id < 0) continue;
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > largest_size) fields.fail(key, "token ids");
    const auto token = id.get<std::int32_t>();
    if (std::find(ids.begin(), ids.end(), token) == ids.end()) ids.push_back(token);
  }
  return ids;
}

// MiniMind's first YaRN of late 2025 has no attention_factor, and its frequencies follow another formula. Every YaRN of
// its later code has an attention_factor.
void reject_first_yarn(const JsonFields& fields, const std::string& source) {
  const bool yarn = fields.get("type") == "yarn" || fields.get("rope_type") == "yarn";
  if (!yarn || fields.get("beta_fast").is_null() || !fields.get("attention_factor").is_null()) return;
  throw Error(fmt::format(
      "{}: rope_scaling is MiniMind's first YaRN, without attention_factor, whose formula is not supported; "
      "set inference_rope_scaling to false to run the model without YaRN",
      source));
}

void reject_partial_rotary(const JsonFields& fields) {
  const auto factor = fields.positive("partial_rotary_factor");
  if (factor && *factor != 1.0) fields.fail("partial_rotary_factor", "1: RoPE over the whole head");
}

void reject_unsupported(const JsonFields& fields, const StatedConfig& stated, bool minimind) {
  if (!stated.is_causal.value_or(true)) {
    fields.fail("is_causal", "true: dLM, whose tokens see those after them, is not supported");
  }
  if (fields.flag("use_sliding_window").value_or(false)) {
    fields.fail("use_sliding_window", "false: sliding-window attention is not supported");
  }
  const auto bias = fields.flag("attention_bias");
  if (bias.value_or(false) && !minimind)
    fields.fail("attention_bias", "false: biases on q, k, v and o are not supported");
  reject_partial_rotary(fields);
  const auto scoring = fields.text("scoring_func");
  if (scoring && *scoring != "softmax") fields.fail("scoring_func", "\"softmax\"");
}

void read_rope(const JsonFields& fields, bool minimind, StatedConfig& stated) {
  const auto rope = fields.object({"rope_scaling", "rope_parameters"});
  if (!rope) return;
  const auto theta = rope->positive("rope_theta");
  if (theta && stated.rope_theta && *theta != *stated.rope_theta) {
    rope->fail("rope_theta", fmt::format("{}, the rope_theta of the whole file", *stated.rope_theta));
  }
  if (theta) stated.rope_theta = theta;
  if (minimind && stated.inference_rope_scaling.value_or(false)) reject_first_yarn(*rope, stated.source);
  stated.rope_scaling = parse_rope_scaling(*rope, minimind, stated.max_position_embeddings);
  reject_partial_rotary(*rope);
  for (const std::string& key : rope->unused()) stated.unused.push_back(rope->name_of(key));
}

void read_hyper_parameter(const JsonFields& fields, const HyperParameter& parameter, StatedConfig& stated) {
  const Json& value = fields.get(parameter.name);
  JsonFields::Names names = parameter.name;
  if (!parameter.other_name.empty()) names = {parameter.name, parameter.other_name};
  if (const auto* size = std::get_if<HyperParameter::Members<std::size_t>>(&parameter.members)) {
    if (parameter.name == "n_shared_experts" && value.is_boolean()) {  // as LMConfig writes it
      stated.*size->stated = value.get<bool>() ? 1 : 0;
    } else {
      stated.*size->stated = fields.whole(names, 0, largest_size);
    }
  } else if (const auto* number = std::get_if<HyperParameter::Members<double>>(&parameter.members)) {
    stated.*number->stated = fields.positive(names);
  } else {
    stated.*std::get<HyperParameter::Members<bool>>(parameter.members).stated = fields.flag(names);
  }
}

}  // namespace

StatedConfig parse_config_json(const std::string& text, const std::string& source) {
  check_not_mistaken(text, text.size(), source);
  const Json object = parse_json_object(text, source);
  const JsonFields fields(object, source, "");
  StatedConfig stated;
  stated.source = source;
  stated.model_type = fields.text("model_type");
  const bool minimind = !stated.model_type || *stated.model_type == "minimind";
  for (const HyperParameter& parameter : hyper_parameters) read_hyper_parameter(fields, parameter, stated);
  stated.intermediate_size_is_null =
      !stated.intermediate_size && (object.contains("intermediate_size") || object.contains("hidden_dim"));
  stated.multiple_of = fields.whole("multiple_of", 0, largest_size).value_or(64);
  if (stated.multiple_of == 0) fields.fail("multiple_of", "at least 1");
  stated.ffn_dim_multiplier = fields.positive("ffn_dim_multiplier");
  if (stated.ffn_dim_multiplier.value_or(1) > 1000) fields.fail("ffn_dim_multiplier", "at most 1000");
  stated.max_seq_len = fields.whole("max_seq_len", 0, largest_size);
  stated.use_moe = fields.flag("use_moe");
  stated.is_causal = fields.flag("is_causal");
  stated.inference_rope_scaling = fields.flag("inference_rope_scaling");
  if (const auto act = fields.text("hidden_act")) stated.hidden_act = parse_hidden_act(*act, source);
  stated.eos_token_id = parse_token_ids(fields, "eos_token_id");
  read_rope(fields, minimind, stated);
  reject_unsupported(fields, stated, minimind);
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
  std::string known;
  for (const HiddenActName& spelling : hidden_act_names) {
    if (name == spelling.name) return spelling.act;
    known += (known.empty() ? "" : ", ") + std::string(spelling.name);
  }
  throw Error(fmt::format("{}: hidden_act is {}, expected one of {}", source, quote(name), known));
}

}  // namespace minimind
