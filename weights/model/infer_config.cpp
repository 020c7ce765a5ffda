#include "weights/model/infer_config.h"

#include <fmt/core.h>

#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

// The defaults of MiniMind's code of each generation, and of transformers' classes.
struct Generation {
  std::size_t heads, kv_heads, max_position_embeddings;
  double rms_norm_eps, rope_theta;
};

Generation generation(Family family) {
  // By the family.
  constexpr Generation all[] = {{16, 8, 8192, 1e-5, 1e4},     // v1
                                {8, 2, 8192, 1e-5, 1e6},      // v2_early
                                {8, 2, 32768, 1e-5, 1e6},     // v2
                                {8, 4, 32768, 1e-6, 1e6},     // v3
                                {32, 32, 2048, 1e-6, 1e4},    // llama
                                {32, 32, 32768, 1e-6, 1e4},   // qwen3
                                {32, 32, 32768, 1e-6, 1e4}};  // qwen3_moe
  static_assert(std::size(all) == static_cast<std::size_t>(Family::qwen3_moe) + 1);
  return all[static_cast<std::size_t>(family)];
}

// The evidence of the tensors about attention heads.
struct HeadEvidence {
  Family family = Family::v3;
  std::size_t q_rows = 0;                    // heads x head_dim
  std::size_t k_rows = 0;                    // kv heads x head_dim
  std::optional<std::size_t> q_norm_length;  // head_dim, if the family has q_norm
};

struct Heads {
  std::size_t num_attention_heads = 0;
  std::size_t num_key_value_heads = 0;
  std::size_t head_dim = 0;
  ConfigSources sources;
};

ConfigSource from_tensors(Fact place) {
  return {ConfigSource::Kind::tensors, std::move(place)};
}

const std::string& place_of(const StatedConfig& stated, std::string_view name) {
  const auto place = stated.places.find(name);
  return place == stated.places.end() ? stated.source : place->second;
}

ConfigSource from_config(const StatedConfig& stated, std::string_view name) {
  return {ConfigSource::Kind::config, Fact("{}", place_of(stated, name))};
}

ConfigSource assumed(Fact reason) {
  return {ConfigSource::Kind::assumed, std::move(reason)};
}

const ConfigSource requested_by_caller{ConfigSource::Kind::caller};

// The reason for an assumed value.
Fact habit(Family family) {
  return Fact("what {} uses", name_of(family));
}

std::size_t exact_quotient(std::size_t rows, std::size_t parts, const char* tensor, const char* what,
                           const std::string& path) {
  if (parts > 0 && rows % parts == 0) return rows / parts;
  throw Error(fmt::format("{}: {} has {} rows, which {} {} do not divide", path, tensor, rows, parts, what));
}

Heads heads_of(const HeadEvidence& evidence, std::size_t head_dim, const Fact& seen_in, const std::string& path) {
  return {.num_attention_heads = exact_quotient(evidence.q_rows, head_dim, "q_proj", "values per head", path),
          .num_key_value_heads = exact_quotient(evidence.k_rows, head_dim, "k_proj", "values per head", path),
          .head_dim = head_dim,
          .sources = {{"head_dim", from_tensors(seen_in)},
                      {"num_attention_heads", from_tensors(Fact("rows of q_proj / head_dim"))},
                      {"num_key_value_heads", from_tensors(Fact("rows of k_proj / head_dim"))}}};
}

Heads assumed_heads(const HeadEvidence& evidence, const std::string& path) {
  const Generation usual = generation(evidence.family);
  if (evidence.q_rows * usual.kv_heads != evidence.k_rows * usual.heads || evidence.q_rows % usual.heads != 0) {
    throw Error(
        fmt::format("{}: q_proj has {} rows and k_proj {}, expected {} heads and {} kv heads as {} has; state the two "
                    "numbers",
                    path, evidence.q_rows, evidence.k_rows, usual.heads, usual.kv_heads, name_of(evidence.family)),
        Setting::heads);
  }
  Heads heads = heads_of(evidence, evidence.q_rows / usual.heads, Fact("rows of q_proj / heads"), path);
  heads.sources["num_attention_heads"] = heads.sources["num_key_value_heads"] = assumed(habit(evidence.family));
  return heads;
}

