#include "runtime/grammar/json_schema.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/grammar/state.h"
#include "tests/support/temporary_file.h"
#include "weights/io/error.h"

namespace minimind {
namespace {

using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

GrammarState state_of_schema(const std::string& schema) {
  return GrammarState(std::make_shared<const Grammar>(json_schema_grammar(Json::parse(schema), "s.json")));
}

struct SchemaCase {
  std::string schema;
  Texts accepted, rejected;
};

void expect_schema_matches(const SchemaCase& c) {
  GrammarState state = state_of_schema(c.schema);
  const auto matches = [&](const std::string& text) {
    state.restart();
    return state.advance(text) && state.may_end();
  };
  for (const std::string& text : c.accepted) EXPECT_TRUE(matches(text)) << c.schema << "\n" << text;
  for (const std::string& text : c.rejected) EXPECT_FALSE(matches(text)) << c.schema << "\n" << text;
}

void expect_schema_matches(const std::vector<SchemaCase>& cases) {
  for (const SchemaCase& c : cases) expect_schema_matches(c);
}

TEST(JsonSchema, TypesAndAnything) {
  expect_schema_matches(std::vector<SchemaCase>{
      {"{}", {"{}", "[]", R"([1, {"a":"b","c": [true,null]}])", "-0.5e+12"}, {"", "[1 ]", " 1", "[1,  2]", "01", "-0"}},
      {"true", {"1"}, {"x"}},
      {R"({"type":"null"})", {"null"}, {"0"}},
      {R"({"type":["boolean","integer"]})", {"true", "-7", "0"}, {"\"a\"", "1.0", "1e2", "00", "1234567890123456"}},
      {R"({"type":["integer","number"]})", {"1.5", "2"}, {"\"1\""}},
      {R"({"type":"number"})", {"0", "-0.0", "1.25E-9", "1e99"}, {"-0", ".5", "1.", "1e100", "+1", "1e0"}},
      {R"({"type":"object"})", {"{}", R"({"a你":1})"}, {"[]", R"({a:1})", R"({"a":1,})"}},
      {R"({"type":"array"})", {"[]", "[[],{}]"}, {"{}", "[,]"}},
  });
}

TEST(JsonSchema, StringsCountCharactersHoweverTheyAreWritten) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"type":"string"})",
       {R"("")", R"("\"\\\/\b\f\n\r\t")", R"("\u00e9\uD7ff\uE000")", R"("\ud83d\uDE00")", "\"\x7F你\""},
       {R"("\ud83d")", R"("\ude00\ud83d")", R"("\ud83dx")", "\"\n\"", "\"\x1F\"", R"("\x")", R"("a)"}},
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {R"("ab")", R"("你😀\n")", R"("\ud83d\ude00\u0041")"},
       {R"("a")", R"("abcd")", R"("\ud83d\ude00")"}},
      {R"({"maxLength":0})", {R"("")"}, {R"("a")", "1"}},
      {R"({"minLength":1})", {R"("a")"}, {R"("")"}},
  });
}

TEST(JsonSchema, PatternsAreFoundInTheStrings) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"j({"pattern":"^a+?b$"})j", {R"("aab")"}, {R"("b")", R"("aabc")"}},
      {R"j({"pattern":"a.c"})j", {R"("xabcx")", R"("a\"c")"}, {R"("ac")", R"("a\nc")"}},
      {R"j({"pattern":"^a|b$"})j", {R"("ax")", R"("xb")"}, {R"("xa")"}},
      {R"j({"pattern":"^(?:x|(?<n>yz)){2}[^\"a-c\\d]?$"})j",
       {R"("xyz")", R"("xx\\")"},
       {R"("x")", R"("xx\"")", R"("xx7")"}},
      {R"j({"pattern":"^[\\w.-]{1,2}\\u4f60\\x41\\u{1F600}\\/\\cJ$"})j", {"\"a-你A😀/\\n\""}, {"\"你A😀/\\n\""}},
      {R"j({"pattern":"^\\D\\S\\W\\0$"})j", {"\"aa \\u0000\""}, {"\"1a \\u0000\"", "\"aaa\\u0000\""}},
      {R"j({"pattern":""})j", {R"("anything")", R"("")"}, {}},
  });
}

