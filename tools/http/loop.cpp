#include "tools/http/loop.h"

#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

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
  return {loop, {AF_UNSPEC, 0}, native};
}

void when_ready(HttpDescriptor& descriptor, HttpDescriptor::wait_type what, std::function<void()> ready) {
  descriptor.async_wait(what, [ready = std::move(ready)](const boost::system::error_code& error) {
    if (error != boost::asio::error::operation_aborted) ready();
  });
}

void post_to(HttpLoop& loop, std::function<void()> action) {
  boost::asio::post(loop, std::move(action));
}

void HttpWakeup::post(std::weak_ptr<HttpAnswered> connection, bool at_once) {
  const std::lock_guard lock(mutex_);
  if (!loop_) return;
  waiting_.push_back(std::move(connection));
  has_pieces_ = has_pieces_ || !at_once;
  if (is_called_ || (is_resting_ && !at_once)) return;
  is_called_ = true;
  post_to(*loop_, [self = shared_from_this()] { self->look(); });
}

void HttpWakeup::close() {
  const std::lock_guard lock(mutex_);
  loop_ = nullptr;
  rest_ = nullptr;
  waiting_.clear();
}

// On the thread of the connections, as the functions below.
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
  const std::lock_guard lock(mutex_);
  if (!loop_) return;
  is_resting_ = true;
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