// A requested or stated count must equal the inferred one; it then is the source.
void agree(const std::string& name, std::size_t value, std::optional<std::size_t> requested,
           std::optional<std::size_t> stated, const StatedConfig& config, Heads& heads, const std::string& path) {
  const auto given = requested ? requested : stated;
  if (!given) return;
  if (*given != value) {
    throw Error(
        fmt::format("{}: {} is {} {}, expected {} by the {}", path, name, *given,
                    requested ? "as requested" : "in " + place_of(config, name), value, heads.sources[name].detail),
        requested ? Setting::heads : Setting::none);
  }
  heads.sources[name] = requested ? requested_by_caller : from_config(config, name);
}

void check(const Heads& heads, const StatedConfig& stated, const std::string& path) {
  if (stated.head_dim && *stated.head_dim != heads.head_dim) {
    throw Error(fmt::format("{}: head_dim is {} in {}, expected {} by the {}", path, *stated.head_dim,
                            place_of(stated, "head_dim"), heads.head_dim, heads.sources.at("head_dim").detail));
  }
  if (heads.head_dim % 2 != 0) {
    throw Error(fmt::format("{}: head_dim is {} ({} heads), expected an even number, as RoPE requires; state the "
                            "numbers of heads and kv heads",
                            path, heads.head_dim, heads.num_attention_heads),
                Setting::heads);
  }
  if (heads.num_attention_heads % heads.num_key_value_heads != 0) {
    throw Error(fmt::format("{}: {} heads cannot share {} kv heads evenly", path, heads.num_attention_heads,
                            heads.num_key_value_heads));
  }
}

// Finds the three sizes: from q_norm if it exists, else from the overrides, the config, or the defaults of MiniMind's
// code of the generation. Throws Error if these disagree, leave a remainder or are unknown.
Heads infer_heads(const HeadEvidence& evidence, const StatedConfig& stated, const ConfigOverrides& overrides,
                  const std::string& path) {
  const auto heads_given = overrides.heads ? overrides.heads : stated.num_attention_heads;
  const auto kv_heads_given = overrides.kv_heads ? overrides.kv_heads : stated.num_key_value_heads;
  Heads heads;
  if (evidence.q_norm_length) {
    heads = heads_of(evidence, *evidence.q_norm_length, Fact("length of q_norm"), path);
  } else if (heads_given) {
    const std::size_t head_dim = exact_quotient(evidence.q_rows, *heads_given, "q_proj", "heads", path);
    heads = heads_of(evidence, head_dim, Fact("rows of q_proj / heads"), path);
  } else if (kv_heads_given) {
    const std::size_t head_dim = exact_quotient(evidence.k_rows, *kv_heads_given, "k_proj", "kv heads", path);
    heads = heads_of(evidence, head_dim, Fact("rows of k_proj / kv heads"), path);
  } else {
    heads = assumed_heads(evidence, path);
  }
  agree("num_attention_heads", heads.num_attention_heads, overrides.heads, stated.num_attention_heads, stated, heads,
        path);
  agree("num_key_value_heads", heads.num_key_value_heads, overrides.kv_heads, stated.num_key_value_heads, stated, heads,
        path);
  check(heads, stated, path);
  return heads;
}

constexpr const char* embed_tokens = "model.embed_tokens.weight";

class Inference {
 public:
  Inference(const CanonicalTensors& canonical, const std::optional<StatedConfig>& stated,
            const ConfigOverrides& overrides, std::string path)
      : tensors_(canonical.tensors),
        style_(canonical.style),
        stated_(stated.value_or(StatedConfig{})),
        overrides_(overrides),
        path_(std::move(path)) {}

  InferredConfig run() {
    embedding();
    layers();
    family();
    attention();
    feed_forward();
    experts();
    constants();
    causality();
    rope_scaling();
    tied_embeddings();
    return {std::move(config_), std::move(sources_)};
  }

 private:
  const StoredTensor* find(const std::string& name) const {
    const auto entry = tensors_.find(name);
    return entry == tensors_.end() ? nullptr : &entry->second;
  }

  const StoredTensor& matrix(const std::string& name) const {
    const StoredTensor* tensor = find(name);
    if (!tensor) throw Error(fmt::format("{}: tensor {} is missing", path_, name));
    if (tensor->shape.size() != 2 || tensor->shape[0] == 0 || tensor->shape[1] == 0) {
      throw Error(fmt::format("{}: {} is {}, expected a matrix", path_, name, shape_text(tensor->shape)));
    }
    return *tensor;
  }