TEST(JsonSchema, FormatsGiveValuesThatAreTheirs) {
  const auto of = [](const std::string& format) { return R"({"type":"string","format":")" + format + "\"}"; };
  expect_schema_matches(std::vector<SchemaCase>{
      {of("date"),
       {R"("2024-02-29")", R"("2000-02-29")", R"("1999-12-31")", R"("2023-04-30")"},
       {R"("2023-02-29")", R"("1900-02-29")", R"("2023-04-31")", R"("2023-13-01")", R"("2023-00-10")",
        R"("99-01-01")"}},
      {of("time"), {R"("23:59:59Z")", R"("00:00:00.125+02:30")"}, {R"("24:00:00Z")", R"("12:00:00")", R"("1:00:00Z")"}},
      {of("date-time"), {R"("2024-02-29T01:02:03-11:00")"}, {R"("2024-02-29 01:02:03Z")"}},
      {of("uuid"), {R"("00112233-4455-6677-8899-aabbccddeeff")"}, {R"("00112233")"}},
      {of("email"), {R"("a.b@example.org")"}, {R"("a@b")", R"("@b.c")", R"("a..b@c.d")"}},
      {of("hostname"), {R"("a-1.example")", R"("x")"}, {R"("-a")", R"("a.")"}},
      {of("ipv4"), {R"("255.0.19.200")"}, {R"("256.0.0.1")", R"("01.0.0.1")", R"("1.2.3")"}},
      {of("ipv6"), {R"("1:22:333:4444:5:6:7:abcd")"}, {R"("::1")", R"("1:2:3:4:5:6:7:8:9")"}},
  });
}

// Every integer from -1200 to 1200 against the bounds themselves.
TEST(JsonSchema, IntegersKeepToTheirBounds) {
  const std::pair<double, double> bounds[] = {{0, 0},     {0, 9},       {-1, 1},      {5, 123},
                                              {-99, -10}, {-1000, 999}, {99, 101},    {-7, 1001},
                                              {100, 100}, {-3.5, 12.5}, {-1.5, -0.5}, {0.2, 1e3}};
  for (const auto& [low, high] : bounds) {
    for (const bool exclusive : {false, true}) {
      const Json schema{{"type", "integer"},
                        {exclusive ? "exclusiveMinimum" : "minimum", low},
                        {exclusive ? "exclusiveMaximum" : "maximum", high}};
      if (exclusive && low == high) {
        EXPECT_THROW(json_schema_grammar(schema, "s.json"), Error);
        continue;
      }
      GrammarState state = state_of_schema(schema.dump());
      for (int i = -1200; i <= 1200; ++i) {
        state.restart();
        const bool inside = exclusive ? low < i && i < high : low <= i && i <= high;
        ASSERT_EQ(state.advance(std::to_string(i)) && state.may_end(), inside) << schema << i;
      }
    }
  }
}

TEST(JsonSchema, IntegersOfOneBoundAndOfSixtyFourBits) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"type":"integer","minimum":5})", {"5", "999999999999999"}, {"4", "-5", "1000000000000000"}},
      {R"({"type":"integer","exclusiveMaximum":-5})", {"-6", "-999999999999999"}, {"-5", "0"}},
      {R"({"type":"integer","minimum":9007199254740993})",
       {"9007199254740993", "9223372036854775807"},
       {"9007199254740992"}},
      {R"({"type":"integer","maximum":-9223372036854775808})", {"-9223372036854775808"}, {"-9223372036854775807"}},
      {R"({"type":"integer","minimum":0,"exclusiveMinimum":3,"maximum":1e20,"exclusiveMaximum":5})", {"4"}, {"3", "5"}},
  });
}

