#include "tools/http/head.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace minimind {
namespace {

bool has_line(const std::string& head, const std::string& line) {
  return head.find("\r\n" + line + "\r\n") != std::string::npos;
}

TEST(HttpHead, SaysHowLongTheBodyIs) {
  const std::string whole = http_head({.status = 200, .content_type = "text/plain", .length = 5}, {});
  EXPECT_TRUE(whole.starts_with("HTTP/1.1 200 OK\r\n")) << whole;
  EXPECT_TRUE(whole.ends_with("\r\n\r\n")) << whole;
  EXPECT_TRUE(has_line(whole, "Content-Length: 5")) << whole;
  EXPECT_TRUE(has_line(whole, "Cache-Control: no-store")) << whole;
  const std::string pieces = http_head({.status = 200, .content_type = "text/plain", .length = std::nullopt}, {});
  EXPECT_TRUE(has_line(pieces, "Transfer-Encoding: chunked")) << pieces;
  EXPECT_FALSE(has_line(pieces, "Content-Length: 0")) << pieces;
  for (const int status : {204, 304}) {
    const std::string head = http_head({.status = status, .content_type = "", .length = 0}, {});
    EXPECT_EQ(head.find("\r\nContent-"), std::string::npos) << head;
  }
}

TEST(HttpHead, SaysWhetherTheConnectionStays) {
  const auto head = [](bool is_http_1_1, bool closes) {
    return http_head({.status = 200, .content_type = "", .length = 0, .is_http_1_1 = is_http_1_1, .closes = closes},
                     {});
  };
  EXPECT_TRUE(has_line(head(true, true), "Connection: close"));
  EXPECT_EQ(head(true, false).find("Connection:"), std::string::npos);
  EXPECT_TRUE(has_line(head(false, false), "Connection: keep-alive"));
}

TEST(HttpHead, AFieldOfTheAnswerReplacesTheUsualOne) {
  const std::string head =
      http_head({.status = 200, .content_type = "", .length = 0}, {{"cache-CONTROL", "max-age=5"}, {"X-A", "b"}});
  EXPECT_TRUE(has_line(head, "cache-CONTROL: max-age=5")) << head;
  EXPECT_TRUE(has_line(head, "X-A: b")) << head;
  EXPECT_EQ(head.find("no-store"), std::string::npos) << head;
}

// A line feed would start another field, or the body.
TEST(HttpHead, ControlCharactersAreAnError) {
  for (const std::string bad : {"a\r\nb", "\n", "\x7f", "\t"}) {
    EXPECT_THROW(http_head({.status = 200, .content_type = "", .length = 0}, {{"X", bad}}), std::logic_error);
    EXPECT_THROW(http_head({.status = 200, .content_type = "", .length = 0}, {{bad, "x"}}), std::logic_error);
    EXPECT_THROW(http_head({.status = 200, .content_type = bad, .length = 0}, {}), std::logic_error);
  }
}

TEST(HttpFailure, IsJsonWhateverItsMessage) {
  const std::string message = "quotes \" and \\ and\ncontrol\x01 characters";
  for (const int status : {400, 401, 408, 413, 431, 500, 503}) {
    const auto error = nlohmann::json::parse(http_error_body({status, "a_code", message}))["error"];
    EXPECT_EQ(error["code"], "a_code");
    EXPECT_TRUE(error["param"].is_null());
    EXPECT_EQ(error["message"], message);
    EXPECT_EQ(error["type"], status < 500 ? "invalid_request_error" : "server_error");
  }
}

TEST(HttpFailure, EveryStatusHasAReason) {
  EXPECT_EQ(http_reason(404), "Not Found");
  EXPECT_EQ(http_reason(299), "Unknown");
}

}  // namespace
}  // namespace minimind
