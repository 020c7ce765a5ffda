#include "tools/http/answer.h"

#include <utility>

namespace minimind {
namespace {

class BufferedAnswer final : public HttpAnswer {
 public:
  explicit BufferedAnswer(std::shared_ptr<HttpAnswerBuffer> buffer) : buffer_(std::move(buffer)) {}
  BufferedAnswer(const BufferedAnswer&) = delete;
  BufferedAnswer& operator=(const BufferedAnswer&) = delete;
  ~BufferedAnswer() override { buffer_->abandon(); }

  void send(int status, std::string_view content_type, std::string body, const HttpHeaders& extra) override {
    buffer_->send(status, content_type, std::move(body), extra);
  }
  void start(std::string_view content_type) override { buffer_->start(content_type); }
  void write(std::string piece) override { buffer_->write(std::move(piece)); }
  void finish() override { buffer_->finish(); }
  const std::atomic<bool>& gone() const override { return buffer_->gone(); }
  const std::atomic<bool>& behind() const override { return buffer_->behind(); }

 private:
  const std::shared_ptr<HttpAnswerBuffer> buffer_;
};

}  // namespace

void HttpAnswerBuffer::send(int status, std::string_view content_type, std::string body, const HttpHeaders& extra) {
  std::unique_lock lock(mutex_);
  if (given_.phase != Phase::none) return;
  given_.phase = Phase::whole;
  given_.status = status;
  given_.content_type = content_type;
  given_.extra = extra;
  given_.bytes = std::move(body);
  notify(std::move(lock));
}

void HttpAnswerBuffer::start(std::string_view content_type) {
  std::unique_lock lock(mutex_);
  if (given_.phase != Phase::none) return;
  given_.phase = Phase::pieces;
  given_.content_type = content_type;
  notify(std::move(lock));
}

void HttpAnswerBuffer::write(std::string piece) {
  std::unique_lock lock(mutex_);
  if (given_.phase != Phase::pieces || piece.empty()) return;
  if (gone_) {
    lacks_pieces_ = true;
    return;
  }
  given_.bytes += piece;
  notify(std::move(lock), false);
}

void HttpAnswerBuffer::finish() {
  std::unique_lock lock(mutex_);
  if (given_.phase != Phase::pieces || lacks_pieces_) return;
  given_.phase = Phase::finished;
  notify(std::move(lock));
}

void HttpAnswerBuffer::abandon() {
  std::unique_lock lock(mutex_);
  if (given_.phase == Phase::whole || given_.phase == Phase::finished) return;
  given_.phase = Phase::abandoned;
  notify(std::move(lock));
}

HttpAnswerBuffer::Taken HttpAnswerBuffer::take() {
  const std::lock_guard lock(mutex_);
  notified_ = false;
  std::string bytes = std::exchange(given_.bytes, {});
  Taken taken = given_;
  taken.bytes = std::move(bytes);
  return taken;
}

void HttpAnswerBuffer::notify(std::unique_lock<std::mutex> lock, bool at_once) {
  const bool first = !std::exchange(notified_, true);
  lock.unlock();
  if (first || at_once) notify_(at_once);
}

std::shared_ptr<HttpAnswer> make_http_answer(std::shared_ptr<HttpAnswerBuffer> buffer) {
  return std::make_shared<BufferedAnswer>(std::move(buffer));
}

}  // namespace minimind