TEST(JsonSchema, NumbersAreWithinTheirBounds) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"type":"number","minimum":0,"maximum":1})",
       {"0", "1", "0.5", "0.000001", "1.000000", "0.0"},
       {"1.1", "-0.1", "-0", "2", "1e-1", "0.1234567", ".5"}},
      {R"({"type":"number","exclusiveMinimum":0.1,"exclusiveMaximum":0.3})",
       {"0.2", "0.11", "0.299999"},
       {"0.1", "0.10", "0.3"}},
      {R"({"type":"number","minimum":-2.5,"maximum":-0.25})",
       {"-2.5", "-0.25", "-1", "-0.9"},
       {"-2.51", "-0.2", "0", "1"}},
      {R"({"minimum":1e-7,"maximum":3})", {"0.000001", "3"}, {"0", "0.0"}},
      {R"({"type":"number","minimum":1000000})",
       {"1000000", "1000000.5", "123456789012345"},
       {"999999", "1234567890123456"}},
      {R"({"type":"number","minimum":999999999999999})", {"999999999999999"}, {"999999999999999.5"}},
  });
  // All of two decimals from -3 to 3, as text and as number.
  GrammarState state = state_of_schema(R"({"type":"number","minimum":-1.25,"exclusiveMaximum":2.05})");
  for (int i = -300; i <= 300; ++i) {
    const int whole = std::abs(i) / 100, rest = std::abs(i) % 100;
    const std::string text =
        (i < 0 ? "-" : "") + std::to_string(whole) + (rest < 10 ? ".0" : ".") + std::to_string(rest);
    state.restart();
    ASSERT_EQ(state.advance(text) && state.may_end(), i >= -125 && i < 205) << text;
  }
}

TEST(JsonSchema, ObjectsHaveTheirPropertiesInOrder) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"properties":{"a":{"type":"integer"},"b":{"type":"null"},"c":{"type":"null"}},"required":["b"]})",
       {R"({"b":null})", R"({"a":1, "b": null,"c": null})", R"({"b":null,"c":null})"},
       {"{}", R"({"a":1})", R"({"b":null,"a":1})", R"({"b":null,"d":1})", R"({"b":null,})"}},
      {R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2}}})",
       {"{}", R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})"},
       {R"({"b":2,"a":1})"}},
      {R"({"type":"object","properties":{}})", {"{}"}, {R"({"a":1})"}},
      {R"({"properties":{"q\"\n你":{"const":1}},"required":["q\"\n你"]})", {R"({"q\"\n你":1})"}, {}},
      {R"({"required":["x"]})", {R"({"x":[1]})"}, {"{}"}},
      {R"({"properties":{"a":false,"b":{"const":1}}})", {R"({"b":1})", "{}"}, {R"({"a":1})"}},
  });
}

TEST(JsonSchema, OtherPropertiesHaveOtherNames) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"properties":{"ab":{"const":1},"a":{"const":2},"你":false},"additionalProperties":{"type":"boolean"}})",
       {"{}", R"({"ab":1,"a":2,"abc":true,"":false, "b":true})", R"({"x":true,"x":true})", R"({"你好":true})"},
       {R"({"ab":true})", R"({"a":2,"a":true})", R"({"你":true})", R"({"\u0061":true})", R"({"x":1})"}},
      {R"({"additionalProperties":{"const":1},"maxProperties":2,"minProperties":1})",
       {R"({"a":1})", R"({"a":1,"b":1})"},
       {"{}", R"({"a":1,"b":1,"c":1})"}},
      {R"({"type":"object","additionalProperties":false})", {"{}"}, {R"({"a":1})"}},
      {R"({"required":["x"],"additionalProperties":{"const":1}})", {R"({"x":1,"y":1})"}, {R"({"x":2})", R"({"y":1})"}},
      {R"({"properties":{"a":{"const":1},"b":{"const":1}},"required":["a"],"minProperties":1,"maxProperties":2})",
       {R"({"a":1})"},
       {"{}"}},
  });
}

TEST(JsonSchema, ArraysHaveTheirItems) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"items":{"const":1},"minItems":1,"maxItems":3})", {"[1]", "[1,1, 1]"}, {"[]", "[1,1,1,1]", "[2]"}},
      {R"({"items":{"const":1},"minItems":2})", {"[1,1]", "[1,1,1,1]"}, {"[1]"}},
      {R"({"items":{"const":1},"maxItems":0})", {"[]"}, {"[1]"}},
      {R"({"items":false})", {"[]"}, {"[1]"}},
      {R"({"prefixItems":[{"const":1},{"const":2}]})", {"[1,2]"}, {"[1]", "[1,2,3]", "[2,1]"}},
      {R"({"prefixItems":[{"const":1}],"items":{"const":2},"minItems":2,"maxItems":3})",
       {"[1,2]", "[1,2,2]"},
       {"[1]", "[1,2,2,2]"}},
      {R"({"prefixItems":[{"const":1},{"const":2}],"maxItems":1})", {"[1]"}, {"[1,2]", "[]"}},
      {R"({"prefixItems":[{"const":1}],"minItems":2})", {"[1,{}]"}, {"[1]"}},
      {R"({"items":[{"const":1}],"additionalItems":{"const":2}})", {"[1]", "[1,2,2]"}, {"[1,1]"}},
      {R"({"prefixItems":[{"const":1},false,{"const":3}],"items":{"const":4}})", {"[1]"}, {"[1,3]", "[1,4]"}},
  });
}

