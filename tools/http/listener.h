#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace minimind {

// A listening socket. Closed when destroyed, and its file is removed if it is a unix socket.
class HttpListener {
 public:
  HttpListener(HttpListener&& other) noexcept;
  HttpListener& operator=(HttpListener&&) = delete;
  ~HttpListener();

  int descriptor() const { return descriptor_; }
  // "http://127.0.0.1:8998" or "unix:/path".
  const std::string& address() const { return address_; }
  // 0 for a unix socket.
  std::uint16_t port() const { return port_; }
  // Whether the address is of the loopback interface, or the socket a unix socket.
  bool is_local() const { return is_local_; }

  // Listens on every address of a host name or address. Port 0: a free one, the same for all. Throws Error naming
  // --host or --port.
  static std::vector<HttpListener> on_host(const std::string& host, std::uint16_t port);

  // Listens on a unix socket that only the same user can connect to. Replaces the file of a server that ended without
  // removing it. Throws Error naming --socket, if another server listens there or if the file is not a socket.
  static HttpListener on_socket(const std::string& path);

 private:
  HttpListener(int descriptor, std::string address, std::uint16_t port, bool is_local)
      : descriptor_(descriptor), address_(std::move(address)), port_(port), is_local_(is_local) {}

  int descriptor_;
  std::string address_;
  std::uint16_t port_;
  bool is_local_;
  std::string file_;  // of a unix socket, with the numbers that identify it
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// The own address of a socket.
sockaddr_storage local_address(int descriptor);

// Whether the address is of the loopback interface.
bool is_loopback(const sockaddr_storage& address);

// "127.0.0.1:41234", "[::1]:41234" or "unix".
std::string address_text(const sockaddr_storage& address);

// What tells clients of other machines apart, as bytes: the address, but of IPv6 the half that a machine cannot choose.
// Empty for this machine.
std::string network_of(const sockaddr_storage& address);

}  // namespace minimind
