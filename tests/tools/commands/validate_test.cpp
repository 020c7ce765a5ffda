#include <fmt/core.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/support/cases.h"
#include "tests/support/cli.h"

namespace minimind {
namespace {

class ValidateCli : public Cli {
 protected:
  ValidateCli() {
    std::ofstream(path("s.json"))
        << R"({"properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0}},"required":["name"],"type":"object"})";
  }

  Outcome validate(const std::string& text, const std::string& options = "") {
    std::ofstream(path("text")) << text;
    return run("validate --json-schema " + path("s.json") + " " + path("text") + " " + options);
  }
};

TEST_F(ValidateCli, AcceptsWhatTheStandardAccepts) {
  for (const char* text : {R"({"name":"x"})", "{ \"age\" : 3.0,\n\t\"other\": [],\r\n \"name\": \"\" }\n"}) {
    const Outcome outcome = validate(text);
    EXPECT_EQ(outcome.status, 0) << text << outcome.err;
    EXPECT_NE(outcome.err.find("the text conforms"), std::string::npos);
  }
  EXPECT_EQ(validate(R"({"name":"x"})", "-q").err, "");
}

TEST_F(ValidateCli, ReportsWhereATextStopsConforming) {
  const Outcome wrong = validate("{\"name\": \"é\",\n \"age\": -1}");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_NE(wrong.err.find("text:2:10: found '1}', expected"), std::string::npos) << wrong.err;
  EXPECT_NE(validate("{}").err.find("text:1:2: found '}'"), std::string::npos);
  EXPECT_NE(validate("{\"name\"").err.find("text:1:8: found the end of the text, expected ':'"), std::string::npos);
  EXPECT_NE(validate("{\"name\":1}").err.find("expected '\"'"), std::string::npos);
  EXPECT_NE(validate("{\"name\": \"a").err.find("expected another character of a string"), std::string::npos);
  const std::string closed = validate("{\"nmae\": 1}", "--closed-schema").err;
  EXPECT_NE(closed.find("found 'mae\": 1}', expected 'ame\"'"), std::string::npos) << closed;
  EXPECT_NE(validate("{\"age\": x}").err.find("expected a number"), std::string::npos);
  EXPECT_NE(validate("{1}", "--closed-schema").err.find("1:2: found '1}', expected \"name\""), std::string::npos);
  const auto json = nlohmann::json::parse(validate("[]", "--json").out);
  EXPECT_EQ(json["conforms"], false);
  EXPECT_EQ(json["column"], 1);
}

TEST_F(ValidateCli, NumbersWithExponentsConformByTheirValues) {
  const auto status = [&](const std::string& schema, const std::string& text) {
    std::ofstream(path("s.json")) << schema;
    return validate(text).status;
  };
  for (const auto& [schema, text] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"({"multipleOf": 3})", "3e1"},
           {R"({"multipleOf": 0.5})", "1.5e0"},
           {R"({"multipleOf": 0.01})", "1E-2"},
           {R"({"items": {"multipleOf": 7}})", R"([7e1, "7e1", -70.0e-1, 7, 0e5])"},
           {R"({"type": "integer"})", " 1.50e1 "},
           {R"({"maximum": 100, "multipleOf": 5})", "1e+2"},
           {R"({"const": 30})", "3e1"},
           {R"({"enum": [0.5]})", "5e-1"},
           {R"({"not": {"multipleOf": 3}})", "4e1"}}) {
    EXPECT_EQ(status(schema, text), 0) << schema << text;
  }
  for (const auto& [schema, text] :
       std::initializer_list<std::pair<const char*, const char*>>{{R"({"multipleOf": 3})", "31e-1"},
                                                                  {R"({"multipleOf": 0.01})", "1e-3"},
                                                                  {R"({"type": "integer"})", "1.55e1"},
                                                                  {R"({"not": {"multipleOf": 3}})", "3e1"},
                                                                  {R"({"const": 30})", "3e2"},
                                                                  {R"({"multipleOf": 3})", "3e"},
                                                                  {R"({"multipleOf": 3})", "03e1"}}) {
    EXPECT_EQ(status(schema, text), 1) << schema << text;
  }
  std::ofstream(path("s.json")) << R"({"items": {"multipleOf": 3}})";
  const std::string later = validate("[3e1,\n 3e1, 4]").err;
  EXPECT_NE(later.find("text:2:8: found ']'"), std::string::npos) << later;
}

