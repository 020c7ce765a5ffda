#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "tools/http/http.h"

namespace minimind {

// What a handler has given for the answer of one request, until the thread of the connections takes it.
class HttpAnswerBuffer {
 public:
  enum class Phase { none, whole, pieces, finished, abandoned };

  // What was given since the last take().
  struct Taken {
    Phase phase = Phase::none;
    int status = 200;
    std::string content_type;
    HttpHeaders extra;
    std::string bytes;
  };

  // `notify` is called on the caller's thread when there is something to take: at once, or, if it is false, a piece of
  // a stream.
  explicit HttpAnswerBuffer(std::function<void(bool at_once)> notify) : notify_(std::move(notify)) {}

  // On the handler's threads.
  void send(int status, std::string_view content_type, std::string body, const HttpHeaders& extra);
  void start(std::string_view content_type);
  void write(std::string piece);
  void finish();
  void abandon();

  // On the thread of the connections.
  Taken take();
  void set_gone() { gone_ = true; }
  void set_behind(bool behind) { behind_ = behind; }

  const std::atomic<bool>& gone() const { return gone_; }
  const std::atomic<bool>& behind() const { return behind_; }

 private:
  // Notifies unless that is already under way. Consumes the lock.
  void notify(std::unique_lock<std::mutex> lock, bool at_once = true);

  const std::function<void(bool at_once)> notify_;
  std::atomic<bool> gone_{false}, behind_{false};
  std::mutex mutex_;
  Taken given_;
  bool notified_ = false;
  bool lacks_pieces_ = false;  // its client was gone: such a stream must not end as if it were whole
};

// Returns the interface of the buffer for a handler; when it is destroyed without an end, the answer is abandoned.
std::shared_ptr<HttpAnswer> make_http_answer(std::shared_ptr<HttpAnswerBuffer> buffer);

}  // namespace minimind
