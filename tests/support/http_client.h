#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace minimind {

struct HttpReply {
  int status = 0;  // 0: the connection ended before a whole head
  std::string head;
  std::map<std::string, std::string> headers;  // names as sent
  std::string body;
  bool is_complete = false;
};

// A client that sends bytes as they are given, through its own socket, so that tests control every byte.
class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port, int receive_buffer = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect_to(address);
  }
  explicit HttpClient(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    connect_to(address);
  }
  HttpClient(HttpClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), received_(std::move(other.received_)) {}
  HttpClient& operator=(HttpClient&&) = delete;
  ~HttpClient() { close(); }

  // Returns false if the server has closed the connection.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  // Sends what the system takes. Returns how many bytes; 0 if it takes none within the time.
  std::size_t send_some(std::string_view bytes, std::chrono::milliseconds within) {
    pollfd waiting{socket_, POLLOUT, 0};
    if (::poll(&waiting, 1, static_cast<int>(within.count())) != 1) return 0;
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return count > 0 ? static_cast<std::size_t>(count) : 0;
  }

  void end_sending() { ::shutdown(socket_, SHUT_WR); }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  // Closes so that the server receives a reset.
  void reset() {
    const linger off{1, 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
    close();
  }

  // Reads one answer, however its length is given. An interim answer such as 100 is one too.
  HttpReply read(bool is_head = false) {
    HttpReply reply;
    while (received_.find("\r\n\r\n") == std::string::npos) {
      if (!receive()) return reply;
    }
    reply.head = take(received_.find("\r\n\r\n") + 4);
    reply.status = std::atoi(reply.head.substr(reply.head.find(' ') + 1).c_str());
    parse_fields(reply);
    const bool has_no_body = is_head || reply.status < 200 || reply.status == 204 || reply.status == 304;
    reply.is_complete = has_no_body || read_body(reply);
    return reply;
  }

  // Sends a request and reads its answer.
  HttpReply ask(std::string_view request) {
    send(request);
    return read(request.starts_with("HEAD "));
  }

  // Waits for the server to close the connection, and drops what it still sends.
  bool is_closed(std::chrono::milliseconds within = std::chrono::seconds(10)) {
    const auto end = std::chrono::steady_clock::now() + within;
    while (std::chrono::steady_clock::now() < end) {
      if (!receive(std::chrono::milliseconds(10)) && is_ended_) return true;
    }
    return false;
  }

  // Receives more bytes. Returns false at the end of the connection, or after the time.
  bool receive(std::chrono::milliseconds within = std::chrono::seconds(20), std::size_t most = 65536) {
    pollfd waiting{socket_, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(within.count())) != 1) return false;
    char bytes[65536];
    const ssize_t count = ::recv(socket_, bytes, std::min(most, sizeof(bytes)), 0);
    is_ended_ = count <= 0;
    was_reset_ = count < 0 && errno == ECONNRESET;
    if (is_ended_) return false;
    received_.append(bytes, static_cast<std::size_t>(count));
    return true;
  }

  const std::string& received() const { return received_; }

  // Whether the connection ended with a reset.
  bool was_reset() const { return was_reset_; }

 private:
  template <class Address>
  void connect_to(const Address& address) {
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      throw std::runtime_error(std::string("cannot connect: ") + std::strerror(errno));
    }
  }

  std::string take(std::size_t count) {
    std::string taken = received_.substr(0, count);
    received_.erase(0, count);
    return taken;
  }

  static void parse_fields(HttpReply& reply) {
    for (std::size_t at = reply.head.find("\r\n") + 2; at + 2 < reply.head.size();) {
      const std::size_t end = reply.head.find("\r\n", at), colon = reply.head.find(": ", at);
      if (colon < end) reply.headers[reply.head.substr(at, colon - at)] = reply.head.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
  }

  bool read_body(HttpReply& reply) {
    if (reply.headers.contains("Transfer-Encoding")) return read_chunks(reply);
    if (!reply.headers.contains("Content-Length")) {
      while (receive()) continue;
      reply.body = take(received_.size());
      return is_ended_;
    }
    const std::size_t length = std::stoul(reply.headers["Content-Length"]);
    while (received_.size() < length && receive()) continue;
    reply.body = take(length);
    return reply.body.size() == length;
  }

  bool read_chunks(HttpReply& reply) {
    for (;;) {
      while (received_.find("\r\n") == std::string::npos) {
        if (!receive()) return false;
      }
      const std::size_t length = std::stoul(received_, nullptr, 16);
      take(received_.find("\r\n") + 2);
      while (received_.size() < length + 2) {
        if (!receive()) return false;
      }
      reply.body += take(length);
      take(2);
      if (length == 0) return true;
    }
  }

  int socket_;
  std::string received_;
  bool is_ended_ = false, was_reset_ = false;
};

}  // namespace minimind
