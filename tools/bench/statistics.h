#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace minimind {

// A summary of repeated measurements. The median ignores runs that other programs disturbed.
struct Spread {
  double median;  // of an even number of samples, the mean of the middle two
  double least, most;
};

// Summarizes samples, at least one.
Spread spread_of(std::vector<double> samples);

// Splits a list such as "f16,q8_0". Throws UsageError, naming `option`, if a part is empty or repeated.
std::vector<std::string> parse_list(const std::string& text, const std::string& option);

// Parses a list such as "1,2". Also throws UsageError if a part is not a whole number in [least, most].
std::vector<std::size_t> parse_counts(const std::string& text, const std::string& option, std::size_t least,
                                      std::size_t most);

}  // namespace minimind
