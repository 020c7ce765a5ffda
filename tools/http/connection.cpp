#include "tools/http/connection.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#ifdef __linux__
#include <linux/sockios.h>
#endif

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <random>
#include <utility>

#include "tools/http/head.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t largest_read_ahead = std::size_t{64} << 10;  // bytes of requests that are not yet due
constexpr auto linger_time = 2s;
constexpr auto short_linger_time = 200ms;  // while the server stops
constexpr auto grace = 250ms;              // for the answer of a client that sends nothing more, and may be gone

constexpr std::size_t longest_id = 128;

// The client's own id, so that its log and the server's can be compared; a new one if it has none or an unsuitable one.
std::string request_id_of(const HttpRequest& request) {
  const std::string* const given = request.header("x-request-id");
  const auto is_visible = [](char c) { return c > ' ' && c < 0x7f; };
  if (given && !given->empty() && given->size() <= longest_id && std::ranges::all_of(*given, is_visible)) return *given;
  static const unsigned start = std::random_device{}();
  static std::atomic<std::uint64_t> count = 0;
  return fmt::format("req-{:08x}-{}", start, ++count);
}

}  // namespace

HttpConnection::HttpConnection(HttpShared& shared, int descriptor, std::string client, std::string network,
                               bool checks_host)
    : shared_(shared),
      socket_(descriptor),
      descriptor_(http_descriptor(shared.loop, descriptor)),
      client_(std::move(client)),
      network_(std::move(network)),
      checks_host_(checks_host),
      deadline_(Clock::now() + shared.settings.head_timeout),
      progress_(Clock::now()),
      reader_(std::make_unique<HttpReader>(shared.settings.request)),
      request_time_(Clock::now()) {}

void HttpConnection::start() {
  wait_to_read();
}

void HttpConnection::refuse() {
  is_refused_ = true;
  guarded([this] {
    fail({503, "too_many_connections", "server: has too many connections; try again later"}, {{"Retry-After", "1"}});
  });
}

// Nothing that one client causes, such as memory that runs out, ends the others.
void HttpConnection::guarded(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception&) {
    drop("failed");
  }
}

void HttpConnection::wait_to_read() {
  if (is(State::closed) || is_reading_ || is_ended_) return;
  if (is_full()) return shared_.on_full();
  is_reading_ = true;
  when_ready(descriptor_, HttpDescriptor::wait_read, [self = shared_from_this()] {
    self->is_reading_ = false;
    self->guarded([&] { self->on_readable(); });
  });
}

void HttpConnection::wait_to_write() {
  if (is(State::closed) || is_writing_) return;
  is_writing_ = true;
  when_ready(descriptor_, HttpDescriptor::wait_write, [self = shared_from_this()] {
    self->is_writing_ = false;
    self->guarded([&] { self->flush(); });
  });
}

void HttpConnection::on_readable() {
  if (is(State::closed)) return;
  std::vector<char>& scratch = shared_.scratch;
  const ssize_t count = ::recv(socket_, scratch.data(), scratch.size(), MSG_DONTWAIT);
  if (count < 0 && errno != EAGAIN && errno != EINTR) return drop("disconnected");
  if (count == 0) return on_end_of_input();
  if (count > 0 && !is(State::lingering) && !is(State::closing)) {
    in_.append(scratch.data(), static_cast<std::size_t>(count));
    process();
  }
  wait_to_read();
}

void HttpConnection::on_end_of_input() {
  is_ended_ = true;
  switch (state_) {
    case State::answering:
      return set_gone();
    case State::closing:  // the answer is still being sent
      return;
    default:
      return close();
  }
}

// Marks the answer as pointless. One that is made, or ready at once, is still sent: the client may have ended only its
// own side.
void HttpConnection::set_gone() {
  if (is_answered_) return;
  answer_->set_gone();
  deadline_ = std::min(deadline_, Clock::now() + grace);
}

