// What the program calls of Linux, with the functions of macOS.

#if defined(__APPLE__)

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace {

// Closed in programs that this one starts, without waiting, and without a signal if the other side is gone.
int with_flags(int socket) {
  const int on = 1;
  if (socket < 0) return socket;
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  fcntl(socket, F_SETFL, O_NONBLOCK);
  setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
  return socket;
}

}  // namespace

int socket(int family, flagged_socket_type type, int protocol) {
  return with_flags(socket(family, type.type, protocol));
}

int socketpair(int family, flagged_socket_type type, int protocol, int* sockets) {
  const int result = socketpair(family, type.type, protocol, sockets);
  if (result == 0) {
    with_flags(sockets[0]);
    with_flags(sockets[1]);
  }
  return result;
}

int accept4(int descriptor, sockaddr* address, socklen_t* size, flagged_socket_type) {
  return with_flags(accept(descriptor, address, size));
}

int sched_getaffinity(int, std::size_t, cpu_set_t* set) {
  std::int32_t cores = 0;
  for (const char* const name : {"hw.perflevel0.physicalcpu", "hw.physicalcpu"}) {
    std::size_t size = sizeof cores;
    if (sysctlbyname(name, &cores, &size, nullptr, 0) == 0) break;
  }
  CPU_ZERO(set);
  for (int core = 0; core < std::clamp(cores, 1, CPU_SETSIZE); ++core) CPU_SET(core, set);
  return 0;
}

int ppoll(pollfd* descriptor, unsigned long, const timespec* time, const sigset_t* mask) {
  fd_set readable;
  FD_ZERO(&readable);
  FD_SET(descriptor->fd, &readable);
  const int ready = pselect(descriptor->fd + 1, &readable, nullptr, nullptr, time, mask);
  descriptor->revents = ready > 0 ? POLLIN : 0;
  return ready;
}

#endif
