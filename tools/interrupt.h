#pragma once

#include <atomic>

namespace minimind {

// From the first call on, Ctrl-C (SIGINT), SIGTERM and SIGHUP, the end of the terminal, set this flag instead of ending
// the program; a second one ends it as usual.
const std::atomic<bool>& watch_interrupts();

inline constexpr int interrupted_status = 130;

}  // namespace minimind
