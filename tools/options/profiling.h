#pragma once

#include "runtime/engine/profile.h"

namespace minimind {

// Whether the environment variable MINIMIND_PROFILE is 1, rather than 0, empty or not there. Throws UsageError for
// anything else.
bool profile_wanted();

// Its table, on standard error.
void print_profile(const Profile& profile);

}  // namespace minimind
