#include "tools/http/log.h"

#include <gtest/gtest.h>

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

TEST(HttpLog, IsAnObjectForEachRequestAsJson) {
  HttpLogEntry other = log_entry();
  other.id = "a\"b";
  other.path = "/\x01";
  EXPECT_EQ(http_log_json(other),
            R"({"time": "1970-01-01T00:00:01.500Z", "client": "127.0.0.1:5", "method": "POST", "path": "/\\x01", )"
            R"("status": 200, "bytes": 12, "ms": 3.5, "request_id": "a\"b", "remark": null})");
  other.status = 0;
  other.remark = "disconnected";
  EXPECT_NE(http_log_json(other).find(R"("status": null)"), std::string::npos);
  EXPECT_NE(http_log_json(other).find(R"("remark": "disconnected")"), std::string::npos);
}

TEST(HttpLog, EscapesAndShortensPaths) {
  HttpLogEntry other = log_entry();
  const std::string path = "/\x1b[2J\n\x7f" + std::string(500, 'a');
  other.path = path;
  const std::string line = http_log_line(other);
  EXPECT_NE(line.find("/\\x1b[2J\\x0a\\x7faaa"), std::string::npos);
  EXPECT_NE(line.find("a... 200"), std::string::npos);
  EXPECT_LT(line.size(), 300u);
}

}  // namespace
}  // namespace minimind
