#include "runtime/json_schema/json_schema.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/grammar/state.h"
#include "tests/support/temporary_file.h"
#include "weights/base/error.h"
#include "weights/io/json_fields.h"

namespace minimind {
namespace {

using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

GrammarState state_of_schema(const std::string& schema, const JsonSchemaOptions& options = {}) {
  return GrammarState(
      std::make_shared<const Grammar>(compile_json_schema(Json::parse(schema), "s.json", options).grammar));
}

JsonSchemaOptions closed() {
  JsonSchemaOptions options;
  options.closed = true;
  return options;
}

struct SchemaCase {
  std::string schema;
  Texts accepted, rejected;
};

void expect_schema_matches(const SchemaCase& c, const JsonSchemaOptions& options = {}) {
  GrammarState state = state_of_schema(c.schema, options);
  const auto matches = [&](const std::string& text) {
    state.restart();
    return state.advance(text) && state.may_end();
  };
  for (const std::string& text : c.accepted) EXPECT_TRUE(matches(text)) << c.schema << "\n" << text;
  for (const std::string& text : c.rejected) EXPECT_FALSE(matches(text)) << c.schema << "\n" << text;
}

void expect_schema_matches(const std::vector<SchemaCase>& cases, const JsonSchemaOptions& options = {}) {
  for (const SchemaCase& c : cases) expect_schema_matches(c, options);
}

TEST(JsonSchema, TypesAndAnything) {
  expect_schema_matches(std::vector<SchemaCase>{
      {"{}",
       {"{}", "[]", R"([1, {"a":"b","c": [true,null]}])", "-0.5e+12", "[\n  1\n]"},
       {"", "[1 ]", " 1", "[1,  2]", "01"}},
      {"true", {"1"}, {"x"}},
      {R"({"type":"null"})", {"null"}, {"0"}},
      {R"({"type":["boolean","integer"]})", {"true", "-7", "0", "1.0", "1e2", "-0"}, {"\"a\"", "1.5", "00", "1e-1"}},
      {R"({"type":["integer","number"]})", {"1.5", "2"}, {"\"1\""}},
      {R"({"type":"number"})", {"0", "-0.0", "1.25E-9", "1e99"}, {".5", "1.", "1e100", "+1"}},
      {R"({"type":"object"})", {"{}", R"({"a你":1})"}, {"[]", R"({a:1})", R"({"a":1,})"}},
      {R"({"type":"array"})", {"[]", "[[],{}]"}, {"{}", "[,]"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"integer"})", {"1", "-7"}, {"1.0", "1e2"}},
  });
}

TEST(JsonSchema, WhitespaceIsLimitedUnlessAnyIsAllowed) {
  const std::string schema = R"({"properties":{"a":{"type":"array"}}})";
  const Texts usual = {R"({"a":[1,2]})", R"({"a": [1, 2]})", "{\n  \"a\": [\n    1,\n    2\n  ]\n}"};
  const Texts unusual = {R"({"a" :[]})", R"({"a":[ 1]})", " {}", "{\t}", "{}\n", "{\r\n}", "{\"a\":\n[]}"};
  expect_schema_matches({schema, usual, unusual});
  JsonSchemaOptions any;
  any.any_spelling = true;
  expect_schema_matches({schema, usual, {}}, any);
  expect_schema_matches({schema, unusual, {"{ \"a b\" x}", "{\v}"}}, any);
}

TEST(JsonSchema, StringsCountCharactersHoweverTheyAreWritten) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"type":"string"})",
       {R"("")", R"("\"\\/\b\f\n\r\t")", R"("\u00e9\uD7ff\uE000")", R"("\ud83d\uDE00")", "\"\x7F你\""},
       {R"("\ud83d")", R"("\ude00\ud83d")", R"("\ud83dx")", "\"\n\"", "\"\x1F\"", R"("\x")", R"("a)"}},
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {R"("ab")", R"("你😀\n")", R"("\ud83d\ude00A")"},
       {R"("a")", R"("abcd")", R"("\ud83d\ude00")"}},
      {R"({"maxLength":0})", {R"("")", "1"}, {R"("a")"}},
      {R"({"minLength":1})", {R"("a")"}, {R"("")"}},
  });
}

TEST(JsonSchema, CharactersMayBeEscapedWithoutNeedIfAnySpellingIsAllowed) {
  const std::vector<SchemaCase> cases{
      {R"({"type":"string","maxLength":2})", {R"("\/\u0041")"}, {R"("\u0041\u0042\u0043")"}},
      {R"({"properties":{"b":{"type":"null"}}})", {R"({"\u0062":null})"}, {R"({"\u0062":1})"}},
      {R"({"const":[1,{"a":"b"}]})", {R"([1.0,{"a":"\u0062"}])"}, {R"([1.0,{"a":"\u0063"}])"}},
  };
  JsonSchemaOptions any;
  any.any_spelling = true;
  expect_schema_matches(cases, any);
  for (const SchemaCase& c : cases) expect_schema_matches(SchemaCase{c.schema, {}, c.accepted});
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
      {R"j({"pattern":"^\\0a\\p{General_Category=Nd}{1x}$"})j", {"\"\\u0000a1{1x}\""}, {"\"\\u0000a1\""}},
      {R"j({"pattern":"^a{1$"})j", {R"("a{1")"}, {R"("a")"}},
      {R"j({"pattern":""})j", {R"("anything")", R"("")"}, {}},
  });
}

