#include "tools/http/access.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "tests/support/temporary_file.h"

namespace minimind {
namespace {

int access_status(const HttpSettings& settings, const HttpRequest& request, bool checks_host = true,
                  const std::optional<std::string>& authority = {}, bool is_http_1_1 = true) {
  const auto failure = HttpAccess(settings).reject({request, authority, is_http_1_1, checks_host});
  return failure ? failure->status : 200;
}

HttpRequest access_request(const std::string& method, const std::string& path,
                           std::map<std::string, std::string> headers) {
  headers.try_emplace("host", "localhost:8998");
  return {method, path, "", std::move(headers), ""};
}

std::string field_value(const HttpHeaders& headers, const std::string& name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "none";
}

TEST(HttpAccess, HostIsOfThisMachine) {
  const HttpSettings settings;
  for (const char* host : {"localhost", "LOCALHOST:1", "127.0.0.1:8998", "[::1]:8998"}) {
    EXPECT_EQ(access_status(settings, access_request("GET", "/", {{"host", host}})), 200) << host;
  }
  for (const char* host : {"evil.example", "evil.example:8998", "localhost.evil.example", "10.0.0.1", ""}) {
    EXPECT_EQ(access_status(settings, access_request("GET", "/", {{"host", host}})), 403) << host;
    EXPECT_EQ(access_status(settings, access_request("GET", "/", {{"host", host}}), false), 200) << host;
  }
  for (const char* host : {"a b", "a:b", "a/b", "user@localhost"}) {
    EXPECT_EQ(access_status(settings, access_request("GET", "/", {{"host", host}}), false), 400) << host;
  }
}

TEST(HttpAccess, HostMayBeTheNameOfThisMachine) {
  char name[256] = "";
  ASSERT_EQ(::gethostname(name, sizeof(name) - 1), 0);
  EXPECT_EQ(access_status(HttpSettings{}, access_request("GET", "/", {{"host", std::string(name) + ":8998"}})), 200);
}

TEST(HttpAccess, HostMayBeTheOneThatTheServerListensOn) {
  HttpSettings settings;
  settings.host = "LLM.home";
  EXPECT_EQ(access_status(settings, access_request("GET", "/", {{"host", "llm.HOME:8998"}})), 200);
}

TEST(HttpAccess, HostIsRequiredSinceHttp11) {
  const HttpSettings settings;
  const HttpRequest bare{"GET", "/", "", {}, ""};
  EXPECT_EQ(access_status(settings, bare), 400);
  EXPECT_EQ(access_status(settings, bare, true, {}, false), 200);
}

TEST(HttpAccess, TheAuthorityOfTheTargetIsCheckedToo) {
  const HttpSettings settings;
  EXPECT_EQ(access_status(settings, access_request("GET", "/", {}), true, "127.0.0.1:8998"), 200);
  EXPECT_EQ(access_status(settings, access_request("GET", "/", {}), true, "evil.example"), 403);
}

TEST(HttpAccess, MoreHostsCanBeAllowed) {
  HttpSettings settings;
  settings.allowed_hosts = {"llm.example.org"};
  EXPECT_EQ(access_status(settings, access_request("GET", "/", {{"host", "LLM.example.org:443"}})), 200);
  EXPECT_EQ(access_status(settings, access_request("GET", "/", {{"host", "example.org"}})), 403);
}

TEST(HttpAccess, AKeyIsRequiredExceptForPublicPaths) {
  HttpSettings settings;
  settings.keys = {"key-one", "key-two"};
  settings.public_paths = {"/health"};
  const auto with = [&](const std::string& authorization) {
    return access_status(settings, access_request("POST", "/v1/models", {{"authorization", authorization}}));
  };
  EXPECT_EQ(with("Bearer key-one"), 200);
  EXPECT_EQ(with("bearer  key-two"), 200);
  for (const char* wrong : {"", "Bearer", "Bearer ", "key-one", "Basic key-one", "Bearer key-on", "Bearer key-onee",
                            "Bearer KEY-ONE", "Bearer key-one, Bearer x"}) {
    EXPECT_EQ(with(wrong), 401) << wrong;
  }
  EXPECT_EQ(access_status(settings, access_request("POST", "/v1/models", {})), 401);
  EXPECT_EQ(access_status(settings, access_request("POST", "/v1/models", {{"api-key", "key-two"}})), 200) << "Azure's";
  EXPECT_EQ(access_status(settings, access_request("POST", "/v1/models", {{"api-key", "key"}})), 401);
  EXPECT_EQ(access_status(settings, access_request("GET", "/health", {})), 200);
  EXPECT_EQ(access_status(settings, access_request("POST", "/health", {})), 401);
  EXPECT_EQ(access_status(settings, access_request("OPTIONS", "/v1/models", {})), 200);
}

TEST(HttpAccess, TellsClientsApartByTheirKeysIfThereAreSeveral) {
  HttpSettings settings;
  const auto client_of = [&](const HttpHeaders& fields) {
    HttpRequest request;
    for (const auto& [name, value] : fields) request.headers[name] = value;
    return HttpAccess(settings).client_of(request, "10.0.0.1");
  };
  const HttpHeaders one{{"authorization", "Bearer one"}}, two{{"api-key", "two"}};
  EXPECT_EQ(client_of(one), "10.0.0.1") << "there are no keys";
  settings.keys = {"one"};
  EXPECT_EQ(client_of(one), "10.0.0.1") << "which all have";
  settings.keys = {"one", "two"};
  EXPECT_NE(client_of(one), client_of(two));
  EXPECT_EQ(client_of({{"api-key", "one"}}), client_of(one));
  EXPECT_EQ(client_of({{"api-key", "three"}, {"authorization", "bearer two"}}), client_of(two));
  EXPECT_EQ(client_of({{"authorization", "Bearer three"}}), "10.0.0.1") << "of a public path";
  EXPECT_EQ(client_of(one).find("one"), std::string::npos) << "no copy of a key";
}

TEST(HttpAccess, APageOfAnotherOriginCannotPost) {
  HttpSettings settings;
  const auto post_from = [&](const std::string& site, const std::string& origin) {
    return access_status(settings, access_request("POST", "/v1/x", {{"sec-fetch-site", site}, {"origin", origin}}));
  };
  EXPECT_EQ(post_from("same-origin", "http://localhost:8998"), 200);
  EXPECT_EQ(post_from("cross-site", "https://evil.example"), 403);
  EXPECT_EQ(post_from("same-site", "http://localhost:3000"), 403);
  settings.cors_origins = {"http://localhost:3000"};
  EXPECT_EQ(post_from("same-site", "http://localhost:3000"), 200);
  EXPECT_EQ(post_from("cross-site", "https://evil.example"), 403);
  EXPECT_EQ(access_status(settings, access_request("GET", "/", {{"sec-fetch-site", "cross-site"}})), 200);
  EXPECT_EQ(access_status(settings, access_request("POST", "/", {{"sec-fetch-site", "none"}})), 200) << "of no page";
  EXPECT_EQ(access_status(settings, access_request("POST", "/", {{"sec-fetch-site", "cross-site"}})), 403);
}

TEST(HttpAccess, CorsIsOffUnlessAllowed) {
  HttpSettings settings;
  const HttpRequest page = access_request("POST", "/", {{"origin", "https://example.org"}});
  EXPECT_TRUE(HttpAccess(settings).cors_headers(page).empty());
  settings.cors_origins = {"https://example.org", "https://other.example"};
  EXPECT_EQ(field_value(HttpAccess(settings).cors_headers(page), "Access-Control-Allow-Origin"), "https://example.org");
  EXPECT_EQ(field_value(HttpAccess(settings).cors_headers(page), "Vary"), "Origin");
  for (const char* origin :
       {"https://evil.example", "https://example.org.evil.example", "http://example.org", "null"}) {
    const HttpHeaders headers = HttpAccess(settings).cors_headers(access_request("POST", "/", {{"origin", origin}}));
    EXPECT_EQ(field_value(headers, "Access-Control-Allow-Origin"), "none") << origin;
    EXPECT_EQ(field_value(headers, "Vary"), "Origin") << origin;
  }
  settings.cors_origins = {"*"};
  EXPECT_EQ(field_value(HttpAccess(settings).cors_headers(page), "Access-Control-Allow-Origin"), "*");
}

TEST(HttpAccess, AnswersPreflights) {
  HttpSettings settings;
  settings.cors_origins = {"https://example.org"};
  const auto ask = [&](const std::string& origin, HttpHeaders& headers) {
    return HttpAccess(settings).answer_preflight(
        access_request("OPTIONS", "/v1/x",
                       {{"origin", origin},
                        {"access-control-request-method", "POST"},
                        {"access-control-request-headers", "authorization, x-stainless-os"}}),
        headers);
  };
  HttpHeaders headers;
  EXPECT_FALSE(ask("https://example.org", headers));
  EXPECT_EQ(field_value(headers, "Access-Control-Allow-Headers"), "authorization, x-stainless-os");
  EXPECT_EQ(field_value(headers, "Access-Control-Allow-Methods"), "GET, HEAD, POST, DELETE");
  headers.clear();
  EXPECT_EQ(ask("https://evil.example", headers)->status, 403);
  EXPECT_EQ(field_value(headers, "Access-Control-Allow-Headers"), "none");
}

TEST(HttpAccess, APreflightHasAnOriginAndAMethod) {
  const char* const origin = "origin";
  const char* const method = "access-control-request-method";
  EXPECT_TRUE(HttpAccess::is_preflight(access_request("OPTIONS", "/", {{origin, "a"}, {method, "POST"}})));
  EXPECT_FALSE(HttpAccess::is_preflight(access_request("POST", "/", {{origin, "a"}, {method, "POST"}})));
  EXPECT_FALSE(HttpAccess::is_preflight(access_request("OPTIONS", "/", {{method, "POST"}})));
  EXPECT_FALSE(HttpAccess::is_preflight(access_request("OPTIONS", "/", {{origin, "a"}})));
}

TEST(HttpAccess, APreflightAllowsFieldsAndAPrivateNetworkIfItAsksForThem) {
  HttpSettings settings;
  settings.cors_origins = {"*"};
  const auto answer_to = [&](const std::string& field, const std::string& value) {
    HttpHeaders headers;
    const HttpRequest request = access_request("OPTIONS", "/v1/x", {{"origin", "https://a.org"}, {field, value}});
    EXPECT_FALSE(HttpAccess(settings).answer_preflight(request, headers));
    return field_value(headers, "Access-Control-Allow-Headers") + ' ' +
           field_value(headers, "Access-Control-Allow-Private-Network");
  };
  EXPECT_EQ(answer_to("access-control-request-headers", "a, b"), "a, b none");
  EXPECT_EQ(answer_to("access-control-request-headers", "a\"b"), "none none") << "no list of names";
  EXPECT_EQ(answer_to("access-control-request-private-network", "true"), "none true");
}

TEST(HttpKeys, AreReadFromLines) {
  const TemporaryFile file(" key-one \r\n\n\tkey-two\nkey#3");
  EXPECT_EQ(read_http_keys(file.path()), (std::vector<std::string>{"key-one", "key-two", "key#3"}));
}

TEST(HttpKeys, ErrorsNameTheLineAndNotTheKey) {
  const TemporaryFile file(
      "good\nse\x7f"
      "cret\n");
  EXPECT_NE(error_of([&] { read_http_keys(file.path()); }).find("line 2"), std::string::npos);
  file.write("good\nse cret\n");
  const std::string error = error_of([&] { read_http_keys(file.path()); });
  EXPECT_NE(error.find("line 2"), std::string::npos) << error;
  EXPECT_EQ(error.find("cret"), std::string::npos) << error;
  file.write("\n \n");
  EXPECT_NE(error_of([&] { read_http_keys(file.path()); }).find("has no key"), std::string::npos);
  EXPECT_NE(error_of([&] { read_http_keys("/no/such/file"); }), "");
}

}  // namespace
}  // namespace minimind
