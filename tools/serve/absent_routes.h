#pragma once

#include <string>

namespace minimind {

// Returns the message for a path that the server does not have: with the reason, if it is one of another server's that
// a small model has no honest answer for.
std::string no_such_route(const std::string& path);

}  // namespace minimind