  // Sets a value that the tensors determine; a stated or requested value must agree.
  void seen(std::size_t& field, const std::string& name, std::size_t value, const Fact& where,
            std::optional<std::size_t> stated) {
    if (stated && *stated != value) {
      throw Error(fmt::format("{}: {} is {} in {}, expected {} by the {}; use this checkpoint's own config", path_,
                              name, *stated, place_of(stated_, name), value, where));
    }
    field = value;
    sources_[name] = from_tensors(where);
  }

  // Sets a value that the tensors do not determine.
  template <class Value>
  void chosen(Value& field, const std::string& name, const std::optional<Value>& stated, Value fallback,
              const Fact& why) {
    field = stated.value_or(fallback);
    sources_[name] = stated ? from_config(stated_, name) : assumed(why);
  }

  // Counts the distinct numbers N in names "<prefix>N.", which must be 0, 1, ... without a gap.
  std::size_t count_numbered(const std::string& prefix) const {
    std::set<std::size_t> numbers;
    for (auto entry = tensors_.lower_bound(prefix); entry != tensors_.end() && entry->first.starts_with(prefix);
         ++entry) {
      std::string_view rest = std::string_view(entry->first).substr(prefix.size());
      const auto number = take_number<std::size_t>(rest);
      if (number && rest.starts_with('.')) numbers.insert(*number);
    }
    std::size_t expected = 0;
    for (const std::size_t number : numbers) {
      if (number != expected++) {
        throw Error(fmt::format("{}: tensors of {}{} are missing but there are some of {}{}", path_, prefix,
                                expected - 1, prefix, number));
      }
    }
    return numbers.size();
  }

  void embedding() {
    if (!find(embed_tokens)) {
      const std::string first = tensors_.empty() ? "none" : quote(tensors_.begin()->first);
      throw Error(
          fmt::format("{}: is not a MiniMind checkpoint: it has no token embedding among its {} tensors (the "
                      "first is {})",
                      path_, tensors_.size(), first));
    }
    const std::vector<std::size_t>& shape = matrix(embed_tokens).shape;
    seen(config_.vocab_size, "vocab_size", shape[0], Fact("rows of embed_tokens"), stated_.vocab_size);
    seen(config_.hidden_size, "hidden_size", shape[1], Fact("columns of embed_tokens"), stated_.hidden_size);
  }

  void layers() {
    const std::size_t count = count_numbered("model.layers.");
    if (count == 0) throw Error(fmt::format("{}: has a token embedding but no layers", path_));
    seen(config_.num_hidden_layers, "num_hidden_layers", count, Fact("layers that have tensors"),
         stated_.num_hidden_layers);
  }

  void family() {
    const bool q_norm = find(layer_tensor(0, "self_attn.q_norm.weight")) != nullptr;
    const std::string type = stated_.model_type.value_or("minimind");
    if (stated_.family) {
      config_.family = *stated_.family;
      sources_["family"] = from_config(stated_, "family");
      if (q_norm == has_q_norm(config_.family)) return;
      throw Error(fmt::format("{}: {} says {}, but self_attn.q_norm is {}", path_, stated_.source,
                              name_of(config_.family), q_norm ? "there" : "missing"));
    }
    if (type == "llama" || type == "qwen3" || type == "qwen3_moe") {
      config_.family = type == "llama" ? Family::llama : type == "qwen3" ? Family::qwen3 : Family::qwen3_moe;
      sources_["family"] = {ConfigSource::Kind::config, Fact("model_type in {}", stated_.source)};
      if (q_norm == (config_.family == Family::llama) || style_ == NamingStyle::v1) {
        throw Error(fmt::format("{}: {} says model_type {}, but the tensors are not those of one", path_,
                                stated_.source, type));
      }
    } else if (type == "minimind") {
      minimind_family(q_norm);
    } else {
      throw Error(fmt::format("{}: {} says model_type {}; minimind, llama, qwen3 and qwen3_moe can be run", path_,
                              stated_.source, quote(type)));
    }
  }

