#include "tools/serve/service_manager.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "weights/base/text.h"

namespace minimind {

std::string notify_service_manager(const std::string& state) {
  const char* const given = std::getenv("NOTIFY_SOCKET");
  const std::string_view name = given ? given : "";
  if (name.empty()) return "";
  const auto failed = [&](std::string_view reason) {
    return fmt::format("NOTIFY_SOCKET is {}, which cannot be told {}: {}", quote(name), state, reason);
  };
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const bool is_abstract = name.front() == '@';
  if ((!is_abstract && name.front() != '/') || name.size() >= sizeof address.sun_path) {
    return failed("expected a path or @ and a name of fewer than 108 bytes");
  }
  name.copy(address.sun_path, name.size());
  if (is_abstract) address.sun_path[0] = '\0';
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return failed(std::strerror(errno));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (is_abstract ? 0 : 1));
  const ssize_t sent = ::sendto(socket, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                                reinterpret_cast<const sockaddr*>(&address), size);
  const int error = errno;
  ::close(socket);
  return sent < 0 ? failed(std::strerror(error)) : "";
}

}  // namespace minimind
