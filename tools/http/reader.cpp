#include "tools/http/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <limits>
#include <string>
#include <utility>

#include "tools/http/target.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;

// Fields that two programs could read differently if they were repeated.
constexpr std::array single_fields = {"authorization", "content-length", "content-type",     "expect",
                                      "host",          "origin",         "transfer-encoding"};

// A client that has sent so much of a body gets memory for all of it.
constexpr std::size_t believed_size = std::size_t{1} << 20;

// The shortest chunked body. Beast ends the program if less of it is given twice.
constexpr std::string_view empty_chunked_body = "0\r\n\r\n";

[[noreturn]] void reject(std::string message) {
  throw HttpFailure{400, "malformed_request", std::move(message)};
}

std::string_view view(string_view text) {
  return {text.data(), text.size()};
}

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
}

// Throws if the request line ends with a version other than 1.0 and 1.1.
void check_version(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\r'));
  const std::string_view version = line.substr(line.rfind(' ') + 1);
  if (version.size() != 8 || !version.starts_with("HTTP/") || version[6] != '.') return;
  if (!is_digits(version.substr(5, 1)) || !is_digits(version.substr(7, 1))) return;
  if (version == "HTTP/1.0" || version == "HTTP/1.1") return;
  throw HttpFailure{505, "unsupported_version",
                    fmt::format("request line: version is {}, expected HTTP/1.1 or HTTP/1.0", version)};
}

HttpFailure failure_of(const error_code& error) {
  if (error == http::error::bad_method) return {400, "malformed_request", "request line: malformed method"};
  if (error == http::error::bad_target) return {400, "malformed_request", "request line: malformed target"};
  if (error == http::error::bad_version) return {400, "malformed_request", "request line: malformed version"};
  if (error == http::error::bad_field) return {400, "malformed_request", "request: malformed name of a header field"};
  if (error == http::error::bad_content_length || error == http::error::bad_transfer_encoding) {
    return {400, "malformed_request", "request: Content-Length and Transfer-Encoding are malformed or contradictory"};
  }
  if (error == http::error::bad_chunk || error == http::error::bad_chunk_extension) {
    return {400, "malformed_request", "request body: malformed chunk"};
  }
  return {400, "malformed_request", "request: malformed header field"};
}

}  // namespace

// A search for the end of a head that continues at the end of the last one, and rejects line ends other than CR LF.
class HttpHeadScan {
 public:
  // Returns the size of the head if `input` has all of it.
  std::optional<std::size_t> find_end(std::string_view input, const HttpReaderLimits& limits) {
    for (; at_ < input.size(); ++at_) {
      if (at_ >= limits.head) reject_size(limits);
      check_byte(input);
      if (input[at_] != '\n') continue;
      if (at_ >= 3 && input.substr(at_ - 3, 4) == "\r\n\r\n") return at_ + 1;
      if (++lines_ > limits.fields + 1) {
        throw HttpFailure{431, "too_many_fields", fmt::format("request: has over {} header fields", limits.fields)};
      }
    }
    return std::nullopt;
  }

 private:
  void check_byte(std::string_view input) const {
    const char c = input[at_], before = at_ > 0 ? input[at_ - 1] : '\0';
    if (before == '\r' && c != '\n') reject("request: has a carriage return without a line feed");
    if (c == '\n' && before != '\r') reject("request: has a line feed without a carriage return");
    if (before == '\n' && (c == ' ' || c == '\t')) reject("request: has a folded header field, expected one line each");
    if (c == '\r' || c == '\n' || !is_control(c)) return;
    if (at_ == 0 && c == 0x16) reject("request: starts as TLS does; this port takes http, not https");
    reject("request: has a control character in its head");
  }

  [[noreturn]] void reject_size(const HttpReaderLimits& limits) const {
    if (lines_ == 0) {
      throw HttpFailure{414, "target_too_long", fmt::format("request line: is over {} bytes", limits.head)};
    }
    throw HttpFailure{431, "header_too_large", fmt::format("request: its header is over {} bytes", limits.head)};
  }

