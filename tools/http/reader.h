#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "tools/http/head.h"
#include "tools/http/http.h"

namespace minimind {

struct HttpReaderLimits {
  std::size_t head = std::size_t{16} << 10;  // bytes of the request line and the fields together
  std::size_t fields = 100;
  std::uint64_t body = std::uint64_t{16} << 20;  // bytes
};

// A parser of one request, bytes in, request out. Boost.Beast parses the grammar; this class rejects what Beast accepts
// but two programs may read in two ways: line feeds alone, folded fields, two lengths, transfer codings except chunked.
class HttpReader {
 public:
  enum class State {
    head,    // needs more of the request line and the fields
    ready,   // the head is complete; read() continues with the body
    body,    // needs more of the body
    done,    // the request is complete
    failed,  // failure() is the reason; the rest of the input is meaningless
  };

  explicit HttpReader(const HttpReaderLimits& limits);
  HttpReader(const HttpReader&) = delete;
  HttpReader& operator=(const HttpReader&) = delete;
  ~HttpReader();

  // Reads from the front of `input` and returns how many bytes it consumed. The next call must start with the rest.
  // Stops when the head is complete, and at the end of the request.
  std::size_t read(std::string_view input);

  State state() const;
  const HttpFailure& failure() const;

  // Valid once the head is complete; the body once the request is.
  HttpRequest& request();
  // The target of the request line without its query, as sent; empty unless the head is complete.
  std::string_view logged_path() const;
  // The host of a target such as "http://host/path".
  const std::optional<std::string>& authority() const;
  bool is_http_1_1() const;
  bool is_head() const;
  bool keeps_alive() const;
  bool expects_continue() const;

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace minimind
