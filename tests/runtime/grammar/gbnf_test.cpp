#include "runtime/grammar/gbnf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/grammar/grammar.h"
#include "runtime/grammar/state.h"
#include "tests/support/temporary_file.h"

namespace minimind {
namespace {

using namespace std::string_literals;
using Texts = std::vector<std::string>;

GrammarState state_of_gbnf(std::string_view grammar) {
  return GrammarState(std::make_shared<const Grammar>(parse_grammar(grammar, "g.gbnf")));
}

bool matches(GrammarState& state, std::string_view text) {
  state.restart();
  return state.advance(text) && state.may_end();
}

struct GbnfCase {
  std::string grammar;
  Texts accepted, rejected;
};

void expect_gbnf_matches(const GbnfCase& c) {
  GrammarState state = state_of_gbnf(c.grammar);
  for (const std::string& text : c.accepted) {
    EXPECT_TRUE(matches(state, text)) << c.grammar << "\n" << text;
    state.restart();
    for (const char byte : text) ASSERT_TRUE(state.advance({&byte, 1})) << c.grammar << "\nbyte by byte: " << text;
    EXPECT_TRUE(state.may_end());
  }
  for (const std::string& text : c.rejected) EXPECT_FALSE(matches(state, text)) << c.grammar << "\n" << text;
}

TEST(Grammar, MatchesWhatItsSyntaxSays) {
  const GbnfCase cases[] = {
      {"root ::= \"ab\" | \"c\" d\nd ::= \"d\"", {"ab", "cd"}, {"", "a", "c", "abc", "cdd"}},
      {"root ::= [a-cx]", {"a", "b", "c", "x"}, {"d", "-", ""}},
      {"root ::= [-a] [a-] [+--]", {"---", "aa,", "a-+"}, {"b-+", "-a."}},
      {"root ::= [^a-c\\n]", {"d", "好", "\0"s}, {"a", "\n", "", "dd"}},
      {"root ::= . .", {"a\n", "你好", "\0\xF4\x8F\xBF\xBF"s}, {"a", "abc"}},
      {"root ::= \"a\"* \"b\"+ \"c\"?", {"b", "aabb", "bc"}, {"", "a", "abcc"}},
      {"root ::= \"a\"{2}", {"aa"}, {"a", "aaa"}},
      {"root ::= \"ab\"{2,}", {"abab", "ababab"}, {"ab", "ababa"}},
      {"root ::= [ab]{1,3}", {"a", "bab"}, {"", "abab"}},
      {"root ::= \"a\"{0,2} \"b\"{0} \"c\"{ 1 , 2 }", {"c", "aacc"}, {"b", "aaac"}},
      {"root ::= (\"a\" | \"b\" \"c\")+ ( )", {"a", "bca"}, {"b", ""}},
      {"root ::= \"\" | \"x\"", {"", "x"}, {"xx"}},
      {"root ::= \"a\"**", {"", "aaa"}, {"b"}},
      {R"(root ::= "\n\r\t\\\"\x41\u4f60\U0001F600" [\]\[\-\\"])", {"\n\r\t\\\"A你😀]", "\n\r\t\\\"A你😀-"}, {"\n"}},
      {"# a comment\n\nroot ::= # another\n  \"a\" |\n  \"b\" # more\n\n\nx-1 ::= (\n \"c\"\n | \"d\" )\n",
       {"a", "b"},
       {"c"}},
      {"root ::= \"a\" Other-1\r\nOther-1 ::= \"b\"\r\n", {"ab"}, {"a"}},
      {"root ::= x\t\"b\"\rx ::= \"a\" # the end", {"ab"}, {"a"}},
      {"root ::= \"(\" root \")\" | \"\"", {"", "(())"}, {"(", "())"}},
      {"root ::= (\"a\"? \"b\"*)*", {"", "ab", "bbaab"}, {"c"}},
      {"root ::= (\"a\"?){2,3} \"b\"", {"b", "aaab"}, {"aaaab"}},
      {"root ::= x \"c\"\nx ::= y y\ny ::= \"a\" | \"\" | \"b\"", {"c", "abc", "bc"}, {"aaac", ""}},
  };
  for (const GbnfCase& c : cases) expect_gbnf_matches(c);
}

TEST(Grammar, OfJsonAsLlamaCppUsersWriteIt) {
  expect_gbnf_matches({R"(
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9]+)? ws
ws ::= | " " | "\n" [ \t]{0,20}
)",
                       {R"({})", R"({"a": [1, -2.5e+3, {"b": null}], "你": "\u00e9\n"} )", "{\n\t\"x\":true}"},
                       {"[]", R"({"a"})", R"({"a": 01})", "{\"a\": \"\n\"}", R"({"a": "\q"})"}});
}

