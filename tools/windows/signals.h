#pragma once

namespace minimind::windows {

// Calls the handler of a signal, on this thread.
void deliver(int signal);

// An event of the system, which is set when a signal was delivered.
void* signal_event();

}  // namespace minimind::windows
