#pragma once

#include "runtime/engine/profile.h"

namespace minimind {

// Returns whether the environment variable MINIMIND_PROFILE is 1. It may also be 0, empty or unset; throws UsageError
// for anything else.
bool profile_requested();

// Prints the table of a profile to stderr.
void print_profile(const Profile& profile);

}  // namespace minimind
