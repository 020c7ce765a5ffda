#pragma once

#include <string>

namespace minimind {

// Files under temporary names, ".NAME.PID-N.part" next to the file NAME that they become, so that renaming never
// copies. Who writes one keeps it locked, see lock_part().

// Another such name for the file at `path` each time, of this process.
std::string part_path(const std::string& path);

// Locks a part that was just opened, until it is closed: from then on remove_stale_parts() of other processes and
// machines leaves it alone. False when it has already been removed, or is about to be.
bool lock_part(int descriptor);

// Removes the parts of the file at `path` that killed processes left over. A part stays if it is locked or not this
// user's, if its file system has no locks, or if the process that it names runs on this machine and did so when the
// part was last written. What cannot be removed stays without a word.
void remove_stale_parts(const std::string& path);

}  // namespace minimind
