#include "tools/options/profiling.h"

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <string_view>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

// By Operation.
constexpr std::string_view operation_names[] = {"embed",      "rms_norm", "q, k, v", "rope",
                                                "attention",  "o_proj",   "router",  "gate, up",
                                                "activation", "down",     "lm_head", "barrier wait"};
static_assert(std::size(operation_names) == operation_count);

// `name`, the mean over the threads in microseconds per token, its share, and each thread's microseconds per token.
std::string row(std::string_view name, const std::vector<double>& seconds, const PassProfile& passes) {
  const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
  const double micros_per_token = 1e6 / static_cast<double>(passes.tokens);
  std::string line = fmt::format("  {:<14}{:>11.2f}{:>8.1f}%  ", name, mean * micros_per_token,
                                 passes.seconds > 0 ? 100 * mean / passes.seconds : 0);
  for (const double thread : seconds) line += fmt::format("{:>11.2f}", thread * micros_per_token);
  return line + "\n";
}

std::string table_of(const PassProfile& passes, std::string_view kind) {
  if (passes.passes == 0) return "";
  std::string text = fmt::format("{}: {} token{} in {} pass{}\n  {:<14}{:>11}{:>9}  ", kind, passes.tokens,
                                 passes.tokens == 1 ? "" : "s", passes.passes, passes.passes == 1 ? "" : "es", "",
                                 "us/token", "share");
  for (std::size_t i = 0; i < passes.threads.size(); ++i)
    text += fmt::format("{:>11}", fmt::format("thread {}", i + 1));
  text += "\n";

  std::vector<double> rest(passes.threads.size(), passes.seconds);
  for (std::size_t i = 0; i < operation_count; ++i) {
    std::vector<double> seconds;
    for (std::size_t thread = 0; thread < passes.threads.size(); ++thread) {
      seconds.push_back(passes.threads[thread].seconds(static_cast<Operation>(i)));
      rest[thread] -= seconds.back();
    }
    const bool unused = std::accumulate(seconds.begin(), seconds.end(), 0.0) == 0;
    if (!unused) text += row(operation_names[i], seconds, passes);
  }
  text += row("start and end", rest, passes);
  return text + row("all", std::vector(passes.threads.size(), passes.seconds), passes);
}

}  // namespace

bool profile_requested() {
  const char* value = std::getenv("MINIMIND_PROFILE");
  const std::string_view requested = value ? value : "";
  if (requested == "1") return true;
  if (requested.empty() || requested == "0") return false;
  throw UsageError(fmt::format("MINIMIND_PROFILE is {}, expected 1 for a profile or 0", quote(requested)));
}

std::string to_table(const Profile& profile) {
  return table_of(profile.batched, "prompt") + table_of(profile.single, "decode");
}

void print_profile(const Profile& profile) {
  std::fputs(to_table(profile).c_str(), stderr);
}

}  // namespace minimind
