#include "tools/http/loop.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "weights/base/error.h"

namespace minimind {
namespace {

constexpr std::chrono::milliseconds rest_time{4};

}  // namespace

HttpDescriptor http_descriptor(HttpLoop& loop, int descriptor) {
#ifdef _WIN32
  const auto native = native_socket(descriptor);
#else
  const int native = descriptor;
#endif
  return HttpDescriptor(loop, HttpDescriptor::protocol_type(AF_UNSPEC, 0), native);
}

void when_ready(HttpDescriptor& descriptor, HttpDescriptor::wait_type what, std::function<void()> ready) {
  descriptor.async_wait(what, [ready = std::move(ready)](const boost::system::error_code& error) {
    if (error != boost::asio::error::operation_aborted) ready();
  });
}

void post_to(HttpLoop& loop, std::function<void()> action) {
  boost::asio::post(loop, std::move(action));
}

HttpWakeup::HttpWakeup(HttpLoop& loop) : sockets_(), rest_(std::make_unique<HttpTimer>(loop)) {
  if (::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets_.data()) != 0) {
    throw Error(fmt::format("serve: cannot make a pair of sockets: {}", std::strerror(errno)));
  }
  called_ = std::make_unique<HttpDescriptor>(http_descriptor(loop, sockets_[0]));
  wait();
}

HttpWakeup::~HttpWakeup() {
  ::close(sockets_[1]);
}

void HttpWakeup::post(std::weak_ptr<HttpAnswered> connection, bool at_once) {
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return;
    waiting_.push_back(std::move(connection));
    has_pieces_ = has_pieces_ || !at_once;
    if (is_called_ || (is_resting_ && !at_once)) return;
    is_called_ = true;
  }
  const char byte = 0;
  ::send(sockets_[1], &byte, sizeof(byte), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void HttpWakeup::close() {
  called_ = nullptr;
  rest_ = nullptr;
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  waiting_.clear();
}

// On the thread of the connections, as the functions below.
void HttpWakeup::wait() {
  when_ready(*called_, HttpDescriptor::wait_read, [this] {
    char byte = 0;
    ::recv(sockets_[0], &byte, sizeof(byte), MSG_DONTWAIT);
    wait();
    look();
  });
}

void HttpWakeup::look() {
  std::vector<std::weak_ptr<HttpAnswered>> connections;
  bool rests = false;
  {
    const std::lock_guard lock(mutex_);
    is_called_ = false;
    connections.swap(waiting_);
    rests = std::exchange(has_pieces_, false);
  }
  for (const auto& connection : connections) {
    if (const auto found = connection.lock()) found->on_answer();
  }
  if (rests) rest();
}

void HttpWakeup::rest() {
  if (!rest_) return;
  {
    const std::lock_guard lock(mutex_);
    is_resting_ = true;
  }
  rest_->expires_after(rest_time);
  rest_->async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->end_rest();
  });
}

void HttpWakeup::end_rest() {
  {
    const std::lock_guard lock(mutex_);
    is_resting_ = false;
    if (waiting_.empty() || is_called_) return;
  }
  look();
}

}  // namespace minimind
