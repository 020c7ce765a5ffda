#include "runtime/generate/stop_filter.h"

#include <algorithm>
#include <utility>

namespace minimind {

StopFilter::StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, "");
}

std::string StopFilter::push(std::string_view text) {
  if (stopped_) return "";
  held_ += text;
  // The first to be complete, and of those the longest: so it does not matter how the text was cut.
  std::size_t begin = std::string::npos, end = std::string::npos;
  for (const std::string& stop : stops_) {
    const std::size_t at = held_.find(stop);
    if (at == std::string::npos || std::pair(at + stop.size(), at) >= std::pair(end, begin)) continue;
    begin = at;
    end = at + stop.size();
  }
  if (begin != std::string::npos) {
    stopped_ = true;
    held_.resize(begin);
    return std::exchange(held_, "");
  }
  std::size_t kept = 0;
  for (const std::string& stop : stops_) {
    std::size_t length = std::min(stop.size() - 1, held_.size());
    while (length > kept && !held_.ends_with(std::string_view(stop).substr(0, length))) --length;
    kept = std::max(kept, length);
  }
  std::string shown = held_.substr(0, held_.size() - kept);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopFilter::finish() {
  return std::exchange(held_, "");
}

}  // namespace minimind