TEST(JsonSchema, PatternsLookAheadAndKnowCategories) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"j({"pattern":"^(?!ab)[a-c]+$"})j", {R"("ba")", R"("aab")"}, {R"("ab")", R"("abc")"}},
      {R"j({"pattern":"^((?!no).)*$"})j", {R"("n-o")", R"("")"}, {R"("a no b")", R"("no")"}},
      {R"j({"pattern":"^(?=.*[0-9])(?=.*[a-z]).{2,3}$"})j",
       {R"("a1")", R"("1-b")"},
       {R"("aa")", R"("1")", R"("ab12")"}},
      {R"j({"pattern":"a(?=b$)"})j", {R"("xab")"}, {R"("abc")", R"("a")"}},
      {R"j({"pattern":"^\\p{Lu}\\p{L}*\\P{N}$"})j", {R"("Éa!")"}, {R"("éa!")", R"("Éa1")"}},
      {R"j({"pattern":"^\\p{Script=Han}\\p{sc=Cyrl}\\P{Script=Latin}\\p{gc=Nd}$"})j",
       {"\"你жж1\""},
       {"\"你жx1\"", "\"aжж1\""}},
      {R"j({"pattern":"^\\p{Script=Hira}$"})j", {"\"ゔ\"", "\"\U0001F200\""}, {"\"カ\"", "\"ー\""}},
      {R"j({"pattern":"\\bcat\\b"})j",
       {R"("cat")", R"("a cat!")", R"("écat")"},
       {R"("cats")", R"("concat")", R"("cat_")"}},
      {R"j({"pattern":"^\\Bx|a\\B"})j", {R"("ab")", R"("a0")"}, {R"("x")", R"("a")", R"("a b")"}},
      {R"j({"pattern":"^(?=a\\b)..$"})j", {R"("a ")"}, {R"("ab")"}},
      {R"j({"pattern":"^(?!\\w+\\b!)[\\w!]+$"})j", {R"("ab")", R"("!ab")"}, {R"("ab!")", R"("a!b")"}},
      {R"j({"pattern":"(?i)^straße[^k]\\W$"})j",
       {R"("STRAßE1!")", R"("straẞeM ")"},
       {R"("strasse1!")", "\"straße\u212A!\"", R"("straßeK!")", R"("straße1k")"}},
      {R"j({"pattern":"(?i)\\bkσ?[a-b]\\b"})j", {R"("KA")", "\"x \u212AςB.\""}, {R"("kC")", R"("xKA")", R"("kΣab")"}},
      {R"j({"pattern":"^a(?i:b|(?-i:c)d)e$"})j", {R"("aBe")", R"("acDe")"}, {R"("Abe")", R"("aCde")", R"("abE")"}},
      {R"j({"pattern":"^a{,2}]}$"})j", {R"("a{,2}]}")"}, {R"("aa]}")"}},
      {R"j({"pattern":"^(a|b$)c?"})j", {R"("ac")", R"("b")"}, {R"("bc")"}},
      {R"j({"pattern":"^[^]$"})j", {R"("x")", R"("\n")"}, {R"("")"}},
      {R"j({"pattern":"^\\ud83d\\ude00$"})j", {R"("😀")", R"("\ud83d\ude00")"}, {R"("x")"}},
  });
}

TEST(JsonSchema, PatternsFormatsAndLengthsHoldTogether) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"j({"pattern":"^a*b$","minLength":2,"maxLength":3})j", {R"("ab")", R"("aab")"}, {R"("b")", R"("aaab")"}},
      {R"j({"pattern":"^a+$","allOf":[{"pattern":"^(aa)*$"}]})j", {R"("aa")"}, {R"("a")", R"("aaa")"}},
      {R"j({"format":"hostname","maxLength":255,"minLength":5})j", {R"("a.example")"}, {R"("a.b")", R"("-a-b-c")"}},
      {R"j({"pattern":"^(ab)*$","maxLength":5000,"minLength":3})j", {R"("abab")"}, {R"("ab")", R"("aba")"}},
  });
}

TEST(JsonSchema, FormatsGiveValuesThatAreTheirs) {
  const auto of = [](const std::string& format) { return R"({"type":"string","format":")" + format + "\"}"; };
  expect_schema_matches(std::vector<SchemaCase>{
      {of("date"),
       {R"("2024-02-29")", R"("2000-02-29")", R"("1999-12-31")", R"("2023-04-30")", R"("0001-01-01")"},
       {R"("2023-02-29")", R"("1900-02-29")", R"("2023-04-31")", R"("2023-13-01")", R"("2023-00-10")",
        R"("99-01-01")"}},
      {of("time"),
       {R"("23:59:59Z")", R"("00:00:00.125+02:30")", R"("23:59:60z")"},
       {R"("24:00:00Z")", R"("12:00:00")", R"("1:00:00Z")", R"("12:00:60Z")"}},
      {of("date-time"), {R"("2024-02-29T01:02:03-11:00")"}, {R"("2024-02-29 01:02:03Z")"}},
      {of("duration"),
       {R"("P1Y2M3DT4H5M6S")", R"("P4W")", R"("PT36H")"},
       {R"("P")", R"("PT")", R"("P1Y4W")", R"("1D")"}},
      {of("uuid"), {R"("00112233-4455-6677-8899-aabbccddeeFF")"}, {R"("00112233")"}},
      {of("email"), {R"("a.b@example.org")", R"("a+b@x")"}, {R"("@b.c")", R"("a..b@c.d")", R"("a b@c.d")"}},
      {of("hostname"), {R"("a-1.example")", R"("x")", R"("3com.com")"}, {R"("-a")", R"("a.")", R"("a_b")"}},
      {of("ipv4"), {R"("255.0.19.200")"}, {R"("256.0.0.1")", R"("01.0.0.1")", R"("1.2.3")"}},
      {of("ipv6"),
       {R"("1:22:333:4444:5:6:7:abcd")", R"("::1")", R"("::")", R"("1::8")", R"("::ffff:1.2.3.4")"},
       {R"("1:2:3:4:5:6:7:8:9")", R"("1::2::3")", R"("12345::")", R"("1:2:3:4:5:6:7")"}},
      {of("uri"),
       {R"("https://a.example/b?c=d#e")", R"("urn:isbn:1")", R"("http://[::1]:80/")"},
       {R"("a/b")", R"("http://a b")", R"("//a")", R"("http://a/%x")"}},
      {of("uri-reference"), {R"("a/b")", R"("#x")", R"("")"}, {R"("\\\\x")"}},
      {of("iri"), {R"("http://例.example/é")"}, {R"("é")"}},
      {of("json-pointer"), {R"("")", R"("/a~1b")"}, {R"("a")", R"("/~2")"}},
      {of("regex"), {R"("^[a-z_]+(x|y){2,}$")", R"("\\d+")"}, {R"("(")", R"("[z-a]")", R"("a**")"}},
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
        EXPECT_THROW(compile_json_schema(schema, "s.json"), Error);
        continue;
      }
      GrammarState state = state_of_schema(schema.dump(), closed());
      for (int i = -1200; i <= 1200; ++i) {
        state.restart();
        const bool inside = exclusive ? low < i && i < high : low <= i && i <= high;
        ASSERT_EQ(state.advance(std::to_string(i)) && state.may_end(), inside) << schema << i;
      }
    }
  }
}

TEST(JsonSchema, NumbersWithAnExponentAreComparedWithBounds) {
  JsonSchemaOptions any;
  any.any_spelling = true;
  for (const double bound :
       {1.0, -1.0, 0.5, 250.0, -250.0, 205.0, 1e-7, -1.5e22, 12345.678, 9.9e98, 1e120, 0.1 + 0.2}) {
    for (const std::string keyword : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
      GrammarState state = state_of_schema(Json{{keyword, bound}}.dump(), any);
      for (const std::string mantissa :
           {"1", "1.0", "1.2345678", "2.5", "2.50", "2.05", "2", "2.499", "2.50001", "9.9", "5", "3"}) {
        for (const std::string exponent :
             {"e-99", "e-08", "E-7", "e-2", "E-1", "e0", "e-00", "e+1", "e2", "E+02", "e4", "e22", "e98", "e99"}) {
          for (const std::string sign : {"", "-"}) {
            const std::string text = sign + mantissa + exponent;
            const double value = std::stod(text);
            const bool inside = keyword == "minimum"            ? value >= bound
                                : keyword == "maximum"          ? value <= bound
                                : keyword == "exclusiveMinimum" ? value > bound
                                                                : value < bound;
            state.restart();
            ASSERT_EQ(state.advance(text) && state.may_end(), inside) << keyword << " " << bound << ": " << text;
          }
        }
      }
    }
  }
}

TEST(JsonSchema, IntegersOfOneBoundAndOfSixtyFourBits) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"type":"integer","minimum":5})", {"5", "5.0", "12345678901234567890"}, {"4", "-5", "5.5", "0"}},
      {R"({"type":"integer","minimum":0})", {"0", "-0", "10", "1e3"}, {"-1", "0.5"}},
      {R"({"type":"integer","exclusiveMaximum":-5})", {"-6", "-999999999999999"}, {"-5", "-5.0", "0"}},
      {R"({"type":"integer","minimum":9007199254740993})",
       {"9007199254740993", "9223372036854775807"},
       {"9007199254740992"}},
      {R"({"type":"integer","maximum":-9223372036854775808})", {"-9223372036854775808"}, {"-9223372036854775807"}},
      {R"({"type":"integer","minimum":0,"exclusiveMinimum":3,"maximum":1e20,"exclusiveMaximum":5})", {"4"}, {"3", "5"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","minimum":3,"exclusiveMinimum":true})", {"4"}, {"3"}},
  });
}

TEST(JsonSchema, NumbersAreWithinTheirBounds) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"type":"number","minimum":0,"maximum":1})",
       {"0", "1", "0.5", "0.000001", "1.000000", "0.0", "-0", "0.12345678901234567"},
       {"1.1", "-0.1", "2", "1.00000000000000001", ".5", "1e1"}},
      {R"({"type":"number","minimum":0})", {"0e5", "1e-9", "1.5E+9"}, {"-1e-9", "-1"}},
      {R"({"type":"number","exclusiveMinimum":0})", {"0.01", "1e-9"}, {"0", "-0", "0.00", "0e9", "-1"}},
      {R"({"type":"number","exclusiveMinimum":0.1,"exclusiveMaximum":0.3})",
       {"0.2", "0.11", "0.299999"},
       {"0.1", "0.10", "0.3", "0.29999999999999999999"}},
      {R"({"type":"number","minimum":-2.5,"maximum":-0.25})",
       {"-2.5", "-0.25", "-1", "-0.9"},
       {"-2.51", "-0.2", "0", "1"}},
      {R"({"minimum":1e-7,"maximum":3})", {"0.000001", "3", "0.0000001"}, {"0", "0.0", "0.00000001"}},
      {R"({"type":"number","minimum":1000000})", {"1000000", "1000000.5", "1234567890123456"}, {"999999", "999999.9"}},
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

