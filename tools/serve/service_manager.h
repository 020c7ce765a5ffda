#pragma once

#include <string>

namespace minimind {

// Tells the service manager that started the program, as systemd does with Type=notify, of a state such as "READY=1":
// sends it to the socket that $NOTIFY_SOCKET names, a path or, after an @, an abstract name. Returns the reason if that
// fails; empty if it is sent or no service manager asks for it. See sd_notify(3).
std::string notify_service_manager(const std::string& state);

}  // namespace minimind
