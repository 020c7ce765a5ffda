#include "tools/options/profiling.h"

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "weights/io/error.h"
#include "weights/io/quote.h"

namespace minimind {

bool profile_requested() {
  const char* value = std::getenv("MINIMIND_PROFILE");
  const std::string_view requested = value ? value : "";
  if (requested == "1") return true;
  if (requested.empty() || requested == "0") return false;
  throw UsageError(fmt::format("MINIMIND_PROFILE is {}, expected 1 for a profile or 0", quote(requested)));
}

void print_profile(const Profile& profile) {
  std::fputs(to_table(profile).c_str(), stderr);
}

}  // namespace minimind