TEST_F(ValidateCli, ALimitNamesTheFileAndTheLine) {
  std::ofstream(path("s.json")) << "{}";
  const Outcome outcome = validate("1\n" + std::string(2'000'000, '['), "--jsonl");
  EXPECT_NE(outcome.err.find("text:2: the grammar is too ambiguous, or nested too deeply"), std::string::npos)
      << outcome.err;
}

TEST_F(ValidateCli, AStatusOfItsOwnSaysThatATextCannotBeJudged) {
  EXPECT_EQ(validate("[]").status, 1);
  std::ofstream(path("s.json")) << R"({"pattern":"(?<=a)b"})";
  const Outcome unsupported = validate("\"b\"");
  EXPECT_EQ(unsupported.status, 3);
  EXPECT_NE(unsupported.err.find("s.json: #/pattern: the pattern '(?<=a)b'"), std::string::npos) << unsupported.err;
  EXPECT_EQ(run("validate --regex a " + path("missing")).status, 3);
  EXPECT_EQ(run("validate --regex a --grammar " + path("g.gbnf")).status, 2);
}

// On 64-bit ARM each takes several times as much of the stack as on x86-64, and 8 MB are usual.
TEST_F(ValidateCli, ReferencesOfAnyDepthNeedLittleStack) {
  if (is_sanitized) GTEST_SKIP() << "the sanitizers need more stack";
  for (const char* const link : {R"({"$ref": "#/$defs/n)", R"({"allOf": [{"$ref": "#/$defs/n)"}) {
    const std::string end = std::string(link).starts_with(R"({"all)") ? R"("}]})" : R"("})";
    std::string schema = R"({"$ref": "#/$defs/n0", "$defs": {)";
    constexpr int links = 20'000;
    for (int i = 0; i < links; ++i) schema += fmt::format(R"("n{}": {}{}{}, )", i, link, i + 1, end);
    std::ofstream(path("s.json")) << schema + fmt::format(R"("n{}": {{"type": "string"}}}}}})", links);
    const Outcome outcome =
        run("validate --json-schema " + path("s.json") + " " + path("s.json"), "ulimit -s 512; exec");
    EXPECT_EQ(outcome.status, 3) << link;
    EXPECT_NE(outcome.err.find("over 1000 deep"), std::string::npos) << outcome.err;
  }
}

TEST_F(ValidateCli, ARegularExpressionMatchesTheWholeText) {
  std::ofstream(path("text")) << "ab\nb";
  EXPECT_EQ(run("validate --regex 'a|ab.b|ab\\nb' " + path("text")).status, 0);
  const Outcome part = run("validate --regex 'a|b' " + path("text"));
  EXPECT_EQ(part.status, 1);
  EXPECT_NE(part.err.find("text:1:2: found 'b', expected the end of the text"), std::string::npos) << part.err;
  const Outcome wrong = run("validate --regex '(a' " + path("text"));
  EXPECT_EQ(wrong.status, 3);
  EXPECT_NE(wrong.err.find("--regex: the pattern '(a' at byte 3: a group is not closed"), std::string::npos)
      << wrong.err;
}

TEST_F(ValidateCli, MessagesCutNoCharacter) {
  // 你 and 佡 share two bytes, and 你 and 久 one.
  std::ofstream(path("text")) << "a佡佡佡佡佡佡佡";
  const Outcome inside = run("validate --regex 'a你+b' " + path("text"));
  EXPECT_NE(inside.err.find("text:1:2: found '佡佡佡佡佡佡', expected a character beyond ASCII"), std::string::npos)
      << inside.err;
  std::ofstream(path("text")) << "x";
  const Outcome forced = run("validate --regex 'a(你|久)' " + path("text"));
  EXPECT_NE(forced.err.find("found 'x', expected 'a'\n"), std::string::npos) << forced.err;
}

