#include "tools/http/reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/cases.h"

namespace minimind {
namespace {

using ReaderState = HttpReader::State;

// The small_limits are small, so that tests reach them.
constexpr HttpReaderLimits small_limits{.head = 1000, .fields = 20, .body = 2000};

struct ReadOutcome {
  ReaderState state;
  int status = 0;  // of the failure
  std::string method, path, query, body;
  std::map<std::string, std::string> headers;
  std::size_t consumed = 0;

  bool operator==(const ReadOutcome&) const = default;
};

// Reads a request that arrives in pieces of `step` bytes.
ReadOutcome read_request(std::string_view bytes, std::size_t step = std::string_view::npos) {
  HttpReader reader(small_limits);
  std::size_t consumed = 0, arrived = 0;
  const auto is_open = [&] { return reader.state() != ReaderState::done && reader.state() != ReaderState::failed; };
  while (is_open() && arrived < bytes.size()) {
    arrived += std::min(step, bytes.size() - arrived);
    consumed += reader.read(bytes.substr(consumed, arrived - consumed));
    if (reader.state() == ReaderState::ready) consumed += reader.read(bytes.substr(consumed, arrived - consumed));
  }
  if (reader.state() == ReaderState::failed)
    return {ReaderState::failed, reader.failure().status, {}, {}, {}, {}, {}, 0};
  const HttpRequest& request = reader.request();
  return {reader.state(), 0, request.method, request.path, request.query, request.body, request.headers, consumed};
}

std::string get_with(const std::string& fields) {
  return "GET / HTTP/1.1\r\n" + fields + "\r\n";
}

std::string chunked_post(const std::string& body) {
  return "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + body;
}

TEST(HttpReader, ReadsRequests) {
  const ReadOutcome outcome =
      read_request("POST /a%20b?q HTTP/1.1\r\nHost: x\r\nX-Y:  z \t\r\nContent-Length: 3\r\n\r\nabcGET");
  EXPECT_EQ(outcome.state, ReaderState::done);
  EXPECT_EQ(outcome.method, "POST");
  EXPECT_EQ(outcome.path, "/a b");
  EXPECT_EQ(outcome.query, "q");
  EXPECT_EQ(outcome.body, "abc");
  EXPECT_EQ(outcome.headers.at("x-y"), "z");
  EXPECT_EQ(outcome.consumed, std::string_view("POST /a%20b?q HTTP/1.1\r\nHost: x\r\nX-Y:  z \t\r\n"
                                               "Content-Length: 3\r\n\r\nabc")
                                  .size());
  EXPECT_EQ(read_request("HEAD / HTTP/1.1\r\n\r\n").method, "GET");
  EXPECT_EQ(read_request("\r\n\r\nGET / HTTP/1.0\r\n\r\n").state, ReaderState::done);
}

TEST(HttpReader, JoinsRepeatedFields) {
  EXPECT_EQ(read_request(get_with("A: 1\r\na: 2\r\n")).headers.at("a"), "1, 2");
}

TEST(HttpReader, ReadsChunks) {
  EXPECT_EQ(read_request(chunked_post("3\r\nabc\r\n00a;x=\"y\"\r\n0123456789\r\n0\r\n\r\n")).body, "abc0123456789");
  EXPECT_EQ(read_request(chunked_post("0\r\nA: b\r\nC: d\r\n\r\n")).state, ReaderState::done);
  EXPECT_FALSE(read_request(chunked_post("0\r\nA: b\r\n\r\n")).headers.contains("a"));
  EXPECT_EQ(read_request(chunked_post("3\r\nabc\r\n")).state, ReaderState::body);
  EXPECT_EQ(read_request("POST / HTTP/1.1\r\nTransfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n").state, ReaderState::done);
}

// Forms that two programs may read in two ways, so that one sees two requests where the other sees one.
TEST(HttpReader, RejectsAmbiguousRequests) {
  const std::vector<std::string> requests = {
      get_with("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
      get_with("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n"),
      get_with("Content-Length: 1\r\nContent-Length: 2\r\n"),
      get_with("Content-Length: 1\r\nContent-Length: 1\r\n"),
      get_with("Content-Length: 1, 1\r\n"),
      get_with("Content-Length: 1, 2\r\n"),
      get_with("Content-Length: +1\r\n"),
      get_with("Content-Length: -1\r\n"),
      get_with("Content-Length: 0x1\r\n"),
      get_with("Content-Length: 1 1\r\n"),
      get_with("Content-Length: 1e1\r\n"),
      get_with("Content-Length:\r\n"),
      get_with("Content-Length: 99999999999999999999999\r\n"),
      get_with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
      get_with("Transfer-Encoding: chunked, chunked\r\n"),
      get_with("Transfer-Encoding: gzip, chunked\r\n"),
      get_with("Transfer-Encoding: chunked, identity\r\n"),
      get_with("Transfer-Encoding: xchunked\r\n"),
      get_with("Transfer-Encoding: \"chunked\"\r\n"),
      get_with("Transfer-Encoding: chunked;q=1\r\n"),
      get_with("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
      get_with("Transfer-Encoding : chunked\r\n"),
      get_with("Transfer-Encoding\t: chunked\r\n"),
      get_with(" Transfer-Encoding: chunked\r\n"),
      get_with("Transfer-Encoding: chun\r\n ked\r\n"),
      get_with("Transfer-Encoding:\r\n chunked\r\n"),
      get_with("A: b\r\n\tc\r\n"),
      get_with("A: b\nC: d\r\n"),
      get_with("A: b\rC: d\r\n"),
      get_with("A: b\r\r\n"),
      get_with("A: b\x0b\r\n"),
      get_with(std::string("A: b\0c\r\n", 9)),
      get_with("Content-Length\x0b: 1\r\n"),
      get_with("Content-Length: \x0b"
               "1\r\n"),
      get_with("Host: a\r\nHost: b\r\n"),
      get_with("Authorization: Bearer a\r\nAuthorization: Bearer b\r\n"),
      get_with(": b\r\n"),
      get_with("A\r\n"),
      get_with("A b: c\r\n"),
      "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "GET / HTTP/1.1\nHost: x\n\n",
      "GET / HTTP/1.1\r\nHost: x\n\r\n",
  };
  for (const std::string& request : requests) {
    EXPECT_EQ(read_request(request).status, 400) << request;
    EXPECT_EQ(read_request(request, 1).status, 400) << request;
  }
}

TEST(HttpReader, RejectsMalformedRequestLines) {
  for (const char* line :
       {"GET", "GET /", "GET  / HTTP/1.1", "GET / HTTP/1.1 ", " GET / HTTP/1.1", "GET /  HTTP/1.1", "GET\t/ HTTP/1.1",
        "GE(T / HTTP/1.1", "GET / http/1.1", "GET / HTTP/1", "GET / HTTP/1.1x", "GET / HTTP/11", "GET / a HTTP/1.1",
        "/ HTTP/1.1", "GET / HTTP/x.1", "GET a HTTP/1.1", "CONNECT a:80 HTTP/1.1", "\x16\x03\x01\x02"}) {
    EXPECT_EQ(read_request(std::string(line) + "\r\n\r\n").status, 400) << line;
  }
  for (const char* version : {"HTTP/0.9", "HTTP/1.2", "HTTP/2.0", "HTTP/9.9"}) {
    EXPECT_EQ(read_request("GET / " + std::string(version) + "\r\n\r\n").status, 505) << version;
  }
}

TEST(HttpReader, ReadsChunkedBodiesThatArriveInPieces) {
  for (const char* body : {"0\r\n\r\n", "0;a=b\r\n\r\n", "00\r\nA: b\r\n\r\n", "1\r\na\r\n0\r\n\r\n",
                           "3\r\nabc\r\n2\r\nde\r\n000\r\nA: b\r\nC: d\r\n\r\n"}) {
    const std::string request = chunked_post(body);
    const ReadOutcome whole = read_request(request);
    EXPECT_EQ(whole.state, ReaderState::done) << body;
    for (std::size_t step = 1; step < request.size(); ++step) EXPECT_EQ(read_request(request, step), whole) << step;
  }
}

TEST(HttpReader, RejectsMalformedChunks) {
  for (const char* body :
       {"x\r\n", "\r\n", "-1\r\n", "+1\r\n", " 1\r\na\r\n", "0x1\r\na\r\n", "1\na\r\n0\r\n\r\n", "1\r\nab\r\n",
        "1\r\na\n0\r\n\r\n", "1;\x01\r\na\r\n", "1;a=\"\n\"\r\na\r\n", "1 a\r\na\r\n", "ffffffffffffffffff\r\n",
        "0\r\nA b\r\n\r\n", "0\r\nContent-Length: 1\r\n\r\n", "0\r\nTransfer-Encoding: chunked\r\n\r\n", "1\ra\r\n"}) {
    EXPECT_EQ(read_request(chunked_post(body) + "0\r\n\r\n").status, 400) << body;
  }
  // These have no line end that could still follow.
  for (const char* body : {"1\na\n0\n\n", "1\r\na\n", "1\r\na\r\n0\n\n", "0\r\nA: b\n\n", "0\r\nA: b\n"}) {
    EXPECT_EQ(read_request(chunked_post(body)).status, 400) << body;
    EXPECT_EQ(read_request(chunked_post(body), 1).status, 400) << body;
  }
}

TEST(HttpReader, HoldsItsLimits) {
  EXPECT_EQ(read_request("GET /" + std::string(2000, 'a') + " HTTP/1.1\r\n\r\n").status, 414);
  EXPECT_EQ(read_request(get_with("A: " + std::string(2000, 'a') + "\r\n")).status, 431);
  EXPECT_EQ(read_request("GET /" + std::string(2000, 'a')).status, 414);
  std::string fields;
  for (int i = 0; i < 20; ++i) fields += "A" + std::to_string(i) + ": b\r\n";
  EXPECT_EQ(read_request(get_with(fields)).state, ReaderState::done);
  EXPECT_EQ(read_request(get_with(fields + "B: c\r\n")).status, 431);

  EXPECT_EQ(read_request("POST / HTTP/1.1\r\nContent-Length: 2000\r\n\r\n" + std::string(2000, 'a')).state,
            ReaderState::done);
  EXPECT_EQ(read_request("POST / HTTP/1.1\r\nContent-Length: 2001\r\n\r\n").status, 413);
  EXPECT_EQ(read_request("POST / HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n").status, 413);
  EXPECT_EQ(read_request(chunked_post("7d0\r\n" + std::string(2000, 'a') + "\r\n0\r\n\r\n")).state, ReaderState::done);
  EXPECT_EQ(read_request(chunked_post("7d1\r\n")).status, 413);
  EXPECT_EQ(read_request(chunked_post("ffffffffffffffff\r\n")).status, 413);
  EXPECT_EQ(read_request(chunked_post("7d0\r\n" + std::string(2000, 'a') + "\r\n1\r\n")).status, 413);
  EXPECT_EQ(read_request(chunked_post("1;" + std::string(2000, 'a'))).status, 431);
  EXPECT_EQ(read_request(chunked_post("0\r\nA: " + std::string(2000, 'a'))).status, 431);
  EXPECT_EQ(read_request(chunked_post("0\r\nA: " + std::string(2000, 'a') + "\r\n\r\n")).status, 431);
  EXPECT_EQ(read_request(chunked_post("1;a=" + std::string(2000, 'a') + "\r\na\r\n0\r\n\r\n")).status, 431);
}

// Beast counts the size of a chunk again each time that its line is incomplete.
TEST(HttpReader, ABodyMayStartWithALineFeedInAPieceOfItsOwn) {
  const std::string request = chunked_post("2\r\n\na\r\n0\r\n\r\n");
  EXPECT_EQ(read_request(request, request.find("\n\na") + 2).body, "\na");
}

TEST(HttpReader, AChunkThatArrivesInPiecesIsCountedOnce) {
  const std::string body = chunked_post("78;a=\"b\r\n\"" + std::string(100, 'x'));
  EXPECT_EQ(read_request(body).status, 400);
  EXPECT_EQ(read_request(body, 1).status, 400);
}

// A body of 14 MB that is moved whenever it has doubled stops all other clients for 5 ms each time.
TEST(HttpReader, ALargeBodyOfKnownLengthIsNotMovedAfterItsFirstMegabytes) {
  constexpr std::size_t megabyte = std::size_t{1} << 20;
  const std::string piece(megabyte, 'x');
  HttpReader reader({.body = 64 * megabyte});
  reader.read("POST / HTTP/1.1\r\nContent-Length: " + std::to_string(32 * megabyte) + "\r\n\r\n");
  for (int i = 0; i < 3; ++i) reader.read(piece);
  const char* const place = reader.request().body.data();
  for (int i = 3; i < 32; ++i) reader.read(piece);
  EXPECT_EQ(reader.state(), ReaderState::done);
  EXPECT_EQ(reader.request().body.size(), 32 * megabyte);
  EXPECT_EQ(reader.request().body.data(), place);
}

TEST(HttpReader, RejectsWhatItCannotDo) {
  EXPECT_EQ(read_request(get_with("Expect: a-miracle\r\n")).status, 417);
  EXPECT_EQ(read_request(get_with("Transfer-Encoding: gzip\r\n")).status, 501);
}

TEST(HttpReader, Http10ExpectsNothing) {
  const std::string request = "POST / HTTP/1.0\r\nExpect: a-miracle\r\nContent-Length: 1\r\n\r\na";
  EXPECT_EQ(read_request(request).body, "a");
}

TEST(HttpReader, TakesNothingAfterTheEndOfARequest) {
  HttpReader reader(small_limits);
  const std::string request = get_with("");
  EXPECT_EQ(reader.read(request), request.size());
  while (reader.state() != ReaderState::done) reader.read("");
  EXPECT_EQ(reader.read(request), 0u);
  HttpReader failed(small_limits);
  failed.read("nonsense\r\n\r\n");
  ASSERT_EQ(failed.state(), ReaderState::failed);
  EXPECT_EQ(failed.read(request), 0u);
}

// A request with random changes gives the same outcome however it is cut into pieces, and never more than one request.
TEST(HttpReader, PiecesDoNotChangeTheOutcome) {
  const std::vector<std::string> seeds = {
      get_with("Host: localhost:80\r\nConnection: keep-alive, close\r\n"),
      "POST /v1?a=b HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n{\"a\": \"b\"}\r\n",
      "POST http://a/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n1\r\nd\r\n0\r\nT: u\r\n\r\n",
  };
  const std::string_view alphabet = "\r\n\t :;,=\"%/?#0159afxAZ{}\x01\x7f\xe4";
  std::mt19937 random(1);
  const auto below = [&](std::size_t count) { return random() % count; };
  for (unsigned i = 0; i < cases(20000); ++i) {
    std::string bytes = seeds[below(seeds.size())];
    for (std::size_t changes = below(4); changes > 0; --changes) {
      const std::size_t at = below(bytes.size());
      const char c = alphabet[below(alphabet.size())];
      switch (below(4)) {
        case 0:
          bytes[at] = c;
          break;
        case 1:
          bytes.insert(at, 1, c);
          break;
        case 2:
          bytes.erase(at, 1 + below(3));
          break;
        default:
          bytes.insert(at, bytes.substr(below(bytes.size()), below(20)));
      }
    }
    const ReadOutcome whole = read_request(bytes);
    ASSERT_EQ(read_request(bytes, 1), whole) << bytes;
    ASSERT_EQ(read_request(bytes, 1 + below(9)), whole) << bytes;
  }
}

}  // namespace
}  // namespace minimind