TEST(JsonSchema, ConstantsAndAlternatives) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"enum":["a\"\n","绿",1,2.5,null,[1,{"k":"v"}]]})",
       {R"("a\"\n")", R"("绿")", "1", "2.5", "null", R"([1, {"k": "v"}])", R"([1,{"k":"v"}])"},
       {R"("a")", "2", "[1]"}},
      {R"({"enum":["a",1,2.0],"type":"integer"})", {"1", "2.0"}, {R"("a")"}},
      {R"({"const":{"a":[]}})", {R"({"a":[]})"}, {"{}"}},
      {R"({"anyOf":[{"type":"null"},{"const":3},false]})", {"null", "3"}, {"4"}},
      {R"({"type":"object","anyOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"required":["b"]}]})",
       {R"({"a":1})", R"({"b":7})"},
       {"{}"}},
      {R"({"oneOf":[{"type":"string"},{"type":"integer","minimum":3},{"enum":[null,true]}]})",
       {"\"x\"", "3", "true"},
       {"2"}},
      {R"({"oneOf":[{"properties":{"t":{"const":"x"},"v":{"const":1}},"required":["t","v"]},
                    {"properties":{"t":{"enum":["y","z"]}},"required":["t"]}],"type":"object"})",
       {R"({"t":"x","v":1})", R"({"t":"z"})"},
       {R"({"t":"x"})", R"({"t":"y","v":1})"}},
      {R"({"type":"object","oneOf":[{"properties":{"a":{"const":1}},"required":["a"],"additionalProperties":false},
                    {"properties":{"b":{"const":1}},"required":["b"],"additionalProperties":false}]})",
       {R"({"a":1})", R"({"b":1})"},
       {"{}"}},
  });
}

TEST(JsonSchema, AllOfIsOneSchema) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"allOf":[{"type":["integer","string"],"minimum":3},{"type":"number","maximum":5,"minimum":1}]})",
       {"3", "5"},
       {"2", "6", "\"a\"", "3.5"}},
      {R"({"allOf":[{"properties":{"a":{"minimum":2}},"required":["a"]},
                    {"properties":{"a":{"type":"integer","maximum":3},"b":{"const":1}},"required":["b"]}],"type":"object"})",
       {R"({"a":2,"b":1})"},
       {R"({"a":2})", R"({"a":1,"b":1})"}},
      {R"({"allOf":[{"enum":[1,2,3]},{"enum":[2,3,4]}],"const":3})", {"3"}, {"2"}},
      {R"({"allOf":[{"items":{"minimum":1}},{"items":{"type":"integer"},"maxItems":2}],"minItems":1})",
       {"[1,2]"},
       {"[0]", "[]", "[1,1,1]"}},
      {R"({"$defs":{"p":{"type":"object","properties":{"n":{"const":1}},"required":["n"]}},
           "$ref":"#/$defs/p","properties":{"m":{"const":2}},"description":"beside a reference"})",
       {R"({"m":2,"n":1})", R"({"n":1})"},
       {R"({"m":2})"}},
      {R"({"allOf":[{"properties":{"a":{"maximum":3}}},{"additionalProperties":{"type":"integer","minimum":1}}],"required":["b"]})",
       {R"({"a":1,"b":5})"},
       {R"({"a":0,"b":5})", R"({"a":4,"b":5})"}},
  });
}

