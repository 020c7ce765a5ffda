#include "tools/http/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace minimind {
namespace {

using namespace std::chrono_literals;

HttpLogEntry log_entry() {
  return {std::chrono::system_clock::time_point(1'500ms), "127.0.0.1:5", "POST", "/v1/x", 200, 12, 3'450us, ""};
}

TEST(HttpLog, IsOneLineForEachRequest) {
  EXPECT_EQ(http_log_line(log_entry()), "1970-01-01T00:00:01.500Z 127.0.0.1:5 POST /v1/x 200 12 3.5ms");
  HttpLogEntry other = log_entry();
  other.remark = "disconnected";
  other.status = 0;
  other.method = "";
  other.path = "";
  EXPECT_EQ(http_log_line(other), "1970-01-01T00:00:01.500Z 127.0.0.1:5 - - - 12 3.5ms disconnected");
}

TEST(HttpLog, EscapesAndShortensPaths) {
  HttpLogEntry other = log_entry();
  const std::string path = "/\x1b[2J\n" + std::string(500, 'a');
  other.path = path;
  const std::string line = http_log_line(other);
  EXPECT_NE(line.find("/\\x1b[2J\\x0aaaa"), std::string::npos);
  EXPECT_NE(line.find("a... 200"), std::string::npos);
  EXPECT_LT(line.size(), 300u);
}

// Standard error is a pipe without a reader.
TEST(HttpLog, NeverBlocks) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  const HttpLog log = log_to_standard_error();
  const std::string line(1000, 'a');
  for (int i = 0; i < 1000; ++i) log(line);  // a pipe has 64 KB
  std::string text(1 << 20, '\0');
  text.resize(static_cast<std::size_t>(::read(ends[0], text.data(), text.size())));
  EXPECT_EQ(text.substr(0, 1001), line + "\n");
  log("last");
  std::string rest(4096, '\0');
  rest.resize(static_cast<std::size_t>(::read(ends[0], rest.data(), rest.size())));
  ::dup2(before, STDERR_FILENO);
  for (const int descriptor : {ends[0], ends[1], before}) ::close(descriptor);
  EXPECT_NE(rest.find("lines of this log are lost\nlast\n"), std::string::npos) << rest;
}

}  // namespace
}  // namespace minimind
