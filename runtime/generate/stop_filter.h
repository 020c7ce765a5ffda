#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace minimind {

// Watches a stream of text for stop strings. Text that may be the beginning of one is held back until it is known not
// to be, so that nothing of a stop string is ever let through.
class StopFilter {
 public:
  // Empty strings never stop.
  explicit StopFilter(std::vector<std::string> stops);

  // The text that may be shown now. After a stop string was found, which ends just before the first of them, everything
  // else is swallowed.
  std::string push(std::string_view text);

  // What was held back at the end of the stream.
  std::string finish();

  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace minimind