TEST(JsonSchema, ReferencesMayBeRecursive) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},
           "required":["v","next"]}},"$ref":"#/$defs/n"})",
       {R"({"v":1,"next":null})", R"({"v":1,"next":{"v":2,"next":null}})"},
       {R"({"v":1})"}},
      {R"({"type":"array","items":{"$ref":"#"}})", {"[]", "[[],[[]]]"}, {"[1]"}},
      {R"({"definitions":{"a/b~c %":{"const":1}},"items":{"$ref":"#/definitions/a~1b~0c%20%25"}})", {"[1]"}, {"[2]"}},
      {R"({"anyOf":[{"const":1},{"type":"array","items":{"$ref":"#/anyOf/0"}}]})", {"1", "[1,1]"}, {"[[1]]"}},
  });
}

TEST(JsonSchema, UnsupportedOrInvalidSchemasAreRejectedNamingTheKeyword) {
  const std::string deep_name(2000, 'n');
  const std::pair<std::string, std::string> cases[] = {
      {R"({"type":"object","patternProperties":{}})", "s.json: #: the keyword 'patternProperties' is not supported"},
      {R"({"properties":{"a":{"not":{}}}})", "s.json: #/properties/a: the keyword 'not'"},
      {R"({"uniqueItems":true})", "'uniqueItems'"},
      {R"({"multipleOf":2})", "'multipleOf'"},
      {R"({"tyep":"string"})", "'tyep'"},
      {R"({"type":"strnig"})", "#/type: found 'strnig', expected object, array"},
      {R"({"properties":[]})", "#/properties: found [], expected an object of schemas"},
      {R"({"minLength":-1})", "#/minLength: found -1, expected a whole number"},
      {R"({"minLength":1.5})", "#/minLength: found 1.5, expected a whole number"},
      {R"({"minimum":"3"})", "#/minimum: found '3', expected a number"},
      {R"({"exclusiveMinimum":true,"minimum":1})", "draft 4"},
      {R"({"anyOf":[]})", "#/anyOf: found [], expected an array of schemas"},
      {R"({"enum":[]})", "#/enum: expected an array of at least one value"},
      {R"({"enum":[123456789012345678901234567890]})", "#/enum: has an integer of over 64 bits"},
      {R"({"enum":["a"],"minLength":3})", "'minLength' next to enum"},
      {R"({"$ref":"other.json#/a"})", "#/$ref: 'other.json#/a' is not supported"},
      {R"({"items":{"$ref":"#/nothing/here"}})", "#/items/$ref: no schema is at '#/nothing/here'"},
      {R"({"items":{"$ref":"#/title"},"title":"t"})", "'#/title' is not a schema"},
      {R"({"$ref":"#/%4"})", "a % that is not followed by two digits"},
      {R"({"format":"iri"})", "#/format: the format 'iri' is not supported"},
      {R"({"format":"date","maxLength":3})", "only one of pattern, format and a length"},
      {R"j({"pattern":"a(?=b)"})j", "#/pattern: the pattern 'a(?=b)' at byte 3: this group is not supported"},
      {R"j({"pattern":"(a"})j", "a group is not closed"},
      {R"j({"pattern":"a)"})j", "at byte 2: this is not closed"},
      {R"j({"pattern":"a^b"})j", "at byte 2"},
      {R"j({"pattern":"(a$)"})j", "an anchor inside a group"},
      {R"j({"pattern":"\\bx"})j", "at byte 1: this escape is not supported"},
      {R"j({"pattern":"\\1"})j", "this escape is not supported"},
      {R"j({"pattern":"\\p{L}"})j", "this escape is not supported"},
      {R"j({"pattern":"[b-a]"})j", "a range ends before it starts"},
      {R"j({"pattern":"[a"})j", "a set is not closed"},
      {R"j({"pattern":"[]"})j", "a set without characters"},
      {R"j({"pattern":"a{2,1}"})j", "a repetition of at least 2 and at most 1"},
      {R"j({"pattern":"*"})j", "at byte 1: this is not supported here"},
      {R"({"minLength":3,"maxLength":2})", "#: no value is valid by this schema"},
      {R"({"type":"integer","minimum":3,"maximum":2})", "no number of at most 15 digits"},
      {R"({"minItems":3,"maxItems":2})", "no value is valid"},
      {R"({"prefixItems":[{}],"items":false,"minItems":2})", "no value is valid"},
      {"false", "#: no value is valid"},
      {R"({"properties":{"a":false},"required":["a"]})", "#/properties/a: no value is valid"},
      {R"({"required":["a"],"additionalProperties":false})", "#/required: requires 'a'"},
      {R"({"properties":{"a":{}},"minProperties":1})", "#/minProperties: is more than"},
      {R"({"properties":{"a":{},"b":{}},"maxProperties":1})", "#/maxProperties: is supported only"},
      {R"({"oneOf":[{"type":"number"},{"type":"integer"}]})",
       "#/oneOf: values may be valid by both alternatives 0 and 1"},
      {R"({"oneOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}],"type":"object"})",
       "alternatives 0 and 1"},
      {R"({"allOf":[{"type":"string"},{"type":"null"}]})", "#/allOf/1: no type fulfils"},
      {R"({"allOf":[{"pattern":"a"},{"pattern":"b"}]})", "'pattern' is in several schemas"},
      {R"({"allOf":[{"properties":{"a":{}}},{"additionalProperties":false}]})", "property 'a' is of one schema"},
      {R"({"allOf":[{"prefixItems":[{}]},{"items":{}}]})", "cannot be merged"},
      {R"({"$ref":"#"})", "s.json: rule '#' can never be finished"},
      {R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})", "s.json: rule '#' is left recursive"},
      {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})", "can never be finished"},
      {R"({"$ref":"#","title":"t","minimum":1})", "are circular"},
      {R"({"$defs":{"a":{"type":"object","properties":{"x":{"$ref":"#/$defs/a","minProperties":0}}}},"$ref":"#/$defs/a"})",
       "nested too deeply"},
      {R"({"maxLength":1000000000})", "s.json: a repetition of 1000000000, expected at most 100000"},
      {R"({"items":{"maxLength":90000},"prefixItems":[{"maxLength":90001},{"maxLength":90002},{"maxLength":90003}]})",
       "too large"},
      {R"({"properties":{")" + deep_name + R"(":{}},"additionalProperties":true})", "expected at most 1000 bytes"},
      {"[]", "s.json: #: expected a schema"},
  };
  for (const auto& [schema, wanted] : cases) {
    const std::string error = error_of([&, text = schema] { json_schema_grammar(Json::parse(text), "s.json"); });
    EXPECT_NE(error.find(wanted), std::string::npos) << schema.substr(0, 200) << "\n" << error;
    EXPECT_TRUE(error.starts_with("s.json: ")) << error;
  }
}

TEST(JsonSchema, AnnotationsSayNothing) {
  expect_schema_matches(
      {R"({"$schema":"x","$id":"y","$comment":"","title":"t","description":"d","default":1,"examples":[],
      "deprecated":true,"readOnly":true,"writeOnly":true,"x-order":1,"contentEncoding":"base64","type":"null"})",
       {"null"},
       {"1"}});
}

