#include "tools/serve/metrics.h"

#include <fmt/core.h>

#include <string_view>

namespace minimind {
namespace {

class MetricsText {
 public:
  void head(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP minimind_{} {}\n# TYPE minimind_{} {}\n", name, help, name, type);
  }

  template <class Value>
  void value(std::string_view name, const std::string& labels, Value value) {
    text_ += fmt::format("minimind_{}{} {}\n", name, labels.empty() ? "" : "{" + labels + "}", value);
  }

  template <class Value>
  void single(std::string_view name, std::string_view type, std::string_view help, Value its) {
    head(name, type, help);
    value(name, "", its);
  }

  void histogram(const std::string& name, std::string_view help, const Histogram& histogram) {
    head(name, "histogram", help);
    for (std::size_t i = 0; i < Histogram::limits.size(); ++i) {
      value(name + "_bucket", fmt::format("le=\"{}\"", Histogram::limits[i]), histogram.at_most(i));
    }
    value(name + "_bucket", "le=\"+Inf\"", histogram.count());
    value(name + "_sum", "", histogram.sum());
    value(name + "_count", "", histogram.count());
  }

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

std::string metrics_text(const std::map<std::pair<std::string, int>, std::uint64_t>& answers,
                         const EngineCounts& counts) {
  MetricsText text;
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
  text.histogram("step_seconds", "Time of a step of all texts.", counts.step_seconds);
  text.histogram("first_token_seconds", "Time from a request to the first token of a text.",
                 counts.first_token_seconds);
  return text.take();
}

}  // namespace minimind