TEST(JsonSchema, NumbersAreMultiples) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"multipleOf":7})", {"0", "-14", "7.0", "700000000000007"}, {"1", "7.5", "13", "7000000000000000000007"}},
      {R"({"multipleOf":0.25})", {"0.75", "1", "2.250"}, {"0.3", "0.125"}},
      {R"({"multipleOf":1})", {"3", "3.0"}, {"3.5"}},
      {R"({"multipleOf":300,"minimum":301})", {"600"}, {"300", "450"}},
      {R"({"multipleOf":1000000})", {"0", "-3000000", "10000000.00", "0.0"}, {"300000", "1000001", "1000000.5", "10"}},
      {R"({"multipleOf":86400})", {"0", "86400", "-172800", "864000"}, {"43200", "8640", "86401", "100000"}},
      {R"({"multipleOf":0.00125})", {"0.0025", "1", "-0.00125", "3.75000"}, {"0.00126", "0.0005"}},
  });
}

TEST(JsonSchema, NumbersAreMultiplesOfAnyDecimal) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"multipleOf":5001})", {"0", "-0", "5001", "-15003", "5001.0"}, {"5002", "50010.5", "1"}},
      {R"({"multipleOf":10000019})", {"20000038", "500000950"}, {"20000039", "1000001900000191"}},
      {R"({"multipleOf":3.14159})", {"6.28318", "314159", "3.1415900", "314159.000"}, {"6.28319", "3.1416", "3"}},
      {R"({"multipleOf":7919000})", {"7919000", "15838000.0"}, {"7919"}},
      {R"({"multipleOf":10007,"minimum":19000,"maximum":20014})", {"20014"}, {"10007", "20013", "30021", "0"}},
      {R"({"multipleOf":10007,"enum":[5,10007.0,20014]})", {"10007", "20014"}, {"5", "30021"}},
      {R"({"allOf":[{"multipleOf":97},{"multipleOf":89}]})", {"8633", "0"}, {"97", "89"}},
      {R"({"allOf":[{"multipleOf":0.01},{"multipleOf":10007}]})", {"10007.00"}, {"10007.01", "0.01"}},
      {R"({"multipleOf":1e20})", {"0"}, {"100000000000000000000"}},
  });
}

// Whatever digits come first, the rest is a multiple within the limits.
TEST(JsonSchema, MultiplesHaveNoDeadEnds) {
  GrammarState state = state_of_schema(R"({"multipleOf":1000.03,"minimum":-2000.06,"exclusiveMaximum":3000000})");
  std::uint64_t seed = 1;
  for (int turn = 0; turn < 200; ++turn) {
    state.restart();
    while (!state.must_end()) {
      std::string next;
      for (const char c : std::string_view("-.0123456789")) {
        if (state.allows({&c, 1})) next += c;
      }
      if (next.empty() || (state.may_end() && turn % 2 == 0)) break;
      seed = seed * 6364136223846793005u + 1;
      const std::uint64_t before = state.bytes_to_end();
      const char c = next[(seed >> 33) % next.size()];
      ASSERT_TRUE(state.advance({&c, 1}));
      ASSERT_LE(before, state.bytes_to_end() + 1);
    }
    ASSERT_TRUE(state.may_end());
  }
}