  void minimind_family(bool q_norm) {
    if (style_ == NamingStyle::hugging_face) {
      config_.family = q_norm ? Family::v3 : Family::v2;
      sources_["family"] =
          from_tensors(q_norm ? Fact("self_attn.q_norm is present") : Fact("tensor names, without self_attn.q_norm"));
      return;
    }
    const std::size_t q_rows = matrix(layer_tensor(0, "self_attn.q_proj.weight")).shape[0];
    const std::size_t k_rows = matrix(layer_tensor(0, "self_attn.k_proj.weight")).shape[0];
    if (q_rows == 2 * k_rows || q_rows == 4 * k_rows) {
      config_.family = q_rows == 2 * k_rows ? Family::v1 : Family::v2_early;
      sources_["family"] = from_tensors(Fact("tensor names, rows of wq = {} x rows of wk", q_rows / k_rows));
    } else if (stated_.rope_theta) {
      config_.family = Family::v2_early;
      sources_["family"] = from_tensors(Fact("tensor names, rope_theta in {}", stated_.source));
    } else if (stated_.num_attention_heads) {  // v1's LMConfig has no rope_theta yet
      config_.family = Family::v1;
      sources_["family"] = from_tensors(Fact("tensor names, no rope_theta in {}", stated_.source));
    } else {
      throw Error(
          fmt::format("{}: wq has {} rows and wk {}, expected 2 to 1 (v1) or 4 to 1 (v2-early); give a config with "
                      "rope_theta, n_heads and n_kv_heads",
                      path_, q_rows, k_rows),
          Setting::config);
    }
  }

  void attention() {
    const StoredTensor* q_norm = find(layer_tensor(0, "self_attn.q_norm.weight"));
    if (q_norm && (q_norm->shape.size() != 1 || q_norm->shape[0] == 0)) {
      throw Error(fmt::format("{}: {} is {}, expected [head_dim]", path_, layer_tensor(0, "self_attn.q_norm.weight"),
                              shape_text(q_norm->shape)));
    }
    const HeadEvidence evidence{
        .family = config_.family,
        .q_rows = matrix(layer_tensor(0, "self_attn.q_proj.weight")).shape[0],
        .k_rows = matrix(layer_tensor(0, "self_attn.k_proj.weight")).shape[0],
        .q_norm_length = q_norm ? std::optional(q_norm->shape[0]) : std::nullopt,
    };
    Heads heads = infer_heads(evidence, stated_, overrides_, path_);
    config_.num_attention_heads = heads.num_attention_heads;
    config_.num_key_value_heads = heads.num_key_value_heads;
    config_.head_dim = heads.head_dim;
    sources_.merge(heads.sources);
  }

  void feed_forward() {
    for (std::size_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
      const StoredTensor* up = find(layer_tensor(layer, "mlp.up_proj.weight"));
      if (!up) continue;
      const bool gated = find(layer_tensor(layer, "mlp.gate_proj.weight")) != nullptr;
      const std::size_t rows = matrix(layer_tensor(layer, "mlp.up_proj.weight")).shape[0];
      seen(config_.intermediate_size, "intermediate_size", rows, Fact("rows of layer {}'s up_proj", layer),
           expected_intermediate_size(gated));
      break;
    }
    hidden_act();
  }

  void hidden_act() {
    if (!some_network_has(tensors_, ".gate_proj.weight") && !stated_.hidden_act) {
      throw Error(
          fmt::format("{}: hidden_act is missing, and its FFNs have two matrices without a gate, which do not show it; "
                      "give a config with hidden_act relu or gelu",
                      path_),
          Setting::config);
    }
    chosen(config_.hidden_act, "hidden_act", stated_.hidden_act, HiddenAct::silu, habit(config_.family));
  }

  // The stated size, or MiniMind's default if the size is omitted. The default is for gated FFNs.
  std::optional<std::size_t> expected_intermediate_size(bool gated) const {
    const bool left_out = stated_.intermediate_size_is_null || stated_.model_type == "minimind";
    if (stated_.intermediate_size || !left_out || !gated) return stated_.intermediate_size;
    if (config_.family == Family::v3) return default_intermediate_size_v3(config_.hidden_size);
    return default_intermediate_size(config_.hidden_size, stated_.multiple_of, stated_.ffn_dim_multiplier);
  }

