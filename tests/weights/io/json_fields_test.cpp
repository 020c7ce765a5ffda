#include "weights/io/json_fields.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/support/cases.h"
#include "tests/support/peak_memory.h"
#include "tests/support/temporary_file.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

template <class AnyJson>
AnyJson parse(const std::string& text) {
  return parse_json<AnyJson>(text, "x", 16, "JSON");
}

std::string error_in(const std::string& text) {
  return error_of([&] { parse<Json>(text); });
}

// Values of every kind, with few names, so that many are repeated.
std::string random_json(std::mt19937& random, int levels) {
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  const auto members = [&](char open, char close, bool named) {
    std::string text(1, open);
    const unsigned count = below(20);
    for (unsigned i = 0; i < count; ++i) {
      text += i > 0 ? "," : "";
      if (named) text += "\"" + std::string(1 + below(2), static_cast<char>('a' + below(6))) + "\":";
      text += random_json(random, levels - 1);
    }
    return text + close;
  };
  const unsigned kinds = levels == 0 ? 7 : 9;
  switch (below(kinds)) {
    case 0:
      return "null";
    case 1:
      return "true";
    case 2:
      return std::to_string(static_cast<int>(below(1000)) - 500);
    case 3:
      return "18446744073709551615";
    case 4:
      return "-1.5e-3";
    case 5:
      return "\"\\u00e4 \\\"text\\\" that is longer than a short string\"";
    case 6:
      return "\"\"";
    case 7:
      return members('[', ']', false);
    default:
      return members('{', '}', true);
  }
}

TEST(ParseJson, GivesWhatTheLibraryGives) {
  std::mt19937 random(1);
  for (unsigned i = 0; i < cases(300); ++i) {
    const std::string text = random_json(random, 4);
    EXPECT_EQ(parse<Json>(text), Json::parse(text)) << text;
    EXPECT_EQ(parse<OrderedJson>(text).dump(), OrderedJson::parse(text).dump()) << text;
  }
}

TEST(ParseJson, ARepeatedKeyHasTheLastValueInTheFirstPlace) {
  EXPECT_EQ(parse<OrderedJson>(R"({"b":1,"a":2,"b":{"c":3},"d":4,"a":5})").dump(), R"({"b":{"c":3},"a":5,"d":4})");
}

TEST(ParseJson, NamesWhatIsWrong) {
  EXPECT_EQ(error_in("{\"a\":}"), "x: is not valid JSON at byte 6 of 6, expected JSON; mend it or copy it again");
  EXPECT_EQ(error_in("[1] 2"), "x: is not valid JSON at byte 5 of 5, expected JSON; mend it or copy it again");
  EXPECT_EQ(error_in(""), "x: is not valid JSON at byte 0 of 0, expected JSON; mend it or copy it again");
  EXPECT_EQ(error_in("\"\xff\""), "x: is not valid JSON at byte 2 of 3, expected JSON; mend it or copy it again");
  EXPECT_EQ(error_in("[1e999]"),
            "x: holds a number that is too large for a double before byte 6, expected a finite number");
}

TEST(ParseJson, NamesTheByteThatTheLibraryNamesInIndentedText) {
  std::mt19937 random(2);
  unsigned wrong = 0;
  for (unsigned i = 0; i < cases(500); ++i) {
    std::string text = Json::parse(random_json(random, 2)).dump(static_cast<int>(random() % 4));
    for (const char space : {' ', '\n', '\t'}) text.insert(random() % (text.size() + 1), random() % 3, space);
    text.replace(random() % text.size(), random() % 2, 1, "x{]\",:1\n \t"[random() % 10]);
    std::string expected;
    try {
      EXPECT_EQ(parse<Json>(text), Json::parse(text)) << text;
    } catch (const Json::parse_error& error) {
      expected = fmt::format("at byte {} of {},", std::min(error.byte, text.size()), text.size());
      ++wrong;
    } catch (const Error&) {
    }
    EXPECT_NE(error_in(text).find(expected), std::string::npos) << text << "\n" << expected << error_in(text);
  }
  EXPECT_GT(wrong, 100u);
}

