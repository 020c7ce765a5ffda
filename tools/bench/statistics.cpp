#include "tools/bench/statistics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>

#include "tools/options/options.h"
#include "weights/base/error.h"
#include "weights/base/quote.h"

namespace minimind {

Spread spread_of(std::vector<double> samples) {
  assert(!samples.empty());
  std::sort(samples.begin(), samples.end());
  const std::size_t middle = samples.size() / 2;
  const double median = samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  return {.median = median, .least = samples.front(), .most = samples.back()};
}

std::vector<std::string> parse_list(const std::string& text, const std::string& option) {
  if (text.empty()) throw UsageError(fmt::format("{}: the value is empty", option));
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::string part = text.substr(at, end - at);
    if (part.empty()) throw UsageError(fmt::format("{} {}: a value is empty", option, quote(text)));
    if (std::find(parts.begin(), parts.end(), part) != parts.end()) {
      throw UsageError(fmt::format("{} {}: {} is repeated", option, quote(text), quote(part)));
    }
    parts.push_back(std::move(part));
    at = end + 1;
  }
  return parts;
}

std::vector<std::size_t> parse_counts(const std::string& text, const std::string& option, std::size_t least,
                                      std::size_t most) {
  std::vector<std::size_t> counts;
  for (const std::string& part : parse_list(text, option)) {
    const std::size_t count = parse_whole_number(option, part, least, most);
    if (std::find(counts.begin(), counts.end(), count) != counts.end()) {
      throw UsageError(fmt::format("{} {}: {} is repeated", option, quote(text), count));
    }
    counts.push_back(count);
  }
  return counts;
}

}  // namespace minimind