void HttpConnection::process() {
  while (is(State::head) || is(State::body)) {
    const std::size_t consumed = reader_->read(rest());
    in_at_ += consumed;
    if (reader_->state() == HttpReader::State::failed) return fail(reader_->failure());
    if (reader_->state() == HttpReader::State::ready) {
      if (!accept_head()) return;
      continue;
    }
    if (reader_->state() == HttpReader::State::done) return dispatch();
    if (!count_body()) return;
    if (is_ended_) return close();
    in_.erase(0, std::exchange(in_at_, 0));
    set_reading_deadline(consumed);
    if (is(State::body) && in_.empty() && std::exchange(awaits_continue_, false)) {
      append("HTTP/1.1 100 Continue\r\n\r\n");
      flush();
    }
    return;
  }
}

void HttpConnection::set_reading_deadline(std::size_t consumed) {
  if (is(State::head)) {
    if (in_.empty() || std::exchange(has_begun_, true)) return;
    request_time_ = Clock::now();
    deadline_ = request_time_ + shared_.settings.head_timeout;
    return;
  }
  since_deadline_ += consumed;
  if (since_deadline_ < body_step) return;
  since_deadline_ = 0;
  deadline_ = Clock::now() + shared_.settings.body_timeout;
}

// Checks a complete head; returns false if the request is rejected.
bool HttpConnection::accept_head() {
  has_begun_ = true;
  is_logged_ = false;
  status_ = 0;
  sent_body_ = 0;
  began_ = std::chrono::system_clock::now();
  request_time_ = Clock::now();
  const HttpRequest& request = reader_->request();
  is_http_1_1_ = reader_->is_http_1_1();
  is_head_ = reader_->is_head();
  method_ = is_head_ ? "HEAD" : request.method;
  path_ = reader_->logged_path();
  closes_ = !reader_->keeps_alive();
  own_fields_ = shared_.access.cors_headers(request);
  id_ = request_id_of(request);
  own_fields_.emplace_back("X-Request-Id", id_);
  if (shared_.stopping) {
    fail({503, "server_stopping", "server: is stopping; try again later"}, {{"Retry-After", "1"}});
    return false;
  }
  if (const auto failure = shared_.access.reject({request, reader_->authority(), is_http_1_1_, checks_host_})) {
    const bool lacks_key = failure->status == 401;
    fail(*failure, lacks_key ? HttpHeaders{{"WWW-Authenticate", "Bearer"}} : HttpHeaders{});
    return false;
  }
  state_ = State::body;
  since_deadline_ = 0;
  deadline_ = Clock::now() + shared_.settings.body_timeout;
  awaits_continue_ = reader_->expects_continue();
  return true;
}

// Counts the body in the memory for all bodies. Returns false if that is used up, and this is the body that makes room.
bool HttpConnection::count_body() {
  const std::size_t size = reader_->request().body.size();
  const bool grows = size > counted_body_;
  shared_.body_bytes += size - std::exchange(counted_body_, size);
  if (grows && shared_.body_bytes > shared_.settings.body_memory) shared_.on_bodies();
  return is(State::head) || is(State::body);
}

double HttpConnection::body_cost(Time now) const {
  const bool is_small = !is(State::body) || counted_body_ <= body_step;
  return is_small ? 0 : static_cast<double>(counted_body_) * std::chrono::duration<double>(now - request_time_).count();
}

void HttpConnection::reject_body() {
  guarded([this] {
    fail({503, "too_many_bodies", "server: receives too many large requests; try again later"}, {{"Retry-After", "1"}});
  });
}

void HttpConnection::dispatch() {
  state_ = State::answering;
  deadline_ = Time::max();
  shared_.body_bytes -= std::exchange(counted_body_, 0);
  in_.erase(0, std::exchange(in_at_, 0));
  is_answered_ = false;
  answer_ = std::make_shared<HttpAnswerBuffer>(
      [wakeup = shared_.wakeup, self = weak_from_this()](bool at_once) { wakeup->post(self, at_once); });
  if (is_ended_) set_gone();
  call_handler(make_http_answer(answer_));
}

