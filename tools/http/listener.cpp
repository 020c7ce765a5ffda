#include "tools/http/listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "tools/http/target.h"
#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr int backlog = 1024;

// A descriptor that is closed unless it is released.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }

  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0) {
    throw Error(
        fmt::format("--host: {} is not found ({}), expected an address of this machine such as 127.0.0.1 or "
                    "0.0.0.0",
                    quote(host), gai_strerror(failed)));
  }
  return {found, &freeaddrinfo};
}

[[noreturn]] void fail_to_listen(const std::string& address, std::uint16_t port, int error) {
  if (error == EADDRINUSE) {
    throw Error(
        fmt::format("--port: {} is in use, expected a free port; end the program that uses it, or choose "
                    "another with --port N; --port 0 finds a free one",
                    address));
  }
  if (error == EACCES) {
    throw Error(fmt::format("--port: {} needs the rights of an administrator, expected a port from 1024 on; this is {}",
                            address, port));
  }
  throw Error(fmt::format("--host: cannot listen on {}: {}; expected an address of this machine", address,
                          std::strerror(error)));
}

// "127.0.0.1" or "::1"; empty for a unix socket.
std::string ip_of(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof(text));
  } else if (address.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text, sizeof(text));
  }
  return text;
}

std::uint16_t port_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

void set_port(addrinfo& address, std::uint16_t port) {
  if (address.ai_family == AF_INET) reinterpret_cast<sockaddr_in*>(address.ai_addr)->sin_port = htons(port);
  if (address.ai_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(address.ai_addr)->sin6_port = htons(port);
}

// Returns the socket, or a negative errno.
int listen_on(const addrinfo& address) {
  Descriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() < 0) return -errno;
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0) return -errno;
  if (listen(socket.get(), backlog) != 0) return -errno;
  return socket.release();
}

std::string text_of(const addrinfo& address) {
  sockaddr_storage storage{};
  std::memcpy(&storage, address.ai_addr, address.ai_addrlen);
  return address_text(storage);
}

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path) || path.find('\0') != std::string::npos) {
    throw Error(fmt::format("--socket: {} has {} bytes, expected a path of 1 to {}", quote(path), path.size(),
                            sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Removes the file of a server that has ended. Throws Error if one still listens there.
void remove_stale_socket(const std::string& path, const sockaddr_un& address) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return;
  if (!S_ISSOCK(found.st_mode)) {
    throw Error(fmt::format("--socket: {} exists and is not a socket, expected a new path", quote(path)));
  }
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool connected =
      connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 || errno == EAGAIN;
  if (connected) {
    throw Error(fmt::format("--socket: {} is in use by another server, expected another path", quote(path)));
  }
  if (errno == ECONNREFUSED) ::unlink(path.c_str());
}

}  // namespace

sockaddr_storage local_address(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
  return address;
}

HttpListener::HttpListener(HttpListener&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      address_(std::move(other.address_)),
      port_(other.port_),
      is_local_(other.is_local_),
      file_(std::exchange(other.file_, {})),
      device_(other.device_),
      inode_(other.inode_) {}

HttpListener::~HttpListener() {
  struct stat now {};
  // Another server may have replaced the file.
  if (!file_.empty() && lstat(file_.c_str(), &now) == 0 && now.st_dev == device_ && now.st_ino == inode_) {
    ::unlink(file_.c_str());
  }
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::vector<HttpListener> HttpListener::on_host(const std::string& host, std::uint16_t port) {
  const Addresses addresses = resolve(host, port);
  std::vector<HttpListener> listeners;
  int error = 0;
  std::string failed;
  for (addrinfo* one = addresses.get(); one; one = one->ai_next) {
    if (port == 0 && !listeners.empty()) set_port(*one, listeners.front().port());
    const int socket = listen_on(*one);
    if (socket < 0) {
      // A name may have addresses of kinds that this machine lacks, but a port in use is an error.
      if (error == 0 || socket == -EADDRINUSE) error = -socket, failed = text_of(*one);
      continue;
    }
    const sockaddr_storage bound = local_address(socket);
    listeners.push_back(HttpListener(socket, "http://" + address_text(bound), port_of(bound), is_loopback(bound)));
  }
  if (listeners.empty() || error == EADDRINUSE) fail_to_listen(failed, port, error);
  return listeners;
}

HttpListener HttpListener::on_socket(const std::string& path) {
  const sockaddr_un address = unix_address(path);
  remove_stale_socket(path, address);
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const mode_t mask = umask(0177);  // only Linux has a mode of the socket itself, which the file would take
  const bool bound =
      socket.get() >= 0 && bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  umask(mask);
  if (!bound || listen(socket.get(), backlog) != 0) {
    throw Error(fmt::format("--socket: cannot listen on {}: {}; expected a path in a folder that can be written to",
                            quote(path), std::strerror(errno)));
  }
  struct stat created {};
  lstat(path.c_str(), &created);
  HttpListener listener(socket.release(), "unix:" + path, 0, true);
  listener.file_ = path;
  listener.device_ = created.st_dev;
  listener.inode_ = created.st_ino;
  return listener;
}

bool is_loopback(const sockaddr_storage& address) {
  return is_local_host(ip_of(address));
}

std::string address_text(const sockaddr_storage& address) {
  const std::string ip = ip_of(address);
  if (ip.empty()) return "unix";
  return fmt::format("{}:{}", address.ss_family == AF_INET6 ? "[" + ip + "]" : ip, port_of(address));
}

std::string network_of(const sockaddr_storage& address) {
  if (is_loopback(address)) return "";
  const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  const bool has_halves = address.ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&six);
  return has_halves ? std::string(reinterpret_cast<const char*>(&six), sizeof six / 2) : ip_of(address);
}

}  // namespace minimind