TEST(JsonSchema, FilesAreReadAndCheckedFirst) {
  const TemporaryFile good(R"({"properties":{"b":{"const":1},"a":{"const":2}}})");
  GrammarState state(std::make_shared<const Grammar>(load_json_schema(good.path())));
  EXPECT_TRUE(state.allows(R"({"b":1,"a":2})")) << "in the order of the file";
  const TemporaryFile broken("{\"type\":");
  EXPECT_NE(error_of([&] { load_json_schema(broken.path()); }).find("is not valid JSON at byte"), std::string::npos);
  std::string nested = "{}";
  for (int i = 0; i < 101; ++i) nested = R"({"items":)" + nested + "}";
  const TemporaryFile deep(nested);
  EXPECT_NE(error_of([&] { load_json_schema(deep.path()); }).find("is nested too deeply, expected at most 100"),
            std::string::npos);
  const TemporaryFile deepest(std::string(500'000, '['));
  EXPECT_NE(error_of([&] { load_json_schema(deepest.path()); }).find("is nested too deeply, expected at most 100"),
            std::string::npos);
  const TemporaryFile large(std::string((std::size_t{1} << 20) + 1, ' '));
  EXPECT_NE(error_of([&] { load_json_schema(large.path()); }).find("expected at most 1048576"), std::string::npos);
}

}  // namespace
}  // namespace minimind