void HttpConnection::call_handler(const std::shared_ptr<HttpAnswer>& answer) {
  HttpRequest& request = reader_->request();
  if (HttpAccess::is_preflight(request)) {
    HttpHeaders fields;
    if (const auto failure = shared_.access.answer_preflight(request, fields)) {
      return answer->send(failure->status, "application/json", http_error_body(*failure), fields);
    }
    return answer->send(204, "", "", fields);
  }
  request.client = shared_.access.client_of(request, network_);
  try {
    shared_.handler(std::move(request), answer);
  } catch (const std::exception&) {
    answer->send(500, "application/json", http_error_body({500, "internal_error", "server: internal error"}));
  }
}

void HttpConnection::on_answer() {
  guarded([this] {
    if (!is(State::answering) || is_answered_) return;
    const HttpAnswerBuffer::Taken taken = answer_->take();
    switch (taken.phase) {
      case HttpAnswerBuffer::Phase::none:
        return;
      case HttpAnswerBuffer::Phase::whole:
        send_whole(taken);
        break;
      case HttpAnswerBuffer::Phase::pieces:
      case HttpAnswerBuffer::Phase::finished:
        send_pieces(taken);
        break;
      case HttpAnswerBuffer::Phase::abandoned:
        send_pieces(taken);
        return on_abandoned();
    }
    flush();
  });
}

void HttpConnection::send_whole(const HttpAnswerBuffer::Taken& taken) {
  status_ = taken.status;
  closes_ = closes_ || shared_.stopping || is_ended_;
  HttpHeaders fields = taken.extra;
  fields.insert(fields.end(), own_fields_.begin(), own_fields_.end());
  append(http_head({taken.status, taken.content_type, taken.bytes.size(), is_http_1_1_, closes_}, fields));
  const bool has_no_body = is_head_ || taken.status == 204 || taken.status == 304;
  if (!has_no_body) {
    append(taken.bytes);
    sent_body_ = taken.bytes.size();
  }
  set_answered();
}

void HttpConnection::send_pieces(const HttpAnswerBuffer::Taken& taken) {
  const bool is_started = taken.phase != HttpAnswerBuffer::Phase::abandoned || !taken.content_type.empty();
  if (!is_started) return;
  if (status_ == 0) {
    status_ = taken.status;
    closes_ = closes_ || shared_.stopping || is_ended_ || !is_http_1_1_;
    append(http_head({taken.status, taken.content_type, std::nullopt, is_http_1_1_, closes_}, own_fields_));
    limit_unsent(true);
  }
  if (!taken.bytes.empty() && !is_head_) {
    append(is_http_1_1_ ? http_chunk(taken.bytes) : taken.bytes);
    sent_body_ += taken.bytes.size();
  }
  if (taken.phase != HttpAnswerBuffer::Phase::finished) return;
  if (is_http_1_1_ && !is_head_) append(last_http_chunk);
  limit_unsent(false);
  set_answered();
}

// The end of the answer is in out_: it is sent, also to a client that has ended its own side.
void HttpConnection::set_answered() {
  is_answered_ = true;
  deadline_ = Time::max();  // the stall timeout applies
}

// The handler gave no answer, or not all of it.
void HttpConnection::on_abandoned() {
  if (answer_->gone()) return drop("disconnected");
  if (status_ == 0) return fail({500, "internal_error", "server: gave no answer"});
  // In HTTP/1.1 the missing last chunk shows it to the client; in HTTP/1.0 only a reset does.
  if (!is_http_1_1_) return drop("incomplete");
  log("incomplete");
  limit_unsent(false);
  state_ = State::closing;
  deadline_ = Time::max();
  flush();
}

void HttpConnection::append(std::string_view bytes) {
  grown_ = Clock::now();
  if (out_at_ == out_.size()) progress_ = grown_;
  // Half of it: each byte is moved once.
  if (out_at_ > std::max(largest_read_ahead, out_.size() / 2)) out_.erase(0, std::exchange(out_at_, 0));
  out_ += bytes;
  count_memory();
  note_unread();
  if (shared_.answer_bytes > shared_.settings.answer_memory) shared_.on_crowded(*this);
}

void HttpConnection::forget_sent() {
  out_.erase(0, std::exchange(out_at_, 0));
  out_.shrink_to_fit();
  count_memory();
}

