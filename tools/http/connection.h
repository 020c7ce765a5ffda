#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/http/access.h"
#include "tools/http/answer.h"
#include "tools/http/http.h"
#include "tools/http/loop.h"
#include "tools/http/reader.h"
#include "tools/http/settings.h"

namespace minimind {

class HttpConnection;

// What the connections of a server share. Only the thread of the connections uses it, except `wakeup`.
struct HttpShared {
  const HttpSettings& settings;
  const HttpAccess& access;
  const HttpHandler& handler;
  HttpLoop& loop;
  std::shared_ptr<HttpWakeup> wakeup;
  std::function<void(HttpConnection&)> on_close;
  std::function<void()> on_full;                    // a connection waits for is_full() to end
  std::function<void(HttpConnection&)> on_crowded;  // answer_bytes are too many; the connection has added to them
  std::function<void()> on_bodies;                  // body_bytes are too many
  bool stopping = false;
  std::size_t body_bytes = 0;    // of all bodies that are being received
  std::size_t answer_bytes = 0;  // that the connections have for answers that are not read
  std::vector<char> scratch = std::vector<char>(std::size_t{64} << 10);
};

// One client: reads its requests one after the other, and sends their answers in order. While an answer is computed it
// continues to read, because that is how it learns that the client has disconnected.
class HttpConnection final : public HttpAnswered, public std::enable_shared_from_this<HttpConnection> {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Takes the descriptor. `client` is the address for the log, `network` is network_of() it; `checks_host`: as in
  // HttpAccessRequest.
  HttpConnection(HttpShared& shared, int descriptor, std::string client, std::string network, bool checks_host);

  void start();
  // Answers with status 503, because there are too many connections.
  void refuse();
  // Closes the connection after the answer that is under way, or now if there is none.
  void stop();
  // Closes the connection at once, without the rest of the answer.
  void drop(std::string_view remark);
  void on_answer() override;
  // Acts on timeouts.
  void check_time(Time now);
  // Of the connections that wait for their clients, the one of the lowest rank makes room first, and of these the one
  // that has waited longest.
  struct Wait {
    enum class Rank { idle, lingering, slow } rank;  // slow: to send a request, or to read the end of an answer
    Time since;
    auto operator<=>(const Wait&) const = default;
  };
  // Nothing if the connection does not wait, or was refused.
  std::optional<Wait> wait() const;
  // Closes the connection, which waits, unless it is idle and a request has arrived.
  void make_way();
  // Bytes of the body that arrives, times the seconds that it has taken so far; 0 for a small one.
  double body_cost(Time now) const;
  // Rejects the body that arrives, because all together are too large.
  void reject_body();
  // Whether so much is read ahead that the connection waits for its answer before it reads more.
  bool is_full() const;
  bool is_answering() const { return is(State::answering); }
  bool is_refused() const { return is_refused_; }
  // Bytes of answers that the client has not taken, the memory that they are in, and when it last took some.
  std::size_t unread() const { return out_.size() - out_at_; }
  std::size_t memory() const { return out_.capacity(); }
  Time progress() const { return progress_; }

 private:
  enum class State {
    head,       // reads a head, or is idle
    body,       // reads a body
    answering,  // the handler has the request
    closing,    // sends the last answer
    lingering,  // has sent everything; reads and forgets, so that the client receives the answer before a reset
    closed,
  };

  void guarded(const std::function<void()>& action);
  void wait_to_read();
  void wait_to_write();
  void on_readable();
  void on_end_of_input();
  void process();
  bool accept_head();
  bool count_body();
  bool is_idle() const { return is(State::head) && !has_begun_ && in_.empty(); }
  void close_if_idle();
  void set_reading_deadline(std::size_t consumed);
  void dispatch();
  void call_handler(const std::shared_ptr<HttpAnswer>& answer);
  void send_whole(const HttpAnswerBuffer::Taken& taken);
  void send_pieces(const HttpAnswerBuffer::Taken& taken);
  void set_answered();
  void on_abandoned();
  void append(std::string_view bytes);
  void forget_sent();
  void count_memory();
  void note_unread();
  void note_taken(Time now);
  void limit_unsent(bool limits);
  void flush();
  void finish_answer();
  void begin_request();
  void fail(const HttpFailure& failure, HttpHeaders fields = {});
  std::chrono::milliseconds longest_stall(bool is_made) const;
  void on_deadline();
  void set_gone();
  void linger();
  void close();
  void log(std::string_view remark);
  std::string_view rest() const { return std::string_view(in_).substr(in_at_); }
  bool is(State state) const { return state_ == state; }

  HttpShared& shared_;
  const int socket_;
  HttpDescriptor descriptor_;  // of socket_, which it closes
  const std::string client_, network_;
  const bool checks_host_;
  bool is_refused_ = false;
  State state_ = State::head;
  Time deadline_, progress_;       // progress_: when output could last be sent, or was taken
  Time over_since_ = Time::max();  // when unread() exceeded HttpSettings::unsent
  Time grown_;                     // when output was last added
  bool is_reading_ = false, is_writing_ = false, is_ended_ = false;  // is_ended_: the client sends nothing more

  std::string in_;  // received and not yet consumed, from in_at_ on
  std::size_t in_at_ = 0;
  std::unique_ptr<HttpReader> reader_;
  bool has_begun_ = false;          // some of the request has arrived
  bool awaits_continue_ = false;    // the client sends the body only after status 100
  std::size_t counted_body_ = 0;    // bytes of the body in HttpShared::body_bytes
  std::size_t since_deadline_ = 0;  // bytes of the body since its deadline was set

  std::string out_;  // to be sent, from out_at_ on
  std::size_t out_at_ = 0;
  std::size_t counted_answer_ = 0;  // memory() in HttpShared::answer_bytes
  [[maybe_unused]] int held_ = 0;   // most that the system was seen to have since it last fell by answer_step

  std::shared_ptr<HttpAnswerBuffer> answer_;
  std::chrono::system_clock::time_point began_;
  Time request_time_;               // of its head; until then, of its first byte or the end of the answer before
  HttpHeaders own_fields_;          // of the answer, for the request's page and its id
  std::string method_, path_, id_;  // for the log
  int status_ = 0;
  std::size_t sent_body_ = 0;
  bool is_http_1_1_ = true, is_head_ = false, closes_ = false;
  bool is_answered_ = false;  // out_ has the end of the answer
  bool is_logged_ = true;
};

}  // namespace minimind
