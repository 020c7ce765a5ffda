#include "tools/bench/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <nlohmann/json.hpp>
#include <string_view>

namespace minimind {
namespace {

using Json = nlohmann::ordered_json;

// What reports say of a limit.
struct LimitText {
  LimitKind kind;
  std::string_view key, unit;
  const char* what;  // {}: the megabytes that are read
};

constexpr LimitText limit_texts[] = {
    {LimitKind::reading_weights, "reading_weights", "GB/s", "reading {:.1f} MB, like the weights"},
    {LimitKind::reading_cache, "reading_cache", "GB/s", "reading {:.1f} MB, half the cache"},
    {LimitKind::multiply_add, "multiply_add", "GFLOP/s", "f32 multiply-add in registers"},
    {LimitKind::multiply_add_int8, "multiply_add_int8", "GOP/s", "int8 multiply-add in registers"},
    {LimitKind::multiply_add_bf16, "multiply_add_bf16", "GFLOP/s", "bf16 multiply-add in registers"},
};

const LimitText& text_of(LimitKind kind) {
  return *std::ranges::find(limit_texts, kind, &LimitText::kind);
}

// The limit that a test is compared with.
LimitKind limit_of(const BenchResult& result) {
  return result.test.kind == BenchKind::prompt ? result.arithmetic : LimitKind::reading_weights;
}

// Bytes of weights and cache per second, or operations.
double work_per_second(const BenchResult& result) {
  const double tokens_per_second = spread_of(result.tokens_per_second).median;
  if (result.test.kind == BenchKind::prompt) {
    return tokens_per_second * result.flops / static_cast<double>(result.test.tokens);
  }
  return tokens_per_second * (result.weight_bytes_per_token + result.cache_bytes_per_token);
}

std::string line_of(const BenchReport& report, const BenchResult& result) {
  const Spread speed = spread_of(result.tokens_per_second);
  const auto fraction = fraction_reached(report, result);
  std::string line = fmt::format("{:<7} {:>7}  {:<32} {:>10.1f} {:>10.1f} {:>10.1f}", result.type, result.threads,
                                 name_of(result.test), speed.median, speed.least, speed.most);
  if (result.test.texts > 1) {
    return line + fmt::format(" {:>8.1f} for each text\n", speed.median / static_cast<double>(result.test.texts));
  }
  return line + fmt::format(" {:>8.1f} {:<8}{:>7}\n", 1e-9 * work_per_second(result), text_of(limit_of(result)).unit,
                            fraction ? fmt::format("{:.0f}%", 100 * *fraction) : "");
}

std::string line_of(const BenchLimit& limit) {
  const Spread speed = spread_of(limit.per_second);
  const LimitText& text = text_of(limit.kind);
  const std::string what = fmt::format(fmt::runtime(text.what), 1e-6 * static_cast<double>(limit.bytes));
  return fmt::format("{:>15}  {:<33} {:>8.1f} {} ({:.1f} to {:.1f})\n", limit.threads, what, 1e-9 * speed.median,
                     text.unit, 1e-9 * speed.least, 1e-9 * speed.most);
}

Json spread_json(const std::vector<double>& samples) {
  const Spread spread = spread_of(samples);
  return {{"median", spread.median}, {"least", spread.least}, {"most", spread.most}, {"samples", samples}};
}

Json json_of(const BenchReport& report, const BenchResult& result) {
  const bool prompt = result.test.kind == BenchKind::prompt;
  const auto fraction = fraction_reached(report, result);
  Json json{{"type", result.type},
            {"threads", result.threads},
            {"test", prompt ? "prompt" : "decode"},
            {"tokens", result.test.tokens},
            {"depth", result.test.depth},
            {"texts", result.test.texts},
            {"shared_prompt", result.test.shared_prompt},
            {"kv_type", name_of(result.kv_type)},
            {"weight_bytes", result.weight_bytes}};
  if (prompt) {
    json["flops"] = result.flops;
  } else {
    json["weight_bytes_per_token"] = result.weight_bytes_per_token;
    json["cache_bytes_per_token"] = result.cache_bytes_per_token;
  }
  json["tokens_per_second"] = spread_json(result.tokens_per_second);
  if (result.test.texts > 1) return json;
  json[prompt ? "flops_per_second" : "bytes_per_second"] = work_per_second(result);
  json["fraction_of_limit"] = fraction ? Json(*fraction) : Json(nullptr);
  return json;
}

}  // namespace

Spread spread_of(std::vector<double> samples) {
  assert(!samples.empty());
  std::sort(samples.begin(), samples.end());
  const std::size_t middle = samples.size() / 2;
  const double median = samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  return {.median = median, .least = samples.front(), .most = samples.back()};
}

std::string name_of(const BenchTest& test) {
  if (test.kind == BenchKind::prompt) return fmt::format("prompt {}", test.tokens);
  const std::string texts = test.texts == 1 ? "" : fmt::format("{} x ", test.texts);
  const std::string depth = test.depth == 0 ? "" : fmt::format(" after {}", test.depth);
  return fmt::format("{}decode {}{}{}", texts, test.tokens, depth, test.shared_prompt ? " shared" : "");
}

std::optional<double> fraction_reached(const BenchReport& report, const BenchResult& result) {
  if (result.test.texts > 1) return std::nullopt;
  const LimitKind reference = limit_of(result);
  for (const BenchLimit& limit : report.limits) {
    if (limit.kind != reference || limit.threads != result.threads || limit.per_second.empty()) continue;
    if (reference == LimitKind::reading_weights && limit.bytes != result.weight_bytes) continue;
    if (result.tokens_per_second.empty()) return std::nullopt;
    return work_per_second(result) / spread_of(limit.per_second).median;
  }
  return std::nullopt;
}

std::string to_text(const BenchReport& report) {
  std::string text = fmt::format("{}: {}, {:.2f} M parameters\n", report.model, report.family,
                                 1e-6 * static_cast<double>(report.parameters));
  text += fmt::format("{}{} core{}, {} kernels; {} repetition{}, in turns{}\n\n",
                      report.machine.empty() ? "" : report.machine + ", ", report.cores, report.cores == 1 ? "" : "s",
                      report.kernels, report.repetitions, report.repetitions == 1 ? "" : "s",
                      report.complete ? "" : "; interrupted");
  text += fmt::format("{:<7} {:>7}  {:<32} {:>10} {:>10} {:>10} {:>8} {:<8}{:>7}\n", "type", "threads", "test",
                      "tokens/s", "least", "most", "rate", "", "reached");
  for (const BenchResult& result : report.results) {
    if (!result.tokens_per_second.empty()) text += line_of(report, result);
  }
  if (std::ranges::any_of(report.results, [](const BenchResult& result) { return result.test.shared_prompt; })) {
    text += "\nshared: the texts begin with one prompt, whose keys and values they share; else each has its own.\n";
  }
  text +=
      "\nTokens/s are medians, of all texts together. rate: the weights and cache that decode reads, or the arithmetic "
      "of a prompt, per "
      "second.\n"
      "reached: rate / limit. The limits, measured between the tests, are reading a buffer as large as the weights "
      "for\n"
      "decode, and multiply-add in registers for a prompt, of int8 if matrices are quantised, of bf16 with "
      "--compute\n"
      "bf16. By number of threads:\n\n";
  for (const BenchLimit& limit : report.limits) {
    if (!limit.per_second.empty()) text += line_of(limit);
  }
  return text;
}

Json to_json(const BenchReport& report) {
  Json json{{"model", report.model},
            {"family", report.family},
            {"parameters", report.parameters},
            {"machine", report.machine},
            {"cores", report.cores},
            {"kernels", report.kernels},
            {"repetitions", report.repetitions},
            {"complete", report.complete},
            {"results", Json::array()},
            {"limits", Json::array()}};
  for (const BenchResult& result : report.results) {
    if (!result.tokens_per_second.empty()) json["results"].push_back(json_of(report, result));
  }
  for (const BenchLimit& limit : report.limits) {
    if (limit.per_second.empty()) continue;
    const bool int8 = limit.kind == LimitKind::multiply_add_int8;
    const char* rate = limit.bytes > 0 ? "bytes_per_second" : int8 ? "operations_per_second" : "flops_per_second";
    json["limits"].push_back({{"kind", text_of(limit.kind).key},
                              {"threads", limit.threads},
                              {"bytes", limit.bytes},
                              {rate, spread_json(limit.per_second)}});
  }
  return json;
}

}  // namespace minimind