void HttpConnection::count_memory() {
  shared_.answer_bytes += memory() - std::exchange(counted_answer_, memory());
}

// While a stream is made, its connection does not hide from HttpAnswer::behind() how much is unread. What the system
// can hold of an answer that is made is no longer the server's.
void HttpConnection::limit_unsent(bool limits) {
#ifdef TCP_NOTSENT_LOWAT
  const int bytes = limits ? 16 << 10 : 0;  // 0: as much as the system has
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof(bytes));
#endif
}

void HttpConnection::note_unread() {
  if (unread() <= shared_.settings.unsent) {
    over_since_ = Time::max();
  } else if (over_since_ == Time::max()) {
    over_since_ = Clock::now();
  }
}

void HttpConnection::flush() {
  while (!is(State::closed) && out_at_ < out_.size()) {
    const ssize_t count = ::send(socket_, out_.data() + out_at_, out_.size() - out_at_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) return drop("disconnected");
    out_at_ += static_cast<std::size_t>(count);
    progress_ = Clock::now();
    note_unread();
  }
  if (is(State::closed)) return;
  if (answer_) answer_->set_behind(unread() > shared_.settings.behind / (answer_->behind() ? 2 : 1));
  const std::size_t little = shared_.settings.little();
  if (unread() == 0 || (unread() <= little && out_at_ > little)) forget_sent();
  if (unread() > 0) return wait_to_write();
  if (is(State::answering) && is_answered_) return finish_answer();
  if (is(State::closing)) linger();
}

void HttpConnection::finish_answer() {
  log("");
  answer_.reset();
  if (closes_ || shared_.stopping) return linger();
  begin_request();
  process();
  wait_to_read();
}

void HttpConnection::begin_request() {
  reader_ = std::make_unique<HttpReader>(shared_.settings.request);
  state_ = State::head;
  has_begun_ = awaits_continue_ = is_head_ = false;
  own_fields_.clear();
  method_.clear();
  path_.clear();
  id_.clear();
  request_time_ = Clock::now();
  deadline_ = request_time_ + shared_.settings.idle_timeout;
  if (in_.empty()) in_.shrink_to_fit();
}

// Sends a failure as the last answer.
void HttpConnection::fail(const HttpFailure& failure, HttpHeaders fields) {
  if (is(State::closing) || is(State::lingering) || is(State::closed)) return;
  if (std::exchange(is_logged_, false)) {
    began_ = std::chrono::system_clock::now();
    request_time_ = Clock::now();
  }
  if (method_.empty()) {
    is_head_ = reader_->is_head();
    method_ = is_head_ ? "HEAD" : reader_->request().method;
    path_ = reader_->logged_path();
  }
  if (id_.empty()) {
    id_ = request_id_of(reader_->request());
    own_fields_.emplace_back("X-Request-Id", id_);
  }
  const auto& error_body = shared_.settings.error_body;
  const std::string body = error_body ? error_body(path_, failure) : http_error_body(failure);
  fields.insert(fields.end(), own_fields_.begin(), own_fields_.end());
  append(http_head({failure.status, "application/json", body.size(), true, true}, fields));
  status_ = failure.status;
  sent_body_ = 0;
  if (!is_head_) {
    append(body);
    sent_body_ = body.size();
  }
  log("");
  shared_.body_bytes -= std::exchange(counted_body_, 0);
  reader_ = nullptr;
  in_.clear();
  in_at_ = 0;
  state_ = State::closing;
  deadline_ = Time::max();  // the stall timeout applies
  flush();
}

void HttpConnection::stop() {
  guarded([this] {
    close_if_idle();
    if (is(State::closed)) return;
    if (is(State::head) || is(State::body)) {
      return fail({503, "server_stopping", "server: is stopping; try again later"}, {{"Retry-After", "1"}});
    }
    closes_ = true;
    if (is(State::lingering)) deadline_ = Clock::now() + short_linger_time;
  });
}

void HttpConnection::close_if_idle() {
  if (is_idle()) on_readable();  // a request may have arrived
  if (is_idle()) close();
}

