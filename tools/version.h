#pragma once

#include <string>

namespace minimind {

// Returns the text of --version: the version, the commit, the compiler, the instruction sets of this machine, and the
// versions of the libraries whose code is within the program or which it loads.
std::string version_text();

}  // namespace minimind