TEST_F(ValidateCli, NamesTheCharactersThatAPatternExpects) {
  struct Case {
    const char *pattern, *text, *message;
  };
  for (const Case& of :
       std::initializer_list<Case>{{"a{60}", "b", "1:1: found 'b', expected 'aaaaaaaaaaaaaaaaaaaaaaaa'\n"},
                                   {"[a-z]b", "1", "expected one of [a-z]\n"},
                                   {"[a-zA-Z]b", "1", "expected one of [A-Za-z]\n"},
                                   {"[a-zA-Z0-9]b", "-", "expected a digit or one of [A-Za-z]\n"},
                                   {"[acegijmé]b", "1", "expected one of [acegijm] or beyond ASCII\n"},
                                   {"[w-~]b", "1", "expected one of [w-~]\n"},
                                   {"[^\\x00-\\x7f]b", "1", "expected a character beyond ASCII\n"},
                                   {"a b", "ac", "1:2: found 'c', expected ' b'\n"},
                                   {"a[\\t\\x7f]", "ac", "expected '\\x09' or '\\x7f'\n"},
                                   {"ab", "a\nb", "1:2: found the end of the line, expected 'b'\n"}}) {
    std::ofstream(path("text")) << of.text;
    const Outcome outcome = run("validate --regex '" + std::string(of.pattern) + "' " + path("text"));
    EXPECT_EQ(outcome.status, 1) << of.pattern;
    EXPECT_NE(outcome.err.find(of.message), std::string::npos) << of.pattern << ": " << outcome.err;
  }
}

TEST_F(ValidateCli, NamesTheStringsOfASchemaIfTheyAreFewAndShort) {
  const auto expected = [&](const std::string& schema) {
    std::ofstream(path("s.json")) << schema;
    const std::string error = validate("1").err;
    return error.substr(std::min(error.find("expected"), error.size()));
  };
  EXPECT_EQ(expected(R"({"enum": ["a", "b"]})"), "expected \"a\" or \"b\"\n");
  EXPECT_EQ(expected(R"({"enum": ["1", "2", "3", "4", "5", "6", "7", "8", "9"]})"), "expected '\"'\n");
  EXPECT_EQ(expected(R"({"type": "string", "pattern": "^[a-z]{3}$"})"), "expected '\"'\n");
  EXPECT_EQ(expected(R"({"const": ")" + std::string(60, 'a') + "\"}"), "expected '\"aaaaaaaaaaaaaaaaaaaaaaa'\n");
}

TEST_F(ValidateCli, BytesThatAreNotUtf8AreNotPartOfTheCharacterBefore) {
  for (const std::string character : {"", "é", "😀"}) {
    std::ofstream(path("text")) << character << "\x80";
    const Outcome outcome = run("validate --regex '" + character + "a' " + path("text"));
    EXPECT_NE(outcome.err.find("found '\\x80', expected 'a'"), std::string::npos) << outcome.err;
  }
}

TEST_F(ValidateCli, OnlyNumbersThatDoNotConformAreReadByTheirValues) {
  std::ofstream(path("s.json")) << R"({"items": [{"type": "number"}, {"type": "string"}, {"multipleOf": 3}]})";
  EXPECT_EQ(validate(R"([1.5e1, "a\"1e1", 3e1])").status, 0);
  const std::string early = validate("[x, 3e1]").err;
  EXPECT_NE(early.find("text:1:2: found 'x, 3e1]'"), std::string::npos) << early;
}

TEST_F(ValidateCli, StandardInputIsNamed) {
  std::ofstream(path("lines")) << "a\nb\n";
  EXPECT_EQ(run("validate --jsonl --regex 'a|b' < " + path("lines")).status, 0);
  EXPECT_EQ(run("validate --regex ab < " + path("lines")).err,
            "minimind: standard input:1:2: found the end of the line, expected 'b'\n");
}

TEST_F(ValidateCli, ChecksLinesAndGrammars) {
  const Outcome lines = validate("{\"name\":\"a\"}\n[]\n", "--jsonl");
  EXPECT_EQ(lines.status, 1);
  std::istringstream out(lines.out);
  std::string line;
  for (const bool conforms : {true, false}) {
    ASSERT_TRUE(std::getline(out, line));
    EXPECT_EQ(nlohmann::json::parse(line)["conforms"], conforms);
  }
  std::ofstream(path("g.gbnf")) << "root ::= \"a\" [0-9]{2}";
  std::ofstream(path("text")) << "a1x";
  EXPECT_NE(
      run("validate --grammar " + path("g.gbnf") + " " + path("text")).err.find("1:3: found 'x', expected a digit"),
      std::string::npos);
  EXPECT_EQ(run("validate " + path("text")).status, 2);
}

}  // namespace
}  // namespace minimind
