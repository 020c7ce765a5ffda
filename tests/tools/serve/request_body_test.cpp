#include "tools/serve/request_body.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tools/openai/request_error.h"

namespace minimind {
namespace {

std::string error_of_body(const std::string& body) {
  try {
    read_request_body({.method = "POST", .path = "/", .query = "", .headers = {}, .body = body}, 100);
  } catch (const RequestError& error) {
    return error.code() + ": " + error.what();
  }
  return "";
}

TEST(RequestBody, SaysWhyItIsNoJson) {
  EXPECT_EQ(error_of_body("{\"a\": \"\xff\"}"), "invalid_json: the body is not UTF-8 at byte 7");
  for (const char* const cut : {"{\"a\\", "{\"a\\u", "{\"a"}) {
    EXPECT_TRUE(error_of_body(cut).starts_with("invalid_json: the body")) << cut << error_of_body(cut);
  }
}

TEST(RequestBody, MayNameTheCodingThatIsNone) {
  const HttpRequest request{
      .method = "POST", .path = "/", .query = "", .headers = {{"content-encoding", "identity"}}, .body = "{}"};
  EXPECT_EQ(read_request_body(request, 100), ChatJson::object());
}

}  // namespace
}  // namespace minimind
