#include "weights/model/infer_heads.h"

#include <fmt/core.h>

#include "weights/io/error.h"

namespace minimind {
namespace {

std::size_t exact_quotient(std::size_t rows, std::size_t parts, const char* tensor, const char* what,
                           const std::string& path) {
  if (parts > 0 && rows % parts == 0) return rows / parts;
  throw Error(fmt::format("{}: {} has {} rows, which {} {} do not divide", path, tensor, rows, parts, what));
}

Heads heads_of(const HeadEvidence& evidence, std::size_t head_dim, const std::string& source, const std::string& path) {
  return {.num_attention_heads = exact_quotient(evidence.q_rows, head_dim, "q_proj", "numbers a head", path),
          .num_key_value_heads = exact_quotient(evidence.k_rows, head_dim, "k_proj", "numbers a head", path),
          .head_dim = head_dim,
          .sources = {{"head_dim", source},
                      {"num_attention_heads", "rows of q_proj / head_dim"},
                      {"num_key_value_heads", "rows of k_proj / head_dim"}}};
}

Heads assumed_heads(const HeadEvidence& evidence, const std::string& path) {
  const Generation usual = generation(evidence.family);
  if (evidence.q_rows * usual.kv_heads != evidence.k_rows * usual.heads || evidence.q_rows % usual.heads != 0) {
    throw Error(
        fmt::format("{}: q_proj has {} rows and k_proj {}, which are not the {} heads and {} kv heads of {}; give "
                    "--heads and --kv-heads, or a --config",
                    path, evidence.q_rows, evidence.k_rows, usual.heads, usual.kv_heads, name_of(evidence.family)));
  }
  Heads heads = heads_of(evidence, evidence.q_rows / usual.heads, "rows of q_proj / heads", path);
  const std::string source = fmt::format("assumed: what {} uses", name_of(evidence.family));
  heads.sources["num_attention_heads"] = heads.sources["num_key_value_heads"] = source;
  return heads;
}

// A count that was given must be the one that came out; it then is the source.
void agree(const std::string& name, std::size_t value, std::optional<std::size_t> option, const std::string& flag,
           std::optional<std::size_t> stated, const StatedConfig& config, Heads& heads, const std::string& path) {
  const auto given = option ? option : stated;
  if (!given) return;
  const std::string from = option ? flag : config.source;
  if (*given != value) {
    throw Error(
        fmt::format("{}: {} is {} by {} but {} by the {}", path, name, *given, from, value, heads.sources[name]));
  }
  heads.sources[name] = from;
}

void check(const Heads& heads, const StatedConfig& stated, const std::string& path) {
  if (stated.head_dim && *stated.head_dim != heads.head_dim) {
    throw Error(fmt::format("{}: head_dim is {} in {} but {} by the {}", path, *stated.head_dim, stated.source,
                            heads.head_dim, heads.sources.at("head_dim")));
  }
  if (heads.head_dim % 2 != 0) {
    throw Error(fmt::format("{}: head_dim is {} ({} heads), but RoPE wants an even one; give --heads and --kv-heads",
                            path, heads.head_dim, heads.num_attention_heads));
  }
  if (heads.num_attention_heads % heads.num_key_value_heads != 0) {
    throw Error(fmt::format("{}: {} heads cannot share {} kv heads evenly", path, heads.num_attention_heads,
                            heads.num_key_value_heads));
  }
}

}  // namespace

Heads infer_heads(const HeadEvidence& evidence, const StatedConfig& stated, const ConfigOverrides& overrides,
                  const std::string& path) {
  const auto heads_given = overrides.heads ? overrides.heads : stated.num_attention_heads;
  const auto kv_heads_given = overrides.kv_heads ? overrides.kv_heads : stated.num_key_value_heads;
  Heads heads;
  if (evidence.q_norm_length) {
    heads = heads_of(evidence, *evidence.q_norm_length, "length of q_norm", path);
  } else if (heads_given) {
    const std::size_t head_dim = exact_quotient(evidence.q_rows, *heads_given, "q_proj", "heads", path);
    heads = heads_of(evidence, head_dim, "rows of q_proj / heads", path);
  } else if (kv_heads_given) {
    const std::size_t head_dim = exact_quotient(evidence.k_rows, *kv_heads_given, "k_proj", "kv heads", path);
    heads = heads_of(evidence, head_dim, "rows of k_proj / kv heads", path);
  } else {
    heads = assumed_heads(evidence, path);
  }
  agree("num_attention_heads", heads.num_attention_heads, overrides.heads, "--heads", stated.num_attention_heads,
        stated, heads, path);
  agree("num_key_value_heads", heads.num_key_value_heads, overrides.kv_heads, "--kv-heads", stated.num_key_value_heads,
        stated, heads, path);
  check(heads, stated, path);
  return heads;
}

Generation generation(Family family) {
  switch (family) {
    case Family::v1:
      return {16, 8, 8192, 1e-5, 1e4};
    case Family::v2_early:
      return {8, 2, 8192, 1e-5, 1e6};
    case Family::v2:
      return {8, 2, 32768, 1e-5, 1e6};
    case Family::v3:
      return {8, 4, 32768, 1e-6, 1e6};
    case Family::llama:
      return {32, 32, 2048, 1e-6, 1e4};
    case Family::qwen3:
    case Family::qwen3_moe:
      return {32, 32, 32768, 1e-6, 1e4};
  }
  return {};
}

}  // namespace minimind