TEST(Grammar, ErrorsNameTheLineAndTheColumn) {
  const std::pair<std::string, std::string> cases[] = {
      {"root ::= \"a", "g.gbnf:1:10: this text has no closing \""},
      {"root ::= \"a\"\nx = \"b\"", "g.gbnf:2:3: expected ::= after the name 'x'"},
      {"root ::= x\n", "g.gbnf:1:10: there is no rule 'x'"},
      {"root ::= \"你好\" )", "g.gbnf:1:15: expected the end of the rule"},
      {"root ::= (\"a\"", "g.gbnf:1:10: this parenthesis is not closed"},
      {"root ::= (\"a\" ]", "g.gbnf:1:15: expected | or )"},
      {"root ::= [a", "g.gbnf:1:10: this set has no closing ]"},
      {"root ::= []", "g.gbnf:1:10: this set is empty"},
      {"root ::= [^\\x00-\\U0010FFFF]", "g.gbnf:1:10: this set excludes every character"},
      {"root ::= [xz-a]", "g.gbnf:1:12: this range ends before it starts"},
      {"root ::= \"\\q\"", "g.gbnf:1:11: this escape is unknown"},
      {"root ::= \"\\x4\"", "g.gbnf:1:11: this escape requires 2 hexadecimal digits"},
      {"root ::= \"\\u12 4\"", "g.gbnf:1:11: this escape requires 4"},
      {"root ::= \"\\ud800\"", "g.gbnf:1:11: this escape is not a character"},
      {"root ::= \"\\U00110000\"", "g.gbnf:1:11: this escape is not a character"},
      {"root ::= \"a\" | * \"b\"", "g.gbnf:1:16: there is no item before this to repeat"},
      {"root ::= +", "g.gbnf:1:10: there is no item before this to repeat"},
      {"root ::= ?", "g.gbnf:1:10: there is no item before this to repeat"},
      {"root ::= {2}", "g.gbnf:1:10: there is no item before this to repeat"},
      {"root ::= [a-", "g.gbnf:1:13: the grammar ends here, expected a character"},
      {"root ::= \"\\", "g.gbnf:1:11: the grammar ends within this escape"},
      {"root ::= \"\\x4", "g.gbnf:1:11: this escape requires 2 hexadecimal digits"},
      {"root ::= \"a\"{3,2}", "g.gbnf:1:10: a repetition of at least 3 and at most 2"},
      {"root ::= \"a\"{x}", "g.gbnf:1:14: expected a number"},
      {"root ::= \"a\"{2,3", "g.gbnf:1:17: expected }"},
      {"root ::= \"a\"{999999999}", "g.gbnf:1:10: a repetition of 999999999, expected at most 100000"},
      {"root ::= \"a\"{99999999999999999999}",
       "g.gbnf:1:10: a repetition of '99999999999999999999', expected at most 100000"},
      {"root ::= <think> \"a\"", "g.gbnf:1:10: references to tokens"},
      {"root ::= !<[5]>", "g.gbnf:1:10: references to tokens"},
      {"root ::= \"a\"\nroot ::= \"b\"", "g.gbnf:2:1: the definition of rule 'root' is repeated"},
      {"root_a ::= \"a\"", "g.gbnf:1:5: expected ::="},
      {"\"a\"", "g.gbnf:1:1: expected the name of a rule"},
      {"root ::= \"\xFF\"", "g.gbnf:1:11: this is not UTF-8"},
      {"x ::= \"a\"", "g.gbnf: has no rule 'root'"},
      {"", "g.gbnf: has no rule 'root'"},
      {"root ::= " + std::string(1000, '('), "the parentheses are nested too deeply"},
      {"root ::= ((\"a\"{1000}){1000}){1000} \"b\"{100000}" + std::string(20, '\n') + "x ::= " +
           "\"c\"{100000} \"c\"{100000} \"c\"{100000} \"c\"{100000} \"c\"{100000} \"c\"{100000} \"c\"{100000}",
       "g.gbnf:21:"},
  };
  for (const auto& [grammar, wanted] : cases) {
    const std::string error = error_of([&, text = grammar] { parse_grammar(text, "g.gbnf"); });
    EXPECT_NE(error.find(wanted), std::string::npos) << grammar.substr(0, 80) << "\n" << error;
  }
}