TEST(ParseJson, LimitsNesting) {
  EXPECT_EQ(error_in(std::string(16, '[') + "1" + std::string(16, ']')), "");
  EXPECT_EQ(error_in(std::string(17, '[') + std::string(17, ']')),
            "x: is nested too deeply, expected at most 16 levels");
  EXPECT_EQ(error_in(std::string(1'000'000, '[')), "x: is nested too deeply, expected at most 16 levels");
}

std::string many(std::size_t bytes, const std::string& item) {
  std::string text = "[" + item;
  while (text.size() < bytes) text += "," + item;
  return text + "]";
}

TEST(ParseJson, LimitsTheMemoryOfItsValues) {
  constexpr std::size_t bytes = std::size_t{8} << 20, most = (std::size_t{64} << 20) + 5 * bytes;
  for (const std::string item : {"[]", "1", "\"\"", "{\"a\":{}}"}) {
    const std::string text = many(bytes, item);
    EXPECT_NE(error_in(text).find("would take over"), std::string::npos) << item;
    if (!can_measure_memory) continue;
    EXPECT_LT(peak_memory([&] { parse<OrderedJson>(text); }), most) << item;
  }
  EXPECT_EQ(error_in(many(bytes, "\"" + std::string(100, 'x') + "\"")), "");
}

using Members = std::vector<std::pair<std::string, Json>>;

Members members_of(const std::string& text) {
  Members members;
  read_json_members(text, "x: the header", 3,
                    [&](const std::string& name, const Json& value) { members.emplace_back(name, value); });
  return members;
}

TEST(ReadJsonMembers, GivesThemInTheirOrder) {
  const Members members = members_of(R"({"b":[1,[2]],"a":{"c":{}},"b":null})");
  ASSERT_EQ(members.size(), 3u);
  EXPECT_EQ(members[0], std::pair(std::string("b"), Json::parse("[1,[2]]")));
  EXPECT_EQ(members[1], std::pair(std::string("a"), Json::parse(R"({"c":{}})")));
  EXPECT_EQ(members[2], std::pair(std::string("b"), Json()));
  EXPECT_TRUE(members_of("{}").empty());
}

TEST(ReadJsonMembers, AnArrayHasNone) {
  EXPECT_TRUE(members_of("[1,[2],{\"a\":3}]").empty());
}

TEST(JsonFields, NamesFieldsAndShowsValuesShortly) {
  const std::string long_key(65, 'a');
  for (const auto& [key, shown] : {std::pair<std::string, std::string>{"rope_theta", "rope_theta"},
                                   {"", "''"},
                                   {"a{", "'a{'"},
                                   {"A", "'A'"},
                                   {long_key, "'" + long_key + "'"}}) {
    EXPECT_EQ(error_of([&, of = key] {
                JsonFields(Json{{of, 1}}, "", "").allow_only({});
              }),
              shown + " is 1, expected no such field: its meaning is unknown");
  }
  const Json object{{"a", std::string(61, 'x')}}, array{std::string(61, 'x')};
  EXPECT_EQ(describe(object), "an object");
  EXPECT_EQ(describe(array), "an array of 1");
  EXPECT_EQ(describe(Json::array_t(61)), "an array of 61");
  EXPECT_EQ(error_of([] { JsonFields(Json(1), "", "schema"); }), "schema is 1, expected a JSON object");
  EXPECT_EQ(error_of([] { JsonFields(Json(1), "file", "schema"); }), "file: schema is 1, expected a JSON object");
}

TEST(ReadJsonMembers, RejectsRepeatedKeysInsideAMember) {
  EXPECT_EQ(error_of([] { members_of(R"({"a":{"c":1,"c":2}})"); }),
            "x: the header: the entry 'c' is repeated, expected once");
  EXPECT_EQ(error_of([] { members_of(R"({"a":[[[1]]]})"); }),
            "x: the header: is nested too deeply, expected at most 3 levels");
}

}  // namespace
}  // namespace minimind