  void experts() {
    std::size_t mixture = config_.num_hidden_layers;
    for (std::size_t layer = config_.num_hidden_layers; layer-- > 0;) {
      if (is_mixture(tensors_, layer)) mixture = layer;
    }
    const bool has_experts = mixture < config_.num_hidden_layers;
    if (stated_.use_moe && *stated_.use_moe != has_experts) {
      throw Error(fmt::format("{}: use_moe is {} in {}, but the tensors hold {}", path_, *stated_.use_moe,
                              stated_.source, has_experts ? "experts" : "no experts"));
    }
    if (!has_experts && overrides_.experts_per_token) {
      throw UsageError(
          fmt::format("{}: experts per token are requested, expected an MoE model: it has no experts", path_),
          Setting::experts);
    }
    if (!has_experts) return;
    const std::string mlp = layer_tensor(mixture, "mlp.");
    seen(config_.num_experts, "num_experts", matrix(mlp + "gate.weight").shape[0], Fact("rows of the router mlp.gate"),
         stated_.num_experts);
    if (const std::size_t found = count_numbered(mlp + "experts."); found != config_.num_experts) {
      throw Error(fmt::format("{}: the router {}gate has {} rows, but there are {} experts", path_, mlp,
                              config_.num_experts, found));
    }
    seen(config_.n_shared_experts, "n_shared_experts", count_numbered(mlp + "shared_experts."),
         Fact("shared experts that have tensors"), shared_experts_stated());
    const std::size_t rows = matrix(mlp + "experts.0.up_proj.weight").shape[0];
    seen(config_.moe_intermediate_size, "moe_intermediate_size", rows, Fact("rows of expert 0's up_proj"),
         stated_.moe_intermediate_size ? stated_.moe_intermediate_size : expected_intermediate_size(true));
    if (config_.intermediate_size == 0) {
      config_.intermediate_size = rows;
      sources_["intermediate_size"] = from_tensors(Fact("rows of expert 0's up_proj"));
    }
    router();
  }

  // v3 and Qwen3 have no shared experts; a config that states some is ignored.
  std::optional<std::size_t> shared_experts_stated() const {
    const bool known = config_.family != Family::v3 && config_.family != Family::qwen3_moe;
    return known ? stated_.n_shared_experts : std::nullopt;
  }

  void router() {
    const bool top_1 = config_.family == Family::v3;
    if (config_.family == Family::qwen3_moe && !stated_.num_experts_per_tok && !overrides_.experts_per_token) {
      throw Error(fmt::format("{}: num_experts_per_tok is missing in {}; state it", path_, stated_.source),
                  Setting::experts);
    }
    chosen(config_.num_experts_per_tok, "num_experts_per_tok", stated_.num_experts_per_tok,
           top_1 ? std::size_t{1} : std::size_t{2}, habit(config_.family));
    if (overrides_.experts_per_token) {
      config_.num_experts_per_tok = *overrides_.experts_per_token;
      sources_["num_experts_per_tok"] = requested_by_caller;
    }
    if (config_.num_experts_per_tok == 0 || config_.num_experts_per_tok > config_.num_experts) {
      throw Error(
          fmt::format("{}: num_experts_per_tok is {} {}, expected 1 to {}, the number of experts", path_,
                      config_.num_experts_per_tok,
                      overrides_.experts_per_token ? "as requested" : "in " + place_of(stated_, "num_experts_per_tok"),
                      config_.num_experts),
          Setting::experts);
    }
    // The default is false in transformers' Qwen3MoeConfig, true in MiniMind.
    chosen(config_.norm_topk_prob, "norm_topk_prob", stated_.norm_topk_prob, config_.family != Family::qwen3_moe,
           habit(config_.family));
  }

  std::optional<std::size_t> stated_positions() const {
    const bool as_max_seq_len = stated_.max_seq_len && has_lm_config(config_.family);
    return as_max_seq_len ? stated_.max_seq_len : stated_.max_position_embeddings;
  }

  void constants() {
    const Generation usual = generation(config_.family);
    chosen(config_.rms_norm_eps, "rms_norm_eps", stated_.rms_norm_eps, usual.rms_norm_eps, habit(config_.family));
    chosen(config_.rope_theta, "rope_theta", stated_.rope_theta, usual.rope_theta, habit(config_.family));
    chosen(config_.max_position_embeddings, "max_position_embeddings", stated_positions(),
           usual.max_position_embeddings, habit(config_.family));
    if (config_.max_position_embeddings == 0) {
      throw Error(
          fmt::format("{}: max_position_embeddings is 0 in {}", path_, place_of(stated_, "max_position_embeddings")));
    }
    config_.eos_token_id = stated_.eos_token_id;
    sources_["eos_token_id"] = from_config(stated_, "eos_token_id");
    if (config_.eos_token_id.empty()) {
      config_.eos_token_id = {2};
      sources_["eos_token_id"] = assumed(Fact("what every MiniMind tokenizer uses"));
    }
  }