  std::size_t at_ = 0, lines_ = 0;
};

// Beast's parser, which calls the functions below, with the checks of our own.
class HttpReader::Parser final : public http::basic_parser<true> {
 public:
  explicit Parser(const HttpReaderLimits& given) : limits(given) {
    // The limits are our own. Beast's would count a chunk again each time that its first line is incomplete.
    header_limit(std::numeric_limits<std::uint32_t>::max());
    body_limit(std::numeric_limits<std::uint64_t>::max());
  }

  std::size_t read_head(std::string_view input) {
    std::size_t blank = 0;  // empty lines before the request are ignored, as RFC 9112 advises
    while (input.substr(blank).starts_with("\r\n")) blank += 2;
    input.remove_prefix(blank);
    if (input == "\r") return blank;
    const auto size = scan_.find_end(input, limits);
    if (!size) return blank;
    parse_head(input.substr(0, *size));
    state = State::ready;
    return blank + *size;
  }

  std::size_t read_body(std::string_view input) {
    if (state == State::ready) {
      state = State::body;
      if (content_length().value_or(0) > limits.body) throw too_large();
      eager(true);
    }
    std::size_t consumed = 0;
    while (!is_done() && consumed < input.size()) {
      const std::string_view window = input.substr(consumed, limits.head + 1);
      if (chunked() && !has_chunk_ && window.size() < empty_chunked_body.size()) {
        check_line_ends(window.substr(0, window.find('\n') + 1));  // bytes of the body may follow
        break;
      }
      error_code error;
      const std::size_t used = put(boost::asio::buffer(window.data(), window.size()), error);
      consumed += used;
      if (error == http::error::need_more) {
        // Only the first line of a chunk and the trailer wait for their ends.
        if (used == 0 && window.size() > limits.head) throw head_of_chunk_too_large();
        if (window.size() > limits.head) continue;
        check_line_ends(input.substr(consumed));
        break;
      } else if (error == http::error::body_limit) {
        throw too_large();
      } else if (error) {
        throw failure_of(error);
      }
    }
    if (is_done()) state = State::done;
    return consumed;
  }

  const HttpReaderLimits limits;
  State state = State::head;
  HttpFailure failure;
  HttpRequest request;
  std::string logged_path;
  std::optional<std::string> authority;
  bool is_http_1_1 = true, is_head = false, expects_continue = false;

 private:
  HttpFailure too_large() const {
    return {413, "body_too_large", fmt::format("request body: is over {} bytes", limits.body)};
  }

  HttpFailure head_of_chunk_too_large() const {
    return {431, "header_too_large",
            fmt::format("request body: the first line of a chunk or the trailer is over {} bytes", limits.head)};
  }

  // Beast would wait for the end of a line that has ended in another way.
  static void check_line_ends(std::string_view lines) {
    for (std::size_t at = lines.find('\n'); at < lines.size(); at = lines.find('\n', at + 1)) {
      if (at == 0 || lines[at - 1] != '\r') reject("request body: has a line feed without a carriage return");
    }
  }

  void parse_head(std::string_view head) {
    check_version(head);
    error_code error;
    const std::size_t consumed = put(boost::asio::buffer(head.data(), head.size()), error);
    const std::string* const coding = request.header("transfer-encoding");
    if (error == http::error::bad_transfer_encoding && coding) check_coding(*coding);
    if (error || consumed != head.size()) throw failure_of(error);
    is_head = request.method == "HEAD";
    HttpTarget target = parse_http_target(request.method, target_);
    request.path = std::move(target.path);
    request.query = std::move(target.query);
    authority = std::move(target.authority);
    logged_path = target_.substr(0, target_.find('?'));
    if (is_head) request.method = "GET";
    check_fields();
  }

  void check_fields() {
    if (!repeated_.empty()) reject(fmt::format("request: header field {} is repeated", repeated_));
    const std::string* length = request.header("content-length");
    if (length && !is_digits(*length)) reject("request: Content-Length is not a number in decimal digits");
    if (const std::string* coding = request.header("transfer-encoding")) check_coding(*coding);
    if (const std::string* expectation = request.header("expect"); expectation && is_http_1_1) {
      if (lower_case(*expectation) != "100-continue") {
        throw HttpFailure{417, "unknown_expectation", "request: Expect is not 100-continue"};
      }
      expects_continue = true;
    }
  }

