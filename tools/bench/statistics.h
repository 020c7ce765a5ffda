#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace minimind {

// What is left of repeated measurements. The median shrugs off the runs that something else on the machine disturbed.
struct Spread {
  double median;  // the mean of the two in the middle of an even number
  double least, most;
};

// Of at least one number.
Spread spread_of(std::vector<double> samples);

// "f16,q8_0" in parts. Throws UsageError, naming `option`, when a part is empty or there twice.
std::vector<std::string> parse_list(const std::string& text, const std::string& option);

// "1,2". Throws UsageError as well for what is no number, or none in [least, most].
std::vector<std::size_t> parse_counts(const std::string& text, const std::string& option, std::size_t least,
                                      std::size_t most);

}  // namespace minimind
