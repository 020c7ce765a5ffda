#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/http/head.h"
#include "tools/http/log.h"
#include "tools/http/reader.h"

namespace minimind {

// Bytes of a body within each body_timeout, and of an answer within each stall_timeout.
inline constexpr std::size_t body_step = std::size_t{16} << 10, answer_step = std::size_t{16} << 10;

// Where an HTTP server listens, who may use it, and its limits.
struct HttpSettings {
  std::string host = "127.0.0.1";  // empty: no port, only the socket
  std::uint16_t port = 8998;       // that of MiniMind's own server; 0: a free one
  std::string socket;              // the path of a unix socket; empty: none

  std::vector<std::string> keys;          // one of them must be sent as "Authorization: Bearer KEY"; empty: none needed
  bool allow_no_key = false;              // listen on an address that other machines reach, without keys
  std::vector<std::string> public_paths;  // GET needs no key: the page, which asks for the key, and /health
  std::vector<std::string> allowed_hosts;  // further names in the Host field, next to the local ones
  std::vector<std::string> cors_origins;   // web pages that may call the server; "*": any

  HttpReaderLimits request;
  std::size_t body_memory = std::size_t{256} << 20;  // bytes of all bodies that are being received
  std::size_t connections = 4096;
  // Bytes of an answer that are not yet sent, because the client has not read those before them. Above, it is behind:
  // HttpAnswer.
  std::size_t behind = std::size_t{32} << 10;
  // Bytes of an answer that may be unread for as long as an idle connection may last, and that no room is made from.
  std::size_t little() const { return 2 * behind; }
  // Bytes that a client has not read of an answer that is still being made, and grows, for longer than unsent_time.
  std::size_t unsent = std::size_t{512} << 10;
  std::chrono::milliseconds unsent_time{10'000};
  // Bytes of memory for what clients have not read of all answers except the largest. Above, the client that has taken
  // nothing for the longest time is dropped.
  std::size_t answer_memory = std::size_t{256} << 20;
  std::chrono::milliseconds head_timeout{10'000};   // from the first byte of a request, or the start of the connection
  std::chrono::milliseconds body_timeout{30'000};   // for each body_step
  std::chrono::milliseconds idle_timeout{75'000};   // between requests, and for little of an answer that is unread
  std::chrono::milliseconds stall_timeout{30'000};  // for each answer_step
  std::chrono::milliseconds large_stall{1'000};     // while none of over answer_memory of a running answer can be sent
  std::chrono::milliseconds drain{30'000};          // for running answers, once the server stops

  HttpLog log;  // empty: none
  bool log_is_json = false;
  // Returns the body of a failure, by the path of the request as sent, which may be empty. Empty: http_error_body().
  std::function<std::string(std::string_view path, const HttpFailure& failure)> error_body;
  // Called once, on the thread of the connections, when the server begins to stop: what is not yet answered and need
  // not be, the handler can then reject.
  std::function<void()> on_stop;
  // Called once, on the thread of the connections, if answers are still under way after `drain`: the handler then ends
  // them within last_words. Empty: the connections are closed at once.
  std::function<void()> on_drained;
  std::chrono::milliseconds last_words{1'000};
  // run() ends at SIGTERM, SIGINT and SIGHUP as after stop(), also if they came since the server was made, and at a
  // second one as after stop_now(). SIGPIPE is ignored.
  bool handle_signals = false;
};

}  // namespace minimind