TEST(JsonSchema, IntegersOfMoreThan64BitsAreExact) {
  const auto matches = [](const std::string& schema, const std::string& text) {
    const auto json = parse_json<Json>(schema, "s.json", 10, "a schema", true);
    GrammarState state(std::make_shared<const Grammar>(compile_json_schema(json, "s.json").grammar));
    return state.advance(text) && state.may_end();
  };
  const std::string number = "123456789012345678901234567890", more = "123456789012345678901234567891";
  EXPECT_TRUE(matches(R"({"const":)" + number + "}", number));
  EXPECT_FALSE(matches(R"({"const":)" + number + "}", more));
  EXPECT_TRUE(matches(R"({"minimum":)" + number + "}", more));
  EXPECT_FALSE(matches(R"({"minimum":)" + more + "}", number));
  EXPECT_TRUE(matches(R"({"enum":[{"a":-)" + number + "}]}", R"({"a":-)" + number + "}"));
}

TEST(JsonSchema, PropertiesComeInAnyOrderWithOthers) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"properties":{"a":{"type":"integer"},"b":{"type":"null"}},"required":["b"],"type":"object"})",
       {R"({"b":null})", R"({"a":1, "b": null})", R"({"b":null,"a":1})", R"({"x":[],"b":null,"d":1})"},
       {"{}", R"({"a":1})", R"({"b":null,"b":null})", R"({"b":null,"\u0062":null})", R"({"b":null,"a":"x"})",
        R"({"b":null,})", R"({"x":1,"b":null,"x":1})", R"({"\u0061":null,"b":null})"}},
      {R"({"properties":{"a":false}})", {R"({"b":1})", "{}"}, {R"({"a":1})"}},
      {R"({"required":["x"],"type":"object"})", {R"({"x":[1]})", R"({"y":1,"x":1})"}, {"{}"}},
      {R"({"properties":{"ab":{"const":1},"a":{"const":2},"你":false},"additionalProperties":{"type":"boolean"}})",
       {"{}", R"({"ab":1,"a":2,"abc":true,"":false, "b":true})", R"({"你好":true})"},
       {R"({"ab":true})", R"({"a":2,"a":true})", R"({"你":true})", R"({"\u0061":true})", R"({"x":1})"}},
      {R"({"type":"object","additionalProperties":false})", {"{}"}, {R"({"a":1})"}},
      {R"({"required":["x"],"additionalProperties":{"const":1}})", {R"({"y":1,"x":1})"}, {R"({"x":2})", R"({"y":1})"}},
  });
}

TEST(JsonSchema, PropertiesAreCountedAndNamed) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"type":"object","additionalProperties":{"const":1},"maxProperties":2,"minProperties":2})",
       {R"({"a":1,"b":1})"},
       {"{}", R"({"a":1})", R"({"a":1,"a":1})", R"({"a":1,"b":1,"c":1})"}},
      {R"({"properties":{"a":{},"b":{},"c":{}},"additionalProperties":false,"minProperties":1,"maxProperties":2})",
       {R"({"c":1})", R"({"b":1,"a":1})"},
       {"{}", R"({"a":1,"b":1,"c":1})"}},
      {R"j({"patternProperties":{"^a":{"type":"null"},"z$":{"type":"integer"}},"additionalProperties":false})j",
       {"{}", R"({"ab":null,"z":1})"},
       {R"({"b":1})", R"({"a":1})", R"({"az":null})", R"({"az":1})"}},
      {R"j({"properties":{"ab":{"const":null}},"patternProperties":{"b$":{"type":["null","string"]}},"additionalProperties":{"const":1}})j",
       {R"({"ab":null,"b":"","c":1})"},
       {R"({"ab":""})", R"({"c":2})", R"({"b":1})"}},
      {R"j({"type":"object","propertyNames":{"pattern":"^[a-z]+$","maxLength":3},"properties":{"abcd":{}}})j",
       {R"({"abc":1})"},
       {R"({"abcd":1})", R"({"A":1})"}},
      {R"({"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"properties":{"d":{"const":1}}}},"type":"object"})",
       {"{}", R"({"b":1})", R"({"a":1,"b":1})", R"({"d":2})", R"({"c":1,"d":1})"},
       {R"({"a":1})", R"({"c":1,"d":2})"}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"b":{"required":["c"]}},"type":"object"})",
       {R"({"a":1,"b":1,"c":1})", R"({"c":1})"},
       {R"({"a":1})", R"({"b":1})"}},
  });
}

TEST(JsonSchema, AClosedGrammarHasTheNamedPropertiesInOrder) {
  expect_schema_matches(
      std::vector<SchemaCase>{
          {R"({"properties":{"a":{"type":"integer"},"b":{"type":"null"},"c":{"type":"null"}},"required":["b"],"type":"object"})",
           {R"({"b":null})", R"({"a":1, "b": null,"c": null})", R"({"b":null,"c":null})"},
           {"{}", R"({"a":1})", R"({"b":null,"a":1})", R"({"b":null,"d":1})", R"({"a":1.0,"b":null})",
            R"({"\u0062":null})"}},
          {R"({"type":"object","properties":{"a":{},"b":{"type":"null"}},"additionalProperties":true})",
           {R"({"b":null,"x":1})"},
           {R"({"x":1,"b":null})"}},
          {R"({"type":"object"})", {R"({"a":1})"}, {}},
          {R"({"properties":{"a":{"type":"null"}}})", {R"({"a":null})"}, {"1", "[]", "null"}},
          {R"({"type":"object","required":["x"]})", {R"({"x":1})"}, {"{}"}},
          {R"j({"type":"object","properties":{"a":{"type":"null"}},"patternProperties":{"^x":{}}})j",
           {R"({"a":null,"x1":1})"},
           {R"({"x1":1,"a":null})"}},
          {R"({"type":"object","allOf":[{"properties":{"a":{"type":"null"}}},{"properties":{"b":{"type":"null"}}}]})",
           {R"({"a":null,"b":null})"},
           {R"({"c":1})"}},
      },
      closed());
}