  // Only MiniMind's code says so.
  void causality() {
    const bool alone = !stated_.family && stated_.settings == 0;
    sources_["is_causal"] = stated_.is_causal ? from_config(stated_, "is_causal")
                            : alone           ? assumed(habit(config_.family))
                                    : ConfigSource{ConfigSource::Kind::usual, Fact("unless its code says otherwise")};
  }

  void rope_scaling() {
    config_.rope_scaling = stated_.rope_scaling;
    sources_["rope_scaling"] = stated_.rope_scaling
                                   ? from_config(stated_, "rope_scaling")
                                   : ConfigSource{ConfigSource::Kind::usual, Fact("off unless requested")};
    if (stated_.inference_rope_scaling) {
      const bool on = *stated_.inference_rope_scaling;
      config_.rope_scaling = on ? stated_.rope_scaling.value_or(RopeScaling{}) : std::optional<RopeScaling>{};
      sources_["rope_scaling"] = {ConfigSource::Kind::config,
                                  Fact("inference_rope_scaling in {}", place_of(stated_, "inference_rope_scaling"))};
    }
    if (overrides_.yarn) {
      const bool already = config_.rope_scaling && config_.rope_scaling->kind == RopeScaling::Kind::yarn;
      if (!*overrides_.yarn) config_.rope_scaling.reset();
      if (*overrides_.yarn && !already) config_.rope_scaling = RopeScaling{};
      sources_["rope_scaling"] = requested_by_caller;
    }
    check_yarn();
  }

  void check_yarn() {
    if (!config_.rope_scaling || config_.rope_scaling->kind != RopeScaling::Kind::yarn) return;
    RopeScaling& yarn = *config_.rope_scaling;
    if (!(config_.rope_theta > 1)) {
      throw Error(
          fmt::format("{}: rope_theta is {}, expected more than 1, as YaRN requires", path_, config_.rope_theta));
    }
    if (yarn.original_max_position_embeddings == 0) {  // omitted, which transformers allows
      yarn.original_max_position_embeddings = static_cast<double>(config_.max_position_embeddings);
    }
    // MiniMind's code does not change the frequencies if the context is no longer than the original one.
    const bool minimind = yarn.ramp_end == RopeScaling::RampEnd::half_head_dim;
    if (minimind && static_cast<double>(config_.max_position_embeddings) <= yarn.original_max_position_embeddings) {
      if (overrides_.yarn) {
        throw UsageError(
            fmt::format("{}: YaRN is requested and has no effect: max_position_embeddings is {}, expected more than "
                        "the original {}",
                        path_, config_.max_position_embeddings, yarn.original_max_position_embeddings),
            Setting::rope_scaling);
      }
      config_.rope_scaling.reset();
      Fact& detail = sources_["rope_scaling"].detail;
      detail = Fact("{}, without effect: max_position_embeddings is only {}", detail, config_.max_position_embeddings);
    }
  }

  // Compares values, as the bytes of one storage or of two.
  static bool same_data(const StoredTensor& a, const StoredTensor& b) {
    return a.dtype == b.dtype && a.shape == b.shape && a.data.equals(b.data);
  }

  void tied_embeddings() {
    const StoredTensor* head = find("lm_head.weight");
    const bool tied = !head || same_data(*head, matrix(embed_tokens));
    sources_["tie_word_embeddings"] = from_tensors(!head  ? Fact("lm_head is absent")
                                                   : tied ? Fact("lm_head equals embed_tokens")
                                                          : Fact("lm_head differs from embed_tokens"));
    if (stated_.tie_word_embeddings.value_or(tied) && !tied) {
      throw Error(
          fmt::format("{}: tie_word_embeddings is true in {}, but lm_head.weight is not embed_tokens.weight; "
                      "set it to false if lm_head is meant",
                      path_, place_of(stated_, "tie_word_embeddings")));
    }
    if (!head && !stated_.tie_word_embeddings.value_or(true)) {
      throw Error(fmt::format("{}: tie_word_embeddings is false in {}, but tensor lm_head.weight is missing", path_,
                              stated_.source));
    }
    config_.tie_word_embeddings = tied;
  }

  const StoredTensors& tensors_;
  NamingStyle style_;
  StatedConfig stated_;
  ConfigOverrides overrides_;
  std::string path_;
  Config config_;
  ConfigSources sources_;
};

}  // namespace

InferredConfig infer_config(const CanonicalTensors& canonical, const std::optional<StatedConfig>& stated,
                            const ConfigOverrides& overrides, const std::string& path) {
  return Inference(canonical, stated, overrides, path).run();
}

}  // namespace minimind