TEST(Grammar, LeftRecursionIsRejectedByTheNameOfTheRule) {
  for (const std::string grammar :
       {"root ::= x\nx ::= x \"a\" | \"b\"", "root ::= \"b\" | x\nx ::= y \"a\" | \"b\"\ny ::= \"c\" | x",
        "root ::= \"c\" x\nx ::= \"b\"* (\"\" | \"a\") x \"d\" | \"e\"", "root ::= x\nx ::= x | \"a\""}) {
    const std::string error = error_of([&] { parse_grammar(grammar, "g.gbnf"); });
    EXPECT_NE(error.find("left recursive"), std::string::npos) << grammar << error;
    EXPECT_TRUE(error.starts_with("g.gbnf: rule 'x'") || error.starts_with("g.gbnf: rule 'y'")) << error;
  }
}

TEST(Grammar, ARuleThatCanNeverBeFinishedIsRejected) {
  EXPECT_NE(error_of([] { parse_grammar("root ::= \"a\" x\nx ::= \"b\" x", "g.gbnf"); }).find("can never be finished"),
            std::string::npos);
  EXPECT_EQ(error_of([] { parse_grammar("root ::= \"a\"\nx ::= \"b\" x", "g.gbnf"); }), "") << "it is not used";
}

TEST(Grammar, FollowsCharactersThatAreCutAnywhere) {
  GrammarState state = state_of_gbnf("root ::= [一-九] \"é\" .");
  EXPECT_TRUE(state.allows("\xE4"));
  EXPECT_FALSE(state.allows("\xE5"));
  ASSERT_TRUE(state.advance("\xE4\xB8"));
  EXPECT_FALSE(state.allows("\x7F"));
  EXPECT_TRUE(state.allows("\x80\xC3\xA9\xF0\x9F"));
  EXPECT_FALSE(state.allows("\x80\xC3\xA8"));
  EXPECT_FALSE(state.may_end());
  ASSERT_TRUE(state.advance("\x80\xC3\xA9"));
  for (const char* never : {"\x80", "\xC0", "\xC1", "\xE0\x80", "\xED\xA0", "\xF0\x80", "\xF4\x90", "\xF5"}) {
    EXPECT_FALSE(state.allows(never)) << "no UTF-8 starts like this";
  }
  EXPECT_TRUE(state.allows("\xED\x9F\xBF"));
}

// Every character, alone, is in a set exactly when it is.
TEST(Grammar, SetsHaveExactlyTheirCharacters) {
  GrammarState state =
      state_of_gbnf("root ::= [\\x20-\\x7e\\u0430-\\u0451\\u2028\\u4e00-\\uffff\\U0001F600-\\U00020001]");
  const auto in_set = [](char32_t c) {
    return (c >= 0x20 && c <= 0x7E) || (c >= 0x430 && c <= 0x451) || c == 0x2028 ||
           (c >= 0x4E00 && c <= 0xFFFF && (c < 0xD800 || c > 0xDFFF)) || (c >= 0x1F600 && c <= 0x20001);
  };
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    std::string text;
    if (c < 0x80) {
      text = {static_cast<char>(c)};
    } else if (c < 0x800) {
      text = {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    } else if (c < 0x10000) {
      text = {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
              static_cast<char>(0x80 | (c & 0x3F))};
    } else {
      text = {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 0x3F)),
              static_cast<char>(0x80 | (c >> 6 & 0x3F)), static_cast<char>(0x80 | (c & 0x3F))};
    }
    ASSERT_EQ(state.allows(text), in_set(c)) << static_cast<unsigned>(c);
  }
}

