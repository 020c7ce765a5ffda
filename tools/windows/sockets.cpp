// Sockets, as POSIX has them.

#include "tools/windows/sockets.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "tools/windows/system.h"

namespace minimind::windows {
namespace {

constexpr int range_of_sockets = 1 << 30;

int descriptor_of(SOCKET socket) {
  return static_cast<int>(socket) | range_of_sockets;
}

int fail_of_socket() {
  switch (WSAGetLastError()) {
    case WSAEWOULDBLOCK:
      errno = EAGAIN;
      break;
    case WSAEINTR:
      errno = EINTR;
      break;
    case WSAEADDRINUSE:
      errno = EADDRINUSE;
      break;
    case WSAEACCES:
      errno = EACCES;
      break;
    case WSAEADDRNOTAVAIL:
      errno = EADDRNOTAVAIL;
      break;
    case WSAEAFNOSUPPORT:
      errno = EAFNOSUPPORT;
      break;
    case WSAECONNREFUSED:
      errno = ECONNREFUSED;
      break;
    case WSAECONNABORTED:
      errno = ECONNABORTED;
      break;
    case WSAECONNRESET:
      errno = ECONNRESET;
      break;
    case WSAEMFILE:
      errno = EMFILE;
      break;
    case WSAENOBUFS:
      errno = ENOBUFS;
      break;
    default:
      errno = EIO;
  }
  return -1;
}

int checked(int result) {
  return result == SOCKET_ERROR ? fail_of_socket() : result;
}

void start() {
  static const int started = [] {
    WSADATA data;
    return WSAStartup(MAKEWORD(2, 2), &data);
  }();
  static_cast<void>(started);
}

void never_wait(SOCKET socket) {
  unsigned long on = 1;
  ioctlsocket(socket, FIONBIO, &on);
}

const bool started = (start(), true);

}  // namespace

bool is_socket(int descriptor) {
  return descriptor >= range_of_sockets;
}

int close_socket(int descriptor) {
  return checked(closesocket(native_socket(descriptor)));
}

short poll_socket(int descriptor, short) {
  WSAPOLLFD one{native_socket(descriptor), POLLRDNORM, 0};
  return WSAPoll(&one, 1, 0) == 1 ? one.revents & (POLLHUP | POLLERR) : 0;
}

}  // namespace minimind::windows

using namespace minimind::windows;

// The C library has numbers for these, but no words.
extern "C" char* strerror(int error) {
  switch (error) {
    case EADDRINUSE:
      return const_cast<char*>("Address already in use");
    case EADDRNOTAVAIL:
      return const_cast<char*>("Cannot assign requested address");
    case EAFNOSUPPORT:
      return const_cast<char*>("Address family not supported by protocol");
    case ECONNABORTED:
      return const_cast<char*>("Connection aborted");
    case ECONNREFUSED:
      return const_cast<char*>("Connection refused");
    case ECONNRESET:
      return const_cast<char*>("Connection reset by peer");
    case ENOBUFS:
      return const_cast<char*>("No buffer space available");
    default:
      return _sys_errlist[error >= 0 && error < _sys_nerr ? error : _sys_nerr];
  }
}

SOCKET native_socket(int descriptor) {
  return static_cast<SOCKET>(descriptor & ~range_of_sockets);
}

int socket(int family, flagged_socket_type type, int) {
  const SOCKET made = WSASocketW(family, type.type, 0, nullptr, 0, WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);
  if (made == INVALID_SOCKET) return fail_of_socket();
  never_wait(made);
  return descriptor_of(made);
}

// Each is bound to a free port, and then gets nothing but what the other one sends.
int socketpair(int, flagged_socket_type type, int, int* sockets) {
  std::array<sockaddr_in, 2> addresses{};
  for (int i = 0; i < 2; ++i) {
    addresses[i].sin_family = AF_INET;
    addresses[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto address = reinterpret_cast<sockaddr*>(&addresses[i]);
    socklen_t size = sizeof(sockaddr_in);
    sockets[i] = socket(AF_INET, type, 0);
    if (sockets[i] == -1 || bind(sockets[i], address, sizeof(sockaddr_in)) == -1 ||
        getsockname(sockets[i], address, &size) == -1) {
      return -1;
    }
  }
  const auto connect_to = [&](int from, int to) {
    return connect(sockets[from], reinterpret_cast<const sockaddr*>(&addresses[to]), sizeof(sockaddr_in));
  };
  return connect_to(0, 1) == -1 || connect_to(1, 0) == -1 ? -1 : 0;
}

int accept4(int descriptor, sockaddr* address, socklen_t* size, flagged_socket_type) {
  const SOCKET accepted = ::accept(native_socket(descriptor), address, size);
  if (accepted == INVALID_SOCKET) return fail_of_socket();
  SetHandleInformation(reinterpret_cast<HANDLE>(accepted), HANDLE_FLAG_INHERIT, 0);
  never_wait(accepted);
  return descriptor_of(accepted);
}

int bind(int descriptor, const sockaddr* address, std::size_t size) {
  return checked(::bind(native_socket(descriptor), address, static_cast<int>(size)));
}

int connect(int descriptor, const sockaddr* address, std::size_t size) {
  return checked(::connect(native_socket(descriptor), address, static_cast<int>(size)));
}

int listen(int descriptor, int backlog) {
  return checked(::listen(native_socket(descriptor), backlog));
}

int getsockname(int descriptor, sockaddr* address, socklen_t* size) {
  return checked(::getsockname(native_socket(descriptor), address, size));
}

// SO_REUSEADDR would let another program take the port: here, a port is free at once without it.
int setsockopt(int descriptor, int level, int option, const int* value, std::size_t size) {
  if (level == SOL_SOCKET && option == SO_REUSEADDR) option = SO_EXCLUSIVEADDRUSE;
  return checked(::setsockopt(native_socket(descriptor), level, option, reinterpret_cast<const char*>(value),
                              static_cast<int>(size)));
}

int setsockopt(int descriptor, int level, int option, const linger* value, std::size_t size) {
  return checked(::setsockopt(native_socket(descriptor), level, option, reinterpret_cast<const char*>(value),
                              static_cast<int>(size)));
}

ssize_t recv(int descriptor, char* bytes, std::size_t size, int flags) {
  return checked(::recv(native_socket(descriptor), bytes, static_cast<int>(size), flags));
}

ssize_t send(int descriptor, const char* bytes, std::size_t size, int flags) {
  return checked(::send(native_socket(descriptor), bytes, static_cast<int>(size), flags));
}

ssize_t sendto(int descriptor, const char* bytes, std::size_t size, int flags, const sockaddr* to, int to_size) {
  return checked(::sendto(native_socket(descriptor), bytes, static_cast<int>(size), flags, to, to_size));
}

int shutdown(int descriptor, int how) {
  return checked(::shutdown(native_socket(descriptor), how));
}

int fcntl(int descriptor, int command, int) {
  if (command != F_DUPFD_CLOEXEC) return 0;
  WSAPROTOCOL_INFOW known;
  if (WSADuplicateSocketW(native_socket(descriptor), GetCurrentProcessId(), &known) != 0) return fail_of_socket();
  const SOCKET copy = WSASocketW(FROM_PROTOCOL_INFO, FROM_PROTOCOL_INFO, FROM_PROTOCOL_INFO, &known, 0,
                                 WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);
  return copy == INVALID_SOCKET ? fail_of_socket() : descriptor_of(copy);
}

// There is no such limit.
int getrlimit(int, rlimit*) {
  return -1;
}

int setrlimit(int, const rlimit*) {
  return -1;
}
