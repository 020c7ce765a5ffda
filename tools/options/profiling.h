#pragma once

#include <string>

#include "runtime/engine/profile.h"

namespace minimind {

// Returns whether the environment variable MINIMIND_PROFILE is 1. It may also be 0, empty or unset; throws UsageError
// for anything else.
bool profile_requested();

// Returns a table with one row per operation: microseconds per token (the mean over the threads), share of the total,
// and microseconds per token of each thread. Time outside every operation is the start and end of the team. Lines end
// with a newline; empty if nothing was profiled.
std::string to_table(const Profile& profile);

// Prints the table of a profile to stderr.
void print_profile(const Profile& profile);

}  // namespace minimind
