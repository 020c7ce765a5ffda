#pragma once

#include <string>

namespace minimind {

// Files under temporary names, ".NAME.PID-N.part" next to their final name NAME, so that renaming never copies. The
// writer of a part keeps it locked, see lock_part().

// Returns a new temporary name of this process for the file at `path`.
std::string part_path(const std::string& path);

// Locks a newly opened part until it is closed, so that remove_stale_parts() of other processes and machines keeps it.
// Returns false if it has already been removed, or is about to be.
bool lock_part(int descriptor);

// Removes the parts of the file at `path` that killed processes left. Keeps a part that is locked, belongs to another
// user, or is on a file system without locks. Also keeps a part if its process is another one that runs on this machine
// and ran when the part was last written. Ignores parts that cannot be removed.
void remove_stale_parts(const std::string& path);

}  // namespace minimind
