#include "tools/http/target.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tools/http/head.h"

namespace minimind {
namespace {

int target_status(const std::string& target, const std::string& method = "GET") {
  try {
    parse_http_target(method, target);
  } catch (const HttpFailure& failure) {
    return failure.status;
  }
  return 200;
}

TEST(HttpTarget, IsSplitAndDecoded) {
  EXPECT_EQ(parse_http_target("GET", "/v1/models").path, "/v1/models");
  const HttpTarget target = parse_http_target("GET", "/a%20b%2Fc%e4%bd%a0?x=%20&y");
  EXPECT_EQ(target.path, "/a b/c你");
  EXPECT_EQ(target.query, "x=%20&y");
  EXPECT_EQ(parse_http_target("GET", "/?").query, "");
  EXPECT_EQ(parse_http_target("GET", "/a?b?c").query, "b?c");
  EXPECT_EQ(parse_http_target("GET", "/a%0Ab").path, "/a\nb");
  EXPECT_EQ(parse_http_target("OPTIONS", "*").path, "*");
}

TEST(HttpTarget, MayHaveAnAuthority) {
  const HttpTarget target = parse_http_target("GET", "HTTP://Example.org:80/a?b");
  EXPECT_EQ(target.authority, "Example.org:80");
  EXPECT_EQ(target.path, "/a");
  EXPECT_EQ(target.query, "b");
  EXPECT_EQ(parse_http_target("GET", "http://[::1]").path, "/");
  EXPECT_EQ(parse_http_target("GET", "http://localhost?a").query, "a");
}

TEST(HttpTarget, IsRejectedIfMalformed) {
  for (const char* target :
       {"",         "v1",           "*",     "?a",  "http://", "http:///a", "http://a b/", "http://user@host/",
        "ftp://a/", "localhost:80", "/%",    "/%1", "/%zz",    "/%0",       "/a%00",       "/#a",
        "/\x80",    "/\x7f",        "/\x01", "/a b"}) {
    EXPECT_EQ(target_status(target), 400) << target;
  }
  EXPECT_EQ(target_status("*", "OPTIONS"), 200);
}

TEST(HostName, HasNoPort) {
  EXPECT_EQ(host_name("LocalHost:80"), "localhost");
  EXPECT_EQ(host_name("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(host_name("[::1]:8998"), "::1");
  EXPECT_EQ(host_name("a_b.example-1.org:"), "a_b.example-1.org");
  EXPECT_EQ(host_name(""), "");
}

TEST(HostName, IsAbsentIfMalformed) {
  for (const char* host : {":80", "a:b", "a:123456", "a:80:80", "[::1", "[x]", "[]", "::1", "a b", "a/b", "a@b", "a,b",
                           "[::1]80", "\xe4\xbd\xa0"}) {
    EXPECT_EQ(host_name(host), std::nullopt) << host;
  }
}

TEST(LocalHost, ReachesOnlyThisMachine) {
  for (const char* name : {"localhost", "LOCALHOST", "localhost.", "127.0.0.1", "127.255.0.9", "::1", "0:0:0:0:0:0:0:1",
                           "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(is_local_host(name)) << name;
  }
  for (const char* name : {"", "0.0.0.0", "::", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
                           "127.1", "2130706433", "128.0.0.1", "::ffff:10.0.0.1"}) {
    EXPECT_FALSE(is_local_host(name)) << name;
  }
}

TEST(Origin, HasASchemeAndAHost) {
  for (const char* origin : {"*", "https://example.org", "http://localhost:3000", "tauri://localhost", "http://[::1]:1",
                             "web+a-b.c://host"}) {
    EXPECT_TRUE(is_origin(origin)) << origin;
  }
  for (const char* origin : {"", "null", "example.org", "https://", "https://example.org/", "https://Example.org",
                             "https://a b", "a_b://c", "://a", "https://a:", "https://a?b", "https://*.example.org"}) {
    EXPECT_FALSE(is_origin(origin)) << origin;
  }
}

}  // namespace
}  // namespace minimind
