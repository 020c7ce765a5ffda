#include "tools/serve/metrics.h"

#include <fmt/core.h>

#include <string_view>

namespace minimind {
namespace {

class MetricsText {
 public:
  // `prefix` is the start of all names.
  explicit MetricsText(std::string_view prefix) : prefix_(prefix) {}

  void head(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP {0}{1} {2}\n# TYPE {0}{1} {3}\n", prefix_, name, help, type);
  }

  template <class Value>
  void value(std::string_view name, const std::string& labels, Value value) {
    text_ += fmt::format("{}{}{} {}\n", prefix_, name, labels.empty() ? "" : "{" + labels + "}", value);
  }

  template <class Value>
  void single(std::string_view name, std::string_view type, std::string_view help, Value its) {
    head(name, type, help);
    value(name, "", its);
  }

  void histogram(const std::string& name, const std::string& labels, const Histogram& histogram) {
    const std::string others = labels.empty() ? "" : labels + ",";
    for (std::size_t i = 0; i < Histogram::limits.size(); ++i) {
      value(name + "_bucket", fmt::format("{}le=\"{}\"", others, Histogram::limits[i]), histogram.at_most(i));
    }
    value(name + "_bucket", others + "le=\"+Inf\"", histogram.count());
    value(name + "_sum", labels, histogram.sum());
    value(name + "_count", labels, histogram.count());
  }

  std::string take() { return std::move(text_); }

 private:
  const std::string_view prefix_;
  std::string text_;
};

std::string model_label(const std::string& name) {
  std::string label = "model_name=\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') label += '\\';
    label += c == '\n' ? ' ' : c;
  }
  return label + '"';
}

// What vLLM counts, by its names.
std::string vllm_text(const std::map<std::string, EngineCounts>& models) {
  MetricsText text("vllm:");
  const auto each = [&](std::string_view name, std::string_view type, std::string_view help, auto count_of) {
    text.head(name, type, help);
    for (const auto& [model, counts] : models) text.value(name, model_label(model), count_of(counts));
  };
  const auto histogram = [&](const std::string& name, std::string_view help, auto histogram_of) {
    text.head(name, "histogram", help);
    for (const auto& [model, counts] : models) text.histogram(name, model_label(model), histogram_of(counts));
  };
  each("num_requests_running", "gauge", "Texts being generated.", [](const EngineCounts& of) { return of.running; });
  each("num_requests_waiting", "gauge", "Texts in the queue.", [](const EngineCounts& of) { return of.waiting; });
  each("kv_cache_usage_perc", "gauge", "Part of the memory of keys and values that is in use, 0 to 1.",
       [](const EngineCounts& of) {
         return of.kv_budget == 0 ? 0.0 : static_cast<double>(of.kv_bytes) / static_cast<double>(of.kv_budget);
       });
  each("prompt_tokens_total", "counter", "Tokens of prompts.",
       [](const EngineCounts& of) { return of.prompt_tokens + of.cached_tokens; });
  each("generation_tokens_total", "counter", "Tokens generated.",
       [](const EngineCounts& of) { return of.generated_tokens; });
  histogram("time_to_first_token_seconds", "Time from a request to the first token of a text.",
            [](const EngineCounts& of) { return of.first_token_seconds; });
  const std::string gap_help = "Time between the tokens of a text.";
  for (const char* const name : {"inter_token_latency_seconds", "time_per_output_token_seconds"}) {
    histogram(name, gap_help, [](const EngineCounts& of) { return of.token_gap_seconds; });
  }
  return text.take();
}

}  // namespace

std::string metrics_text(const std::map<std::pair<std::string, int>, std::uint64_t>& answers,
                         const std::map<std::string, EngineCounts>& models) {
  EngineCounts counts;
  for (const auto& [name, its] : models) counts += its;
  MetricsText text("minimind_");
  text.head("requests_total", "counter", "Requests answered, by route and status.");
  for (const auto& [key, count] : answers) {
    text.value("requests_total", fmt::format("route=\"{}\",status=\"{}\"", key.first, key.second), count);
  }
  text.single("prompt_tokens_total", "counter", "Tokens of prompts that were computed.", counts.prompt_tokens);
  text.single("cached_tokens_total", "counter", "Tokens of prompts that were in the cache.", counts.cached_tokens);
  text.single("generated_tokens_total", "counter", "Tokens generated.", counts.generated_tokens);
  text.single("texts_total", "counter", "Texts that have ended.", counts.texts);
  text.single("abandoned_texts_total", "counter", "Texts whose client disconnected.", counts.abandoned);
  text.single("texts_waiting", "gauge", "Texts in the queue.", counts.waiting);
  text.single("texts_running", "gauge", "Texts being generated.", counts.running);
  text.single("kv_cache_bytes", "gauge", "Memory of keys and values in use or kept for later prompts.",
              counts.kv_bytes);
  text.single("kv_cache_limit_bytes", "gauge", "Memory that keys and values may take.", counts.kv_budget);
  text.head("step_seconds", "histogram", "Time of a step of all texts.");
  text.histogram("step_seconds", "", counts.step_seconds);
  text.head("first_token_seconds", "histogram", "Time from a request to the first token of a text.");
  text.histogram("first_token_seconds", "", counts.first_token_seconds);
  text.head("token_gap_seconds", "histogram", "Time between the tokens of a text.");
  text.histogram("token_gap_seconds", "", counts.token_gap_seconds);
  return text.take() + vllm_text(models);
}

}  // namespace minimind