TEST(JsonSchema, ArraysHaveTheirItems) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"items":{"const":1},"minItems":1,"maxItems":3})", {"[1]", "[1,1, 1.0]"}, {"[]", "[1,1,1,1]", "[2]"}},
      {R"({"items":{"const":1},"minItems":2})", {"[1,1]", "[1,1,1,1]"}, {"[1]"}},
      {R"({"items":{"const":1},"maxItems":0})", {"[]"}, {"[1]"}},
      {R"({"items":false})", {"[]"}, {"[1]"}},
      {R"({"prefixItems":[{"const":1},{"const":2}]})", {"[1,2]", "[1]", "[1,2,3]"}, {"[2,1]"}},
      {R"({"prefixItems":[{"const":1}],"items":{"const":2},"minItems":2,"maxItems":3})",
       {"[1,2]", "[1,2,2]"},
       {"[1]", "[1,2,2,2]"}},
      {R"({"prefixItems":[{"const":1},{"const":2}],"maxItems":1})", {"[1]", "[]"}, {"[1,2]"}},
      {R"({"prefixItems":[{"const":1}],"minItems":2})", {"[1,{}]"}, {"[1]"}},
      {R"({"items":[{"const":1}],"additionalItems":{"const":2}})", {"[1]", "[1,2,2]"}, {"[1,1]"}},
      {R"({"prefixItems":[{"const":1},false,{"const":3}],"items":{"const":4}})", {"[1]"}, {"[1,3]", "[1,4]"}},
  });
}

TEST(JsonSchema, ArraysContainItemsAndRepeatNone) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"type":"array","contains":{"type":"null"}})", {"[null]", "[1,null,2]"}, {"[]", "[1,2]"}},
      {R"({"type":"array","contains":{"type":"null"},"minContains":2,"maxContains":2})",
       {"[null,1,null]"},
       {"[null]", "[null,null,null]"}},
      {R"({"type":"array","uniqueItems":true})",
       {"[]", "[1,2]", R"([{"a":1},{"a":2}])", "[true,1]"},
       {"[1,1]", "[1,2,1.0]", R"([{"a":1,"b":2},{"b":2.0,"a":1}])", R"(["a","\u0061"])"}},
      {R"({"items":{"enum":["a","ab",true,null]},"uniqueItems":true,"minItems":2})",
       {R"(["ab","a",null,true])"},
       {R"(["a"])", R"(["a","ab","a"])"}},
      {R"({"anyOf":[{"uniqueItems":true},{"items":{"const":1}}]})", {"[1,1]", "[1,2]"}, {"[2,2]"}},
  });
  GrammarState state = state_of_schema(R"({"items":{"enum":["a","ab"]},"uniqueItems":true})");
  ASSERT_TRUE(state.advance(R"(["ab","a)"));
  EXPECT_FALSE(state.allows("b")) << "is used already";
  ASSERT_TRUE(state.advance("\""));
  EXPECT_FALSE(state.allows(",")) << "no value is left";
}

TEST(JsonSchema, OppositesAndConditions) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"not":{"type":["string","object"]}})", {"1", "[]", "null"}, {"\"\"", "{}"}},
      {R"({"not":{"enum":[1,"a",null,[2]]}})",
       {"2", "\"b\"", "[]", "[2,2]", "{}"},
       {"1", "1.0", "\"a\"", "null", "[2]"}},
      {R"({"type":"object","not":{"required":["a"]}})", {"{}", R"({"b":1})"}, {R"({"a":1})"}},
      {R"({"type":"object","not":{"properties":{"a":{"const":1}},"required":["a"]}})",
       {"{}", R"({"a":2})"},
       {R"({"a":1})", R"({"b":2,"a":1})"}},
      {R"({"type":"integer","not":{"minimum":3,"maximum":5}})", {"2", "6"}, {"3", "5"}},
      {R"j({"type":"string","not":{"pattern":"a"}})j", {R"("b")"}, {R"("bab")"}},
      {R"({"not":{"items":{"type":"integer"}},"type":"array"})", {"[null]", "[1,null]"}, {"[]", "[1]"}},
      {R"({"not":{"additionalProperties":{"type":"integer"}},"type":"object"})",
       {R"({"a":1,"b":null})"},
       {"{}", R"({"a":1})"}},
      {R"({"not":{"propertyNames":{"maxLength":1}},"type":"object"})", {R"({"a":1,"bc":1})"}, {"{}", R"({"a":1})"}},
      {R"({"if":{"type":"integer"},"then":{"minimum":3},"else":{"type":"null"}})", {"3", "null"}, {"2", "3.5", "\"\""}},
      {R"({"type":"object","if":{"properties":{"k":{"const":"a"}},"required":["k"]},"then":{"required":["x"]}})",
       {"{}", R"({"k":"b"})", R"({"k":"a","x":1})", R"({"x":1,"k":"a"})"},
       {R"({"k":"a"})"}},
      {R"({"oneOf":[{"type":"integer"},{"minimum":2}]})", {"1", "2.5", "\"a\""}, {"3", "1.5"}},
      {R"({"oneOf":[{"required":["a"]},{"required":["b"]}],"type":"object"})",
       {R"({"a":1})", R"({"b":1,"c":1})"},
       {"{}", R"({"a":1,"b":1})", R"({"b":1,"c":1,"a":1})"}},
      {R"({"oneOf":[{"type":"number"},{"type":"integer"}]})", {"1.5"}, {"1"}},
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
       {R"({"t":"x"})", R"({"t":"a","v":1})"}},
      {R"({"type":"object","oneOf":[{"properties":{"a":{"const":1}},"required":["a"],"additionalProperties":false},
                    {"properties":{"b":{"const":1}},"required":["b"],"additionalProperties":false}]})",
       {R"({"a":1})", R"({"b":1})"},
       {"{}"}},
      {R"({"enum":["ab","abc",7],"minLength":3})", {R"("abc")", "7"}, {R"("ab")"}},
      {R"({"const":[1,{"a":"b"}]})", {R"([1, {"a": "b"}])", R"([1.0,{"a":"b"}])"}, {R"([1,{"a":"c"}])", "[1]"}},
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
       {R"({"m":2})", R"({"m":3,"n":1})"}},
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

