#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "tests/support/linear_time.h"
#include "tools/http/reader.h"

namespace minimind {
namespace {

// Gives the reader the bytes in pieces, each with what it has not consumed.
void read_request(const std::string& bytes, std::size_t piece, const HttpReaderLimits& limits) {
  HttpReader reader(limits);
  std::size_t consumed = 0, arrived = 0;
  const auto is_open = [&] {
    return reader.state() != HttpReader::State::done && reader.state() != HttpReader::State::failed;
  };
  while (is_open() && arrived < bytes.size()) {
    arrived = std::min(arrived + piece, bytes.size());
    const bool head = reader.state() == HttpReader::State::head;
    const std::string_view text = bytes;
    consumed += reader.read(text.substr(consumed, arrived - consumed));
    if (head && reader.state() == HttpReader::State::ready) {
      consumed += reader.read(text.substr(consumed, arrived - consumed));
    }
  }
}

TEST(HttpReaderTime, HeadsOfRequestsAreLinear) {
  const HttpReaderLimits limits;
  const std::string line = "GET / HTTP/1.1\r\nHost: a\r\n";
  expect_linear(
      "HTTP head",
      {repeated("a", "GET /"), repeated("a: b\r\n", line), repeated("a", line + "b: "), repeated("a", line),
       repeated(" ", line + "b:"), repeated("a,", line + "Connection: ")},
      [&](const std::string& text) {
        for (const std::size_t piece : {1, 7, 4096}) read_request(text, piece, limits);
      },
      limits.head / 4);
}

TEST(HttpReaderTime, BodiesInChunksAreLinear) {
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::size_t piece : {1 << 10, 1 << 16}) {
    expect_linear("HTTP chunks",
                  {repeated("1\r\na\r\n", head, "0\r\n\r\n"), repeated("1;b=c\r\na\r\n", head, "0\r\n\r\n"),
                   repeated("400\r\n" + std::string(1024, 'a') + "\r\n", head, "0\r\n\r\n"),
                   repeated("0", head, "1\r\na\r\n0\r\n\r\n"), repeated("a: b\r\n", head + "0\r\n", "\r\n")},
                  [&](const std::string& text) { read_request(text, piece, {}); });
  }
}

}  // namespace
}  // namespace minimind
