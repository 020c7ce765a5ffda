#include "tools/serve/response_items.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tools/openai/request_error.h"

namespace minimind {
namespace {

using Json = nlohmann::ordered_json;

TEST(ResponseItems, AnAnswerWithoutAnythingIsAnEmptyMessage) {
  ResponseItems items([](std::string_view, const std::string&) {});
  items.finish(false, false);
  ASSERT_EQ(items.items().size(), 1u);
  EXPECT_EQ(Json::parse(items.items()[0].json)["content"][0]["text"], "");
}

TEST(ResponseItems, ScoresBehindATextAreThoseOfItsMessage) {
  ResponseItems items([](std::string_view, const std::string&) {});
  items.add({.kind = AnswerEvent::Kind::text, .text = "a", .call = {}}, Json::array());
  items.add_logprobs({{{"token", "b"}}});
  items.finish(false, false);
  ASSERT_EQ(items.items().size(), 1u);
  const Json part = Json::parse(items.items()[0].json)["content"][0];
  EXPECT_EQ(part["text"], "a");
  EXPECT_EQ(part["logprobs"], Json::parse(R"([{"token": "b"}])"));
}

TEST(ResponseItems, AListHasItemsWithAllTheirFields) {
  const Json items =
      Json::parse(R"([{"role": "user", "content": "a", "id": null}, {"role": "assistant", "content": "b"},
      {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, {"type": "reasoning"}])");
  const Json list = item_list(items, "r", "order=asc");
  EXPECT_EQ(list["data"], Json::parse(R"([
      {"type": "message", "id": "r_0", "status": "completed", "role": "user",
       "content": [{"type": "input_text", "text": "a"}]},
      {"type": "message", "id": "r_1", "status": "completed", "role": "assistant",
       "content": [{"type": "output_text", "text": "b", "annotations": []}]},
      {"type": "function_call", "id": "r_2", "status": "completed", "call_id": "c", "name": "f", "arguments": "{}"},
      {"type": "reasoning", "id": "r_3", "status": "completed", "summary": []}])"));
  EXPECT_EQ(list["first_id"], "r_0");
}

TEST(ResponseItems, APageAfterTheLastItemIsEmpty) {
  const Json items = Json::parse(R"([{"role": "user", "content": "a"}])");
  const Json page = item_list(items, "r", "order=asc&after=r_0");
  EXPECT_EQ(page,
            Json::parse(R"({"object": "list", "data": [], "first_id": null, "last_id": null, "has_more": false})"));
  EXPECT_THROW(item_list(items, "r", "limit=1x"), RequestError);
  EXPECT_EQ(query_value("orders=1&order=2", "order"), "2");
}

}  // namespace
}  // namespace minimind