TEST(JsonSchema, ReferencesFollowIdsAndAnchors) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"$id":"http://x.example/a/b.json","$defs":{"c":{"$id":"d.json","$defs":{"e":{"$anchor":"f","const":1}}}},
           "items":{"$ref":"d.json#f"}})",
       {"[1]"},
       {"[2]"}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"$id":"#x","const":1}},
           "items":{"$ref":"#x","const":2}})",
       {"[1]"},
       {"[2]"}},
      {R"({"$id":"http://x.example/a","$defs":{"b":{"$id":"?b","const":1}},"items":{"$ref":"?b"}})", {"[1]"}, {"[2]"}},
      {R"({"prefixItems":[{"const":1},{"$ref":"#/prefixItems/0"}]})", {"[1, 1]"}, {"[1, 2]"}},
      {R"({"items":{"$ref":"#/$defs/x"},"$defs":{"x":{"type":"array","items":{"$ref":"#/$defs/x"}}}})",
       {"[[],[[]]]"},
       {"[1]"}},
  });
  const TemporaryFile other(R"({"$defs":{"n":{"type":"integer"}}})");
  JsonSchemaOptions options;
  options.references["http://x.example/other.json"] = other.path();
  expect_schema_matches({R"({"$ref":"http://x.example/other.json#/$defs/n"})", {"1"}, {"null"}}, options);
}

TEST(JsonSchema, WhatAlternativesEvaluateDependsOnWhichHold) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"type":"object","allOf":[{"properties":{"a":{}}}],"properties":{"b":{}},"unevaluatedProperties":false})",
       {"{}", R"({"a":1,"b":2})"},
       {R"({"c":1})"}},
      {R"({"type":"object","anyOf":[{"properties":{"a":{"const":1}},"required":["a"]},
           {"properties":{"b":{"const":1}},"required":["b"]}],"unevaluatedProperties":false})",
       {R"({"a":1})", R"({"b":1})", R"({"a":1,"b":1})"},
       {"{}", R"({"a":1,"b":2})", R"({"a":1,"c":2})"}},
      {R"({"type":"object","if":{"properties":{"k":{"const":1}},"required":["k"]},"then":{"properties":{"a":{}}},
           "else":{"patternProperties":{"^x":{}}},"unevaluatedProperties":{"type":"null"}})",
       {R"({"k":1,"a":1})", R"({"xy":1,"k":null})", R"({"z":null})"},
       {R"({"k":2})", R"({"k":1,"x":1})"}},
      {R"({"$defs":{"p":{"properties":{"a":{}}}},"allOf":[{"unevaluatedProperties":false},{"$ref":"#/$defs/p"}],
           "type":"object"})",
       {"{}"},
       {R"({"a":1})"}},
      {R"({"type":"array","allOf":[{"prefixItems":[{"const":1}]}],"unevaluatedItems":{"const":2}})",
       {"[]", "[1]", "[1,2,2]"},
       {"[2]", "[1,1]"}},
  });
}

TEST(JsonSchema, DynamicReferencesLeadToTheDocument) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"$id":"strict","$dynamicAnchor":"node","$ref":"tree","unevaluatedProperties":false,
           "$defs":{"tree":{"$id":"tree","$dynamicAnchor":"node","type":"object","properties":{
             "data":true,"children":{"type":"array","items":{"$dynamicRef":"#node"}}}}}})",
       {R"({"children":[{"data":1}]})"},
       {R"({"daat":1})", R"({"children":[{"daat":1}]})"}},
      {R"({"$schema":"https://json-schema.org/draft/2019-09/schema","$id":"strict","$recursiveAnchor":true,"$ref":"tree",
           "$defs":{"tree":{"$id":"tree","$recursiveAnchor":true,"type":"array","items":{"$recursiveRef":"#"}}},
           "maxItems":1})",
       {"[]", "[[[]]]"},
       {"[[],[]]", "[[[],[]]]"}},
  });
}

// The branches of such a value are too many to tell apart.
TEST(JsonSchema, WhatIsTooComplexIsLeftOutOfATextOrRejectedBeforeIt) {
  std::string parts;
  for (int i = 0; i < 14; ++i) {
    parts += fmt::format(R"({}{{"anyOf":[{{"required":["a{}"]}},{{"required":["b{}"]}}]}})", i == 0 ? "" : ",", i, i);
  }
  const std::string complex = R"({"type":"object","allOf":[)" + parts + "]}";
  EXPECT_NE(error_of([&] { compile_json_schema(Json::parse(complex), "s.json"); }).find("too many combinations"),
            std::string::npos);
  GrammarState state = state_of_schema(R"({"type":"object","properties":{"a":)" + complex + R"(,"b":{"const":1}}})");
  ASSERT_TRUE(state.advance("{\""));
  EXPECT_FALSE(state.allows("a\""));
  EXPECT_TRUE(state.allows("b\":1}"));
}

TEST(JsonSchema, OptionalPropertiesWithoutValuesAreLeftOut) {
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"properties":{"a":{"type":"string","minLength":3,"maxLength":2},"b":{"enum":["x"],"minLength":2}}})",
       {"{}", R"({"c":1})"},
       {R"({"a":"x"})", R"({"b":"x"})"}},
      {R"({"$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"required":["n"]}},
           "properties":{"a":{"$ref":"#/$defs/n"}}})",
       {"{}"},
       {R"({"a":{}})", R"({"a":{"n":{}}})"}},
  });
  GrammarState state = state_of_schema(R"({"type":"object","properties":{"a":false},"additionalProperties":false})");
  ASSERT_TRUE(state.advance("{"));
  EXPECT_FALSE(state.allows("\""));
}