std::optional<HttpConnection::Wait> HttpConnection::wait() const {
  if (is_refused_) return std::nullopt;
  if (is_idle()) return Wait{Wait::Rank::idle, request_time_};
  if (is(State::lingering)) return Wait{Wait::Rank::lingering, request_time_};
  if (is(State::head) || is(State::body)) return Wait{Wait::Rank::slow, request_time_};
  if (is(State::answering) && is_answered_) return Wait{Wait::Rank::slow, progress_};
  return std::nullopt;
}

void HttpConnection::make_way() {
  guarded([this] {
    if (is_idle()) return close_if_idle();
    if (wait()) is(State::lingering) ? close() : drop("too slow");
  });
}

void HttpConnection::check_time(Time now) {
  guarded([this, now] {
    if (is(State::closed)) return;
    const HttpSettings& settings = shared_.settings;
    const bool is_made = is(State::answering) && !is_answered_;
    if (!is_made || unread() <= settings.answer_memory) note_taken(now);  // large_stall is for what can be sent
    // A stream that waits for its client does not grow.
    const bool is_over = is_made && grown_ - over_since_ > settings.unsent_time;
    if (is_over || (unread() > 0 && now - progress_ > longest_stall(is_made))) return drop("too slow");
    if (now > deadline_) return on_deadline();
    if (!is_full() || is_reading_) return;
    pollfd waiting{socket_, POLLRDHUP, 0};
    if (::poll(&waiting, 1, 0) == 1 && !answer_->gone()) set_gone();
  });
}

// A client may read for long until the system takes more of the answer, which it does once much of what it has is read.
// Without SIOCOUTQ, which only Linux has, such a client counts as one that reads nothing.
void HttpConnection::note_taken([[maybe_unused]] Time now) {
#ifdef SIOCOUTQ
  int held = 0;  // bytes that the client's system has not yet taken
  if (unread() == 0 || ::ioctl(socket_, SIOCOUTQ, &held) != 0) return;
  if (held_ - held >= static_cast<int>(answer_step)) {
    held_ = held;
    progress_ = now;
  } else {
    held_ = std::max(held_, held);
  }
#endif
}

// A client that reads nothing of the little that is left takes hardly more memory than one that is idle.
std::chrono::milliseconds HttpConnection::longest_stall(bool is_made) const {
  const HttpSettings& settings = shared_.settings;
  if (is_made && unread() > settings.answer_memory) return settings.large_stall;
  return unread() <= settings.little() ? std::max(settings.idle_timeout, settings.stall_timeout)
                                       : settings.stall_timeout;
}

void HttpConnection::on_deadline() {
  if (is(State::answering)) return drop("disconnected");
  if (is_idle() || is(State::lingering)) return close();
  fail({408, "request_timeout", "request: is incomplete after the time limit; send it faster"});
}

bool HttpConnection::is_full() const {
  return is(State::answering) && in_.size() >= largest_read_ahead;
}

void HttpConnection::drop(std::string_view remark) {
  if (is(State::closed)) return;
  log(remark);
  const struct ::linger reset { 1, 0 };  // the kernel forgets what the client has not taken
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  close();
}

void HttpConnection::linger() {
  if (is_ended_) return close();
  ::shutdown(socket_, SHUT_WR);
  state_ = State::lingering;
  deadline_ = Clock::now() + (shared_.stopping ? short_linger_time : linger_time);
  wait_to_read();
}

void HttpConnection::close() {
  if (is(State::closed)) return;
  log("disconnected");
  if (answer_) answer_->set_gone();
  state_ = State::closed;
  shared_.body_bytes -= std::exchange(counted_body_, 0);
  shared_.answer_bytes -= std::exchange(counted_answer_, 0);
  boost::system::error_code ignored;
  descriptor_.close(ignored);
  shared_.on_close(*this);
}

void HttpConnection::log(std::string_view remark) {
  if (std::exchange(is_logged_, true) || !shared_.settings.log) return;
  const HttpLogEntry entry{began_, client_, method_, path_, status_, sent_body_, Clock::now() - request_time_,
                           remark, id_};
  shared_.settings.log(shared_.settings.log_is_json ? http_log_json(entry) : http_log_line(entry));
}

}  // namespace minimind