  void check_coding(const std::string& coding) const {
    const std::string name = lower_case(coding);
    if (!is_http_1_1) reject("request: has Transfer-Encoding in HTTP/1.0");
    if (name == "chunked") return;
    if (name.find("chunked") != std::string::npos) reject("request: Transfer-Encoding is not chunked alone");
    throw HttpFailure{501, "unknown_transfer_coding", "request: Transfer-Encoding is not chunked"};
  }

  void on_request_impl(http::verb, string_view method, string_view target, int version, error_code&) override {
    request.method = std::string(view(method));
    target_ = std::string(view(target));
    is_http_1_1 = version == 11;
  }

  void on_field_impl(http::field, string_view name, string_view value, error_code&) override {
    if (state != State::head) return;  // fields of the trailer are ignored
    const std::string key = lower_case(view(name));
    const auto [entry, is_new] = request.headers.try_emplace(key, view(value));
    if (is_new) return;
    if (std::find(single_fields.begin(), single_fields.end(), key) != single_fields.end()) repeated_ = key;
    entry->second += ", " + std::string(view(value));
  }

  // Later versions of Beast have this for the fields of the trailer, which earlier ones pass to on_field_impl, after
  // they have rejected these two themselves.
  void on_trailer_field_impl(http::field name, string_view, string_view, error_code& error) {
    if (name == http::field::content_length) error = http::error::bad_content_length;
    if (name == http::field::transfer_encoding) error = http::error::bad_transfer_encoding;
  }

  void on_chunk_header_impl(std::uint64_t size, string_view extensions, error_code& error) override {
    has_chunk_ = true;
    if (size > limits.body - request.body.size()) {
      error = http::error::body_limit;
    } else if (std::any_of(extensions.begin(), extensions.end(), is_control)) {
      error = http::error::bad_chunk_extension;
    }
  }

  std::size_t on_body_impl(string_view piece, error_code&) override {
    std::string& body = request.body;
    // To move a large body again and again would take milliseconds at a time. A length that is only claimed takes none.
    if (body.size() >= believed_size) body.reserve(content_length().value_or(0));
    body.append(piece.data(), piece.size());
    return piece.size();
  }

  std::size_t on_chunk_body_impl(std::uint64_t, string_view piece, error_code& error) override {
    return on_body_impl(piece, error);
  }

  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  void on_finish_impl(error_code&) override {}

  HttpHeadScan scan_;
  bool has_chunk_ = false;
  std::string target_;
  std::string repeated_;  // the name of a repeated field that must be single
};

HttpReader::HttpReader(const HttpReaderLimits& limits) : parser_(std::make_unique<Parser>(limits)) {}

HttpReader::~HttpReader() = default;

std::size_t HttpReader::read(std::string_view input) {
  Parser& parser = *parser_;
  try {
    if (parser.state == State::head) return parser.read_head(input);
    if (parser.state == State::ready || parser.state == State::body) return parser.read_body(input);
  } catch (const HttpFailure& failure) {
    parser.failure = failure;
    parser.state = State::failed;
  }
  return 0;
}

HttpReader::State HttpReader::state() const {
  return parser_->state;
}

const HttpFailure& HttpReader::failure() const {
  return parser_->failure;
}

HttpRequest& HttpReader::request() {
  return parser_->request;
}

std::string_view HttpReader::logged_path() const {
  return parser_->logged_path;
}

const std::optional<std::string>& HttpReader::authority() const {
  return parser_->authority;
}

bool HttpReader::is_http_1_1() const {
  return parser_->is_http_1_1;
}

bool HttpReader::is_head() const {
  return parser_->is_head;
}

bool HttpReader::keeps_alive() const {
  return parser_->keep_alive();
}

bool HttpReader::expects_continue() const {
  return parser_->expects_continue;
}

}  // namespace minimind