TEST(JsonSchema, InvalidSchemasAreRejectedNamingTheKeyword) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"type":"strnig"})", "#/type: is 'strnig', expected object, array"},
      {R"({"properties":[]})", "#/properties: is array, expected an object of schemas"},
      {R"({"minLength":-1})", "#/minLength: is -1, expected a whole number"},
      {R"({"minLength":1.5})", "#/minLength: is 1.5, expected a whole number"},
      {R"({"minLength":"1"})", "#/minLength: is \"1\", expected a whole number"},
      {R"({"minimum":"3"})", "#/minimum: is string, expected a number"},
      {R"({"multipleOf":1234567890.1234567})",
       "#/multipleOf: is not supported, expected a number of at most 15 digits"},
      {R"({"enum":1})", "#/enum: is number, expected an array of constants"},
      {R"({"required":[1]})", "#/required: expected an array of names"},
      {R"({"uniqueItems":1})", "#/uniqueItems: expected true or false"},
      {R"({"format":1})", "#/format: expected a text"},
      {R"({"dependentRequired":[]})", "#/dependentRequired: is array, expected an object"},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","$ref":1})", "#/$ref: expected a text"},
      {R"({"$ref":"#a"})", "#/$ref: refers to '#a', which does not exist"},
      {R"({"allOf":[{"$ref":"#/allOf/1"}]})", "refers to '#/allOf/1', which does not exist"},
      {R"({"items":{"$ref":"#/type/x"},"type":"array"})", "refers to '#/type/x', which does not exist"},
      {R"({"anyOf":{}})", "#/anyOf: is object, expected an array of schemas"},
      {R"({"multipleOf":0})", "#/multipleOf: expected a number above 0"},
      {R"({"$ref":"other.json#/a"})", "#/$ref: refers to 'other.json#/a', which is not in the file"},
      {R"({"items":{"$ref":"#/nothing/here"}})", "#/items/$ref: refers to '#/nothing/here', which does not exist"},
      {R"({"items":{"$ref":"#/title"},"title":"t"})", "#/title: is string, expected a schema"},
      {R"({"not":{"unevaluatedProperties":false}})", "#/not: unevaluatedProperties and unevaluatedItems are not"},
      {R"({"contains":{},"unevaluatedItems":false})", "#: contains is not supported together with unevaluatedItems"},
      {R"({"$ref":"b","$defs":{"b":{"$id":"b","$dynamicAnchor":"x","items":{"$dynamicRef":"#x"}},
           "c":{"$id":"c","$dynamicAnchor":"x"}}})",
       "is not supported, because '#x' has several targets"},
      {R"j({"pattern":"(a"})j", "#/pattern: the pattern '(a' at byte 3: a group is not closed"},
      {R"j({"pattern":"a)"})j", "at byte 2: a group is not opened"},
      {R"j({"pattern":"(?<=a)b"})j", "at byte 2: this group is not supported"},
      {R"j({"pattern":"\\p{Han}"})j", "at byte 1: this property is not supported, expected a general category"},
      {R"j({"pattern":"\\p{Script=Hans}"})j", "this property is not supported"},
      {R"j({"pattern":"a(?i)b"})j", "at byte 3: this group is not supported"},
      {R"j({"pattern":"\\b(?i:\\b)"})j",
       "at byte 7: a boundary of words with (?i) beside one without is not supported"},
      {R"j({"pattern":"(?<!a)b"})j", "at byte 2: this group is not supported"},
      {R"j({"pattern":"\\p{Block=Han}"})j", "this property is not supported"},
      {R"j({"pattern":"\\p{Script=)j" + std::string(64, 'x') + "}\"}", "this property is not supported"},
      {R"j({"pattern":"\\p{Xx}"})j", "this property is not supported"},
      {R"j({"pattern":"\\1"})j", "this escape is not supported"},
      {R"j({"pattern":"\\01"})j", "this escape is not supported"},
      {R"j({"pattern":"\\c{"})j", "this escape is not supported"},
      {R"j({"pattern":"\\u{0000041}"})j", "this escape is not supported"},
      {R"j({"pattern":"\\ud83d\\u00"})j", "this escape is not supported"},
      {R"j({"pattern":"\\ud83d\\uffff"})j", "this escape is not supported"},
      {R"j({"pattern":"[b-a]"})j", "a range ends before it starts"},
      {R"j({"pattern":"[a"})j", "a set is not closed"},
      {R"j({"pattern":"a{2,1}"})j", "repeated from 2 to 1 times"},
      {R"j({"pattern":"*"})j", "at byte 1: nothing to repeat"},
      {R"j({"pattern":"((a{100}){100}){100}"})j", "too long"},
      {R"({"type":"string","minLength":3,"maxLength":2})", "#: no value is valid by this schema"},
      {R"({"type":"integer","minimum":3,"maximum":2})", "no value is valid"},
      {R"({"type":"array","minItems":3,"maxItems":2})", "no value is valid"},
      {R"({"type":"array","items":{"enum":["a","b"]},"uniqueItems":true,"minItems":3})", "no value is valid"},
      {"false", "#: no value is valid"},
      {R"({"type":"object","properties":{"a":false},"required":["a"]})", "#: no value is valid"},
      {R"({"type":"object","required":["a"],"additionalProperties":false})", "no value is valid"},
      {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})", "no value is valid"},
      {R"({"allOf":[{"type":"string"},{"type":"null"}]})", "no value is valid"},
      {"[]", "s.json: #: expected a schema"},
  };
  for (const auto& [schema, wanted] : cases) {
    const std::string error = error_of([&, text = schema] { compile_json_schema(Json::parse(text), "s.json"); });
    EXPECT_NE(error.find(wanted), std::string::npos) << schema.substr(0, 200) << "\n" << error;
    EXPECT_TRUE(error.starts_with("s.json: ")) << error;
  }
}

TEST(JsonSchema, WhatSaysNothingAboutValidityIsIgnoredAndListed) {
  const Json schema = Json::parse(
      R"({"$schema":"https://json-schema.org/schema","$id":"y","$comment":"","title":"t","description":"d","default":1,"examples":[],
      "deprecated":true,"readOnly":true,"writeOnly":true,"x-order":1,"contentEncoding":"base64","type":"string",
      "tyep":"null","format":"color"})");
  const JsonSchemaGrammar compiled = compile_json_schema(schema, "s.json");
  EXPECT_EQ(compiled.ignored, (std::vector<std::string>{"x-order", "tyep", "format 'color'"}));
  GrammarState state(std::make_shared<const Grammar>(compiled.grammar));
  EXPECT_TRUE(state.allows(R"("any")"));
  JsonSchemaOptions strict;
  strict.strict = true;
  EXPECT_NE(error_of([&] { compile_json_schema(schema, "s.json", strict); }).find("s.json: x-order is not supported"),
            std::string::npos);
}

