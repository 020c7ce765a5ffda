#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/cases.h"
#include "tools/http/http.h"

namespace minimind {

// Collects an answer, instead of a connection.
class FakeAnswer : public HttpAnswer {
 public:
  void send(int status, std::string_view content_type, std::string body, const HttpHeaders& extra) override {
    const std::lock_guard lock(mutex_);
    status_ = status;
    type_ = content_type;
    body_ = std::move(body);
    headers_ = extra;
    end();
  }
  void start(std::string_view content_type) override {
    const std::lock_guard lock(mutex_);
    status_ = 200;
    type_ = content_type;
  }
  void write(std::string piece) override {
    std::unique_lock lock(mutex_);
    body_ += piece;
    if (++pieces_ == last_piece_) gone_ = true;
    if (pieces_ == last_read_) behind_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
  }
  void finish() override {
    const std::lock_guard lock(mutex_);
    end();
  }
  const std::atomic<bool>& gone() const override { return gone_; }
  const std::atomic<bool>& behind() const override { return behind_; }

  void disconnect() { gone_ = true; }
  // Disconnects with this piece of a stream.
  void disconnect_at(std::size_t piece) { last_piece_ = piece; }

  // Is behind from this piece of a stream on, until catch_up().
  void fall_behind_at(std::size_t piece) { last_read_ = piece; }
  void catch_up() { behind_ = false; }

  // Keeps the thread that writes the next piece of a stream, until release().
  void hold() { held_ = true; }
  void release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }

  // Waits for the end. Returns false if it does not come.
  bool wait(std::chrono::seconds most = longest_wait) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, most, [this] { return ended_; });
  }
  // Waits for a number of pieces.
  bool wait_for_pieces(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, longest_wait, [&] { return pieces_ >= count; });
  }

  bool has_ended() const {
    const std::lock_guard lock(mutex_);
    return ended_;
  }

  // After wait():
  int status() const { return status_; }
  const std::string& type() const { return type_; }
  const std::string& body() const { return body_; }
  const HttpHeaders& headers() const { return headers_; }
  nlohmann::ordered_json json() const { return nlohmann::ordered_json::parse(body_); }

  // The events of a stream, without the last, [DONE].
  std::vector<nlohmann::ordered_json> events() const {
    std::vector<nlohmann::ordered_json> events;
    const std::string prefix = "data: ", end = "\n\n";
    for (std::size_t at = 0; at < body_.size();) {
      const std::size_t stop = body_.find(end, at);
      const std::string event = body_.substr(at, stop - at);
      if (!event.starts_with(prefix) || stop == std::string::npos) return {};
      at = stop + end.size();
      if (event == "data: [DONE]") {
        has_done_ = at == body_.size();
      } else {
        events.push_back(nlohmann::ordered_json::parse(event.substr(prefix.size())));
      }
    }
    return events;
  }
  bool has_done() const { return has_done_; }  // after events()

 private:
  inline static const std::chrono::seconds longest_wait{60 * slowness};

  void end() {
    ended_ = true;
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> gone_ = false, behind_ = false;
  bool ended_ = false, held_ = false;
  int status_ = 0;
  std::size_t pieces_ = 0, last_piece_ = 0, last_read_ = 0;  // last_...: that the client takes, or reads; 0: all
  std::string type_, body_;
  HttpHeaders headers_;
  mutable bool has_done_ = false;
};

}  // namespace minimind
