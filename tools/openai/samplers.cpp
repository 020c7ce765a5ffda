#include "tools/openai/samplers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/openai/request_error.h"

namespace minimind {
namespace {

// The parameters of each step, in the order in which a Sampler takes the steps.
struct SamplerStep {
  std::string_view name;
  std::array<std::string_view, 3> parameters;  // empty: none
};
constexpr SamplerStep steps[] = {
    {"temperature", {"temperature"}},
    {"penalties", {"repeat_penalty", "presence_penalty", "frequency_penalty"}},
    {"dry", {"dry_multiplier"}},
    {"top_k", {"top_k"}},
    {"typ_p", {"typical_p"}},
    {"top_p", {"top_p"}},
    {"min_p", {"min_p"}},
    {"top_n_sigma", {}},  // never on, as the next
    {"xtc", {}},
};

std::vector<std::string_view> names_of_steps() {
  std::vector<std::string_view> names;
  for (const SamplerStep& step : steps) names.push_back(step.name);
  return names;
}

std::vector<std::string> read_list(const BodyFields& body, const ChatJson& list) {
  if (!list.is_array()) body.fail("samplers", "a list of steps of sampling");
  std::vector<std::string> names;
  for (const ChatJson& each : list) {
    std::string name = each.is_string() ? each.get<std::string>() : std::string(kind_of(each));
    if (name == "typical_p") name = "typ_p";
    const bool is_step = each.is_string() && std::ranges::count(steps, name, &SamplerStep::name) > 0;
    if (!is_step || std::ranges::count(names, name) > 0) {
      throw RequestError(fmt::format("samplers has {}{}, expected each of {} once at most", quote(name),
                                     is_step ? " twice" : "", fmt::join(names_of_steps(), ", ")),
                         "samplers");
    }
    names.push_back(std::move(name));
  }
  return names;
}

// Whether `before` may as well come after `step`, which a Sampler takes first. The temperature scales logits: that
// keeps their order, for top_k, and what the repeat penalty multiplies; a ratio of probabilities gets it as an
// exponent.
bool may_swap(std::string_view before, std::string_view step, SamplingOptions& sampling) {
  if (step == "top_k") return before == "min_p";  // neither changes what the other one compares
  if (step != "temperature") return false;
  if (before == "min_p") sampling.min_p = std::pow(sampling.min_p, 1 / sampling.temperature);
  const bool only_multiplies = sampling.presence_penalty == 0 && sampling.frequency_penalty == 0;
  return before == "top_k" || before == "min_p" || (before == "penalties" && only_multiplies);
}

}  // namespace

void read_samplers(const BodyFields& body, GenerationParameters& parameters) {
  const ChatJson* const list = body.find("samplers");
  if (!list) return;
  const std::vector<std::string> names = read_list(body, *list);
  const bool is_greedy = !body.flag("do_sample").value_or(true);
  std::vector<std::string_view> are_on;  // in the order of a Sampler
  for (const SamplerStep& step : steps) {
    const bool is_listed = std::ranges::count(names, step.name) > 0;
    bool is_on = false;
    for (const GenerationParameter& parameter : generation_parameters) {
      if (std::ranges::count(step.parameters, parameter.name) == 0) continue;
      const bool stays = is_listed || (is_greedy && parameter.name == "temperature");
      if (!stays) parameter.set(parameters, parameter.off);
      is_on = is_on || parameter.of(parameters) != parameter.off;
    }
    const bool scales = step.name != "temperature" || parameters.sampling.temperature != 0;
    if (is_listed && is_on && scales) are_on.push_back(step.name);
  }
  for (std::size_t i = 0; i < are_on.size(); ++i) {
    for (std::size_t j = i + 1; j < are_on.size(); ++j) {
      const bool is_swapped = std::ranges::find(names, are_on[j]) < std::ranges::find(names, are_on[i]);
      if (!is_swapped || may_swap(are_on[j], are_on[i], parameters.sampling)) continue;
      throw RequestError(fmt::format("samplers has {} before {}, expected the server's order: {}", are_on[j], are_on[i],
                                     fmt::join(names_of_steps(), ", ")),
                         "samplers");
    }
  }
}

}  // namespace minimind