TEST(Grammar, ManyReadingsOfATextCostLittle) {
  GrammarState brackets = state_of_gbnf("root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"\"");
  const std::string a(3000, 'a');
  EXPECT_TRUE(matches(brackets, a + std::string(1500, 'b') + std::string(1500, 'c'))) << "2^3000 readings";
  EXPECT_FALSE(matches(brackets, a + std::string(3001, 'b')));
  GrammarState stars = state_of_gbnf("root ::= ((\"a\"* \"a\"*)* (\"a\" | \"aa\")*)*");
  EXPECT_TRUE(matches(stars, a));
  GrammarState catalan = state_of_gbnf("root ::= \"a\" root root | \"a\"");
  EXPECT_TRUE(matches(catalan, std::string(301, 'a')));
}

std::string repeated(std::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

// Each took over ten seconds when states listed every reading.
TEST(Grammar, ManyOptionalPartsCostLittle) {
  const clock_t start = clock();
  for (const std::string& grammar : {
           "root ::= " + repeated("\"a\"? ", 10'000),
           "root ::= " + repeated("\"a\"? \"b\"? ", 5000),
           "root ::= " + repeated("x? y? ", 3000) + "\nx ::= \"a\"\ny ::= \"a\" | \"b\"",
           "root ::= (\"a\"? \"b\"?){0,10000}"s,
           "root ::= (\"a\" | \"b\"?){0,10000}"s,
           "root ::= ((\"a\" | \"aa\"){0,50}){0,100}"s,
       }) {
    GrammarState state = state_of_gbnf(grammar);
    for (int i = 0; i < 5000; ++i) ASSERT_TRUE(state.advance("a")) << grammar.substr(0, 60);
    EXPECT_TRUE(state.may_end()) << grammar.substr(0, 60);
  }
  GrammarState trees = state_of_gbnf("root ::= \"a\" | \"a\" root | \"a\" root root");
  for (int i = 0; i < 1200; ++i) ASSERT_TRUE(trees.advance("a"));
  EXPECT_TRUE(trees.may_end());
  EXPECT_LT((clock() - start) / CLOCKS_PER_SEC, 10);
}

TEST(Grammar, RepetitionsNextToEachOtherBecomeOne) {
  for (const GbnfCase& c : std::vector<GbnfCase>{
           {"root ::= \"a\"? \"a\"? \"a\"?", {"", "a", "aaa"}, {"aaaa"}},
           {"root ::= \"a\"? \"a\" \"a\"?", {"a", "aa", "aaa"}, {"", "aaaa"}},
           {"root ::= \"a\"* \"ab\" \"b\"{2,3}", {"abbb", "aaabbbb"}, {"bbb", "abb", "abbbbb"}},
           {"root ::= (\"a\"?){2,3} \"b\"", {"b", "aaab"}, {"aaaab"}},
           {"root ::= (\"a\"{0,2}){2,3}", {"", "aaaaaa"}, {"aaaaaaa"}},
           {"root ::= (\"a\"{2,3})?", {"", "aa", "aaa"}, {"a", "aaaa"}},
           {"root ::= (\"a\"* \"b\"?){2}", {"", "b", "aabaab", "bb"}, {"bbb"}},
           {"root ::= (\"a\"+)? (\"a\"*)?", {"", "aaaa"}, {"b"}},
           {"root ::= (\"a\" | \"b\"?){2,2}", {"", "a", "ab", "bb"}, {"abb"}},
       }) {
    expect_gbnf_matches(c);
  }
}

TEST(Grammar, AmbiguityThatOutgrowsMemoryIsAnErrorAndNotACrash) {
  GrammarState state =
      state_of_gbnf("root ::= (\"a\" | nested)* \"b\"\nnested ::= \"a\" root \"c\" | \"a\" root \"d\"");
  const std::string error = error_of([&] {
    for (int i = 0; i < 20'000; ++i) state.advance("a");
  });
  EXPECT_NE(error.find("too ambiguous"), std::string::npos) << error;
}

TEST(Grammar, NestsDeeplyAndForgetsWhatItDoesNotNeed) {
  GrammarState state = state_of_gbnf("root ::= \"[\" (root (\",\" root)*)? \"]\" | [0-9]{1,3}");
  constexpr int depth = 60'000;
  for (int i = 0; i < depth; ++i) ASSERT_TRUE(state.advance("[7,"));
  ASSERT_TRUE(state.advance("1"));
  EXPECT_EQ(state.bytes_to_end(), static_cast<std::uint64_t>(depth));
  for (int i = 0; i < depth; ++i) ASSERT_TRUE(state.advance("]"));
  EXPECT_TRUE(state.must_end());
  state.restart();
  EXPECT_TRUE(state.allows("[1]"));
}

TEST(Grammar, ForgetsWhatItCanWorkOutAgain) {
  GrammarState state = state_of_gbnf("root ::= (\"a\" | \"b\")* \"a\" (\"a\" | \"b\"){1500}");
  std::string text;
  for (int i = 0; i < 2000; ++i) text += i % 7 < 3 ? 'a' : 'b';
  ASSERT_TRUE(state.advance(text));
  const std::size_t all = state.memory();
  state.forget();
  EXPECT_LT(state.memory(), all / 20);
  EXPECT_EQ(state.may_end(), text[text.size() - 1501] == 'a');
  EXPECT_TRUE(state.advance("a"));
  EXPECT_FALSE(state.advance("c"));
}

TEST(Grammar, ABytesThatDoesNotFitChangesNothing) {
  GrammarState state = state_of_gbnf("root ::= \"ab\" | \"abc\" \"d\"*");
  EXPECT_FALSE(state.advance("ax"));
  ASSERT_TRUE(state.advance("ab"));
  EXPECT_TRUE(state.may_end());
  EXPECT_FALSE(state.must_end());
  EXPECT_FALSE(state.advance("d"));
  ASSERT_TRUE(state.advance("c"));
  EXPECT_TRUE(state.may_end());
  GrammarState only = state_of_gbnf("root ::= \"ab\"");
  ASSERT_TRUE(only.advance("ab"));
  EXPECT_TRUE(only.must_end());
}

TEST(Grammar, KnowsTheShortestWayToTheEnd) {
  GrammarState state = state_of_gbnf("root ::= \"[\" x \"]\"\nx ::= \"你\"{2,5} | \"a\" x | x2*\nx2 ::= \"bcd\"");
  EXPECT_EQ(state.bytes_to_end(), 2u);
  ASSERT_TRUE(state.advance("[aa\xE4"));
  EXPECT_EQ(state.bytes_to_end(), 2u + 3 + 1);
  state.restart();
  ASSERT_TRUE(state.advance("[b"));
  EXPECT_EQ(state.bytes_to_end(), 3u);
}

TEST(Grammar, AFileThatIsTooLargeOrMissingIsAnError) {
  const TemporaryFile file(std::string((std::size_t{1} << 20) + 1, '#'));
  EXPECT_NE(error_of([&] { load_grammar(file.path()); }).find("expected at most 1048576"), std::string::npos);
  EXPECT_NE(error_of([] { load_grammar("/nonexistent.gbnf"); }), "");
  const TemporaryFile good("root ::= \"a\"");
  EXPECT_EQ(error_of([&] { load_grammar(good.path()); }), "");
}

}  // namespace
}  // namespace minimind