TEST(JsonSchema, AnUnknownDraftIsRejected) {
  const std::string expected = "#/$schema: is 'http://json-schema.org/draft-03/schema#', expected the URI of draft-04";
  const std::string old = R"("$schema":"http://json-schema.org/draft-03/schema#")";
  EXPECT_NE(error_of([&] { state_of_schema("{" + old + "}"); }).find("s.json: " + expected), std::string::npos);
  EXPECT_NE(
      error_of([&] { state_of_schema(R"({"$defs":{"a":{"$id":"urn:a",)" + old + "}}}"); }).find("urn:a" + expected),
      std::string::npos);
  EXPECT_NE(error_of([] { state_of_schema(R"({"$schema":4})"); }).find("#/$schema: is number, expected"),
            std::string::npos);
  expect_schema_matches(std::vector<SchemaCase>{
      {R"({"properties":{"$schema":{"const":"x"}},"const":{"$schema":"x"}})", {R"({"$schema":"x"})"}, {}},
      {R"({"$schema":"http://json-schema.org/schema#","prefixItems":[{"const":1}]})", {"[1]"}, {"[2]"}}});
}

TEST(JsonSchema, WhitespaceIsNoneFixedOrFree) {
  const std::string schema = R"({"type":"object","properties":{"a":{"items":{"type":"null"}}},"required":["a"]})";
  const std::string none = R"({"a":[null,null]})", fixed = "{\n  \"a\": [null, null]\n}",
                    free = "{\t \"a\" :\n[ null ,null] }";
  JsonSchemaOptions options;
  options.whitespace = JsonWhitespace::none;
  expect_schema_matches(SchemaCase{schema, {none}, {fixed, free}}, options);
  options.whitespace = JsonWhitespace::free;
  expect_schema_matches(SchemaCase{schema, {none, fixed, free}, {"{\v}"}}, options);
  expect_schema_matches(SchemaCase{schema, {none, fixed}, {free}});
}

TEST(JsonSchema, BracketsWithNothingInThemHaveNoWhitespace) {
  expect_schema_matches(SchemaCase{"{}", {"{}", "[]"}, {"{\n}", "{\n  }", "[\n]"}});
}

TEST(JsonSchema, TheMetaschemaOfDraft4IsKnown) {
  expect_schema_matches(SchemaCase{
      R"({"$schema":"http://json-schema.org/draft-04/schema#","properties":{
          "a":{"$ref":"http://json-schema.org/draft-04/schema#"},
          "b":{"$ref":"http://json-schema.org/draft-04/schema#/properties/type"}}})",
      {R"({"a":{"type":"object","properties":{"c":{"minimum":1}},"x":1},"b":["null","array"]})"},
      {R"({"a":{"type":1}})", R"({"a":{"properties":{"c":{"exclusiveMinimum":true}}}})", R"({"b":"nil"})"}});
}

// A part of a required property that holds already is not decided on, so that alternatives do not multiply.
TEST(JsonSchema, ExactlyOneOfManyIsDecidedByOneProperty) {
  Json alternatives = Json::array();
  for (int i = 0; i < 16; ++i) {
    alternatives.push_back({{"properties", {{"kind", {{"const", i}}}, {"text", {{"maxLength", i}}}}}});
  }
  GrammarState state(std::make_shared<const Grammar>(
      compile_json_schema({{"type", "object"}, {"oneOf", alternatives}}, "s.json").grammar));
  EXPECT_TRUE(state.advance(R"({"kind":7,"text":"1234567"})"));
  EXPECT_TRUE(state.may_end());
  state.restart();
  EXPECT_FALSE(state.advance(R"({"kind":7,"text":"12345678"})"));
}

// The names of a pattern that has few are not repeated, so that none is begun of which nothing else is left.
TEST(JsonSchema, AnObjectHasAsManyNamesAsAPatternHas) {
  const std::string schema =
      R"({"type":"object","patternProperties":{"^[ab]$":{"const":1}},"additionalProperties":false,
      "minProperties":2})";
  GrammarState state = state_of_schema(schema);
  ASSERT_TRUE(state.advance(R"({"a":1)"));
  EXPECT_FALSE(state.allows(R"(,"a)"));
  EXPECT_TRUE(state.advance(R"(,"b":1)"));
  EXPECT_FALSE(state.allows(","));
  EXPECT_THROW(state_of_schema(schema.substr(0, schema.size() - 2) + "3}"), Error);
}

// A name after which the other properties would be too many is no name.
TEST(JsonSchema, AnObjectHasRoomForAllThatSomePropertyMustBe) {
  const std::string schema = R"({"type":"object","maxProperties":2,"allOf":[
      {"not":{"propertyNames":{"not":{"pattern":"a"}}}},{"not":{"propertyNames":{"not":{"pattern":"b"}}}},
      {"not":{"propertyNames":{"not":{"pattern":"c"}}}},{"propertyNames":{"pattern":"^..$"}}]})";
  expect_schema_matches(SchemaCase{schema, {R"({"ab":1,"cx":1})"}, {R"({"ab":1})"}});
  GrammarState state = state_of_schema(schema);
  EXPECT_FALSE(state.allows(R"({"xy")"));
  ASSERT_TRUE(state.advance(R"({"xa":1)"));
  EXPECT_FALSE(state.allows(R"(,"xb")"));
  EXPECT_TRUE(state.allows(R"(,"bc":1})"));
  EXPECT_EQ(state.bytes_to_end(), std::string_view(R"(,"bc":1})").size());
}

TEST(JsonSchema, AnEmptyListOfPropertiesIsClosed) {
  const SchemaCase none{R"({"type":"object","properties":{}})", {"{}"}, {R"({"a":1})"}};
  expect_schema_matches(none, closed());
  expect_schema_matches(SchemaCase{none.schema, {"{}", R"({"a":1})"}, {}});
  expect_schema_matches(SchemaCase{R"({"properties":{},"additionalProperties":{"const":1}})", {R"({"a":1})"}, {"1"}},
                        closed());
  expect_schema_matches(SchemaCase{R"({"type":"object"})", {R"({"a":1})"}, {}}, closed());
}

TEST(JsonSchema, FilesMayBePipes) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::string schema = R"({"const":1})";
  ASSERT_EQ(::write(ends[1], schema.data(), schema.size()), static_cast<ssize_t>(schema.size()));
  ::close(ends[1]);
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  GrammarState state(std::make_shared<const Grammar>(compile_json_schema_file(path).grammar));
  ::close(ends[0]);
  EXPECT_TRUE(state.allows("1"));
}

TEST(JsonSchema, FilesAreReadAndCheckedFirst) {
  const TemporaryFile good(R"({"properties":{"b":{"const":1},"a":{"const":2}}})");
  GrammarState state(std::make_shared<const Grammar>(compile_json_schema_file(good.path()).grammar));
  EXPECT_TRUE(state.allows(R"({"b":1,"a":2})"));
  const TemporaryFile broken("{\"type\":");
  EXPECT_NE(error_of([&] { compile_json_schema_file(broken.path()); }).find("is not valid JSON at byte"),
            std::string::npos);
  std::string nested = "{}";
  for (int i = 0; i < 101; ++i) nested = R"({"items":)" + nested + "}";
  const TemporaryFile deep(nested);
  EXPECT_NE(error_of([&] { compile_json_schema_file(deep.path()); }).find("is nested too deeply, expected at most 100"),
            std::string::npos);
  const TemporaryFile deepest(std::string(500'000, '['));
  EXPECT_NE(
      error_of([&] { compile_json_schema_file(deepest.path()); }).find("is nested too deeply, expected at most 100"),
      std::string::npos);
  const TemporaryFile large(std::string((std::size_t{1} << 20) + 1, ' '));
  EXPECT_NE(error_of([&] { compile_json_schema_file(large.path()); }).find("expected at most 1048576"),
            std::string::npos);
}

}  // namespace
}  // namespace minimind
