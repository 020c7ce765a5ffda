#include "runtime/jinja/jinja.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/chat/chat_json.h"
#include "tests/support/temporary_file.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

const std::string golden = MINIMIND_SOURCE_DIR "/tests/golden_jinja/";

// Rendered with the variables of a JSON object.
std::string render(const std::string& source, const std::string& variables = "{}") {
  const jinja::Value value = template_value(parse_chat_json(variables, "variables"));
  return JinjaTemplate(source, "test").render(*value.dict(), 0);
}

// The message of the Error that parsing or rendering throws, "" when it throws none.
std::string error_of(const std::string& source, const std::string& variables = "{}") {
  try {
    render(source, variables);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

void expect_error(const std::string& source, const std::string& wanted) {
  const std::string found = error_of(source);
  EXPECT_NE(found.find(wanted), std::string::npos) << source.substr(0, 200) << ": " << found;
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

TEST(Jinja, RendersAndRejectsTheTemplatesThatJinja2Does) {
  const std::string variables = read_whole_file(golden + "variables.json");
  const jinja::Value value = template_value(parse_chat_json(variables, "variables"));
  std::ifstream cases(golden + "cases.jsonl");
  std::size_t count = 0;
  for (std::string line; std::getline(cases, line); ++count) {
    const Json golden_case = Json::parse(line);
    const std::string source = golden_case.at("template");
    if (golden_case.at("rendered").is_null()) {
      EXPECT_THROW(JinjaTemplate(source, "test").render(*value.dict(), 0), Error) << source;
    } else {
      EXPECT_EQ(JinjaTemplate(source, "test").render(*value.dict(), 0), golden_case.at("rendered").get<std::string>())
          << source;
    }
  }
  EXPECT_GT(count, 2400u);
}

TEST(Jinja, ErrorsHaveThePositionAndReason) {
  EXPECT_EQ(error_of("a\n你好 {{ x.y.z }}"), "test: line 2, column 8: 'x' is undefined");
  EXPECT_EQ(error_of("{{ x.y.z }}", R"({"x": {}})"), "test: line 1, column 7: a mapping has no attribute 'y'");
  EXPECT_EQ(error_of("{% if 1 %}\r\n  {{ raise_exception('no \"tools\"') }}{% endif %}"),
            "test: line 2, column 21: no \"tools\"");
  EXPECT_EQ(error_of("{{ 1 + }}"), "test: line 1, column 8: found '}}', expected an expression");
  EXPECT_EQ(error_of("{% if a %}"), "test: line 1, column 11: found the end of the template, expected {% endif %}");
}

TEST(Jinja, RejectsUnsupportedFeaturesNamingThem) {
  expect_error("\n {% include 'x' %}", "line 2, column 5: unsupported tag 'include'");
  expect_error("{% block a %}{% endblock %}", "unsupported tag 'block'");
  expect_error("{% frobnicate %}", "unknown tag 'frobnicate'");
  expect_error("{% for a in b recursive %}{% endfor %}", "recursive loops are not supported");
  expect_error("{{ 'a'|wordwrap }}", "column 8: unsupported filter 'wordwrap'");
  expect_error("{{ 'a'|nonsense }}", "unknown filter 'nonsense'");
  expect_error("{{ 1 is nonsense }}", "unknown test 'nonsense'");
  expect_error("{{ 'a'.encode() }}", "the method 'encode' of a string is not supported");
  expect_error("{{ [].append(1) }}", "access to 'append' of a list is unsafe");
  expect_error("{{ ''.__class__ }}", "'__class__' are not supported");
  expect_error("{{ cycler(1, 2) }}", "the function 'cycler' is not supported");
  expect_error("{{ [1]|map('string') }}", "cannot print an iterator");
  expect_error("{{ ('a'|safe)|upper }}", "escaped text is not supported");
  expect_error("{{ 9223372036854775807 + 1 }}", "does not fit in an integer of 64 bits");
  expect_error("{{ 99999999999999999999 }}", "does not fit in 64 bits");
  expect_error("{{ 'Σ'|lower }}", "the case of 'Σ' is not supported");
  expect_error("{{ 'ß'|upper }}", "the case of 'ß' is not supported");
  expect_error("{{ [1]|batch(2) }}", "column 8: unsupported filter 'batch'");
  expect_error("{{ 1 is callable }}", "unsupported test 'callable'");
  expect_error("{% with a = 1 %}{% endwith %}", "unsupported tag 'with'");
  expect_error("{{ 'a'.zfill(3) }}", "the method 'zfill' of a string is not supported");
  expect_error("{{ [1].index(1) }}", "the method 'index' of a list is not supported");
  expect_error("{% for i in [1] %}{{ loop.cycle(1) }}{% endfor %}", "loop.cycle is not supported");
  expect_error("{{ '1'|int(base=2) }}", "'int' does not support the argument 'base'");
  expect_error("{{ '1_5'|int }}", "reading the number '1_5' is not supported");
  expect_error("{{ '1e999'|float }}", "reading the number '1e999' is not supported");
  expect_error("{{ '99999999999999999999'|int }}", "does not fit in an integer of 64 bits");
  expect_error("{{ 9007199254740993 / 3 }}", "the division of integers beyond 2^53 is not supported");
  expect_error("{{ 15|round(-1) }}", "rounding to so many digits is not supported");
  expect_error("{{ 1.5e999 }}", "does not fit in a float of 64 bits");
  expect_error("{{ {}|tojson(sort_keys=true) }}", "'tojson' does not support the argument 'sort_keys'");
  expect_error("{{ [{}]|sort(attribute='a,b') }}", "sorting by several attributes is not supported");
  expect_error("{{ 2 ** 3 }}", "column 6: the operator ** is not supported");
  expect_error("{{ 1 < 2 < 3 }}", "column 10: a chain of comparisons is not supported");
  expect_error("{{ 'abcd'[::2] }}", "the step of a slice is not 1 or -1: not supported");
  expect_error("{{ [1][1, 2] }}", "several subscripts are not supported");
  expect_error("{{ 'a'.splitlines() }}", "the method 'splitlines' of a string is not supported");
  expect_error("{{ 'a'.replace('', 'b') }}", "replacing an empty string is not supported");
  expect_error("{{ {}.items() }}", "cannot print a view of a mapping");
  expect_error("{{ range(2) }}", "cannot print a range");
  expect_error("{{ namespace() }}", "cannot print a namespace");
  expect_error("{{ dict(**{'a': 1}) }}", "arguments taken from a mapping are not supported");
  expect_error("{% macro m() %}{{ varargs }}{% endmacro %}",
               "'varargs', the other arguments of a macro, is not supported");
  expect_error("{{ '%x' % 255 }}", "only %s, %% and, for integers, %d are supported in a format");
  expect_error("{{ '{:>5}'.format(1) }}", "the format '>5' of an integer is not supported");
  expect_error("{{ {(1, 2): 3} }}", "a key of a mapping is a tuple, expected a string or an integer: not supported");
  expect_error("{{ 0x10 }}", "decimal digits");
  expect_error("{{ 1.5x }}", "decimal digits");
  expect_error("{{ (1, 2).count(1) }}", "the method 'count' of a tuple is not supported");
  expect_error("{{ {}.keys.x }}", "attributes of functions are not supported");
  expect_error("{{ {}|tojson(separators=':,') }}", "the separators of JSON are not a pair of strings");
  expect_error("{{ '\u0663'|float }}", "reading the number '\u0663' is not supported");
  expect_error("{{ 1e30|int }}", "the number does not fit in an integer of 64 bits");
  expect_error("{{ 2.5|round(23) }}", "rounding to so many digits is not supported");
  expect_error("{{ [(1, 2)]|unique|list }}", "'unique' of lists and mappings is not supported");
  expect_error("{{ [{}]|map(attribute='a', default=1) }}", "'map' takes the name of a filter or attribute= alone");
  expect_error("{% for i in [1] %}{{ loop.depth }}{% endfor %}", "loop.depth is not supported");
  expect_error("{% for i in [1] %}{{ loop.depth0 }}{% endfor %}", "loop.depth0 is not supported");
  expect_error("{% for i in [1] %}{{ loop.changed(1) }}{% endfor %}", "loop.changed is not supported");
  expect_error("{{ '\\1' }}", "an escape that is octal, not ASCII or a character's name is not supported");
  expect_error("{{ '\\é' }}", "an escape that is octal, not ASCII or a character's name is not supported");
  expect_error("{{ '\\ud83d' }}", "the escape is not a character");
  expect_error("{{ (-9223372036854775807 - 1) // -1 }}", "does not fit in an integer of 64 bits");
  expect_error("{{ -9007199254740993 / 3 }}", "the division of integers beyond 2^53 is not supported");
  expect_error("{{ 3 / 9007199254740993 }}", "the division of integers beyond 2^53 is not supported");
  expect_error("{% macro m() %}{{ kwargs }}{% endmacro %}", "'kwargs', the other arguments of a macro");
  expect_error("{% macro m(caller) %}{% endmacro %}", "a parameter called 'caller' is not supported");
  expect_error("{{ ['a'|safe] }}", "printing escaped text in a list or a mapping is not supported");
  expect_error("{{ 'ǆ'|upper }}", "the case of 'ǆ' is not supported");
  expect_error("{{ 'ı'|upper }}", "the case of 'ı' is not supported");
  expect_error("{{ 'ẞ'|lower }}", "the case of 'ẞ' is not supported");
  expect_error("{{ {}.keys() == {}.keys() }}", "comparing views of mappings is not supported");
  expect_error("{{ [1] == {}.keys() }}", "comparing views of mappings is not supported");
  expect_error("{{ {}.keys == {}.keys }}", "comparing methods is not supported");
  expect_error("{{ 1.5 in {} }}", "cannot look for a float among the keys of a mapping");
}

TEST(Jinja, ReadsNumbersThatAreNotFiniteAsPythonDoes) {
  EXPECT_EQ(render("{{ 'nan'|float }} {{ 'nan(1)'|float }} {{ 'nan'|int(7) }} {{ '-inf'|float }}"), "nan 0.0 7 -inf");
}

TEST(Jinja, FindsAnUnknownFilterInABranchOnlyWhenItIsReached) {
  EXPECT_EQ(render("{% if false %}{{ 1|nonsense }}{% endif %}x"), "x");
  expect_error("{% if true %}{{ 1|nonsense }}{% endif %}", "unknown filter 'nonsense'");
  expect_error("{% if false %}{% for i in [] %}{{ 1|nonsense }}{% endfor %}{% endif %}", "unknown filter 'nonsense'");
}

TEST(Jinja, ReturnsTheGivenTime) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  const jinja::Dict none;
  const JinjaTemplate day("{{ strftime_now('%d %b %Y, %H:%M:%S%Z%%') }}", "test");
  EXPECT_EQ(day.render(none, 1'700'000'000), "14 Nov 2023, 22:13:20%");
  EXPECT_EQ(JinjaTemplate("{{ strftime_now('') }}|{{ strftime_now('%Y%z') }}|{{ strftime_now('%') }}", "test")
                .render(none, 1'700'000'000),
            "|2023|%");
  expect_error("{{ strftime_now('%f') }}", "microseconds");
  expect_error("{{ strftime_now('%:z') }}", "%: in the format of a time are not supported");
  expect_error("{{ strftime_now('a' * 1001) }}", "the format of a time is longer than 1000 bytes");
  expect_error("{{ strftime_now('%99999Y') }}", "the time is too long to write");
}

TEST(Jinja, KeepsTheOrderOfAMapping) {
  const std::string many =
      R"({"d": {"z": 1, "y": 2, "10": 3, "9": 4, "a": 5, "b": 6, "c": 7, "d": 8, "e": 9, "f": 10}})";
  EXPECT_EQ(render("{{ d|join }}{{ d.f }}{{ d['10'] }}{{ d.missing is defined }}", many), "zy109abcdef103False");
  EXPECT_EQ(render("{{ d|tojson }}", R"({"d": {"b": 1, "a": 2, "b": 3}})"), R"({"b": 3, "a": 2})");
}

TEST(Jinja, ComparesIntegersAndFloatsExactly) {
  EXPECT_EQ(render("{{ 2 == 2.0 }} {{ 2.5 > 2 }} {{ -3 < -2.5 }} {{ -2 <= -2.5 }}"), "True True True False");
  EXPECT_EQ(render("{{ 9007199254740993 == 9007199254740992.0 }} {{ 9007199254740993 > 9007199254740992.0 }}"),
            "False True");
  EXPECT_EQ(render("{{ 9223372036854775807 < 9223372036854775808.0 }} {{ 1e300 > 1 }} {{ -1e300 < 1 }}"),
            "True True True");
}

TEST(Jinja, RejectsTemplatesThatTakeTooLong) {
  const std::string limit = "takes more than the limit of";
  const auto start = std::chrono::steady_clock::now();
  expect_error("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", limit);
  expect_error("{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
               limit);
  expect_error("{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
               limit);
  expect_error(
      "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
      limit);
  expect_error("{% set x = 'a' * 9000000 %}{% for i in range(100000) %}{% if 'b' in x %}{% endif %}{% endfor %}",
               limit);
  expect_error("{{ 'a' * 9223372036854775807 }}", limit);
  expect_error("{{ 'a'|indent(9223372036854775807) }}", limit);
  expect_error("{{ [1]|tojson(indent=9223372036854775807) }}", limit);
  expect_error("{{ ('a' * 100000).replace('a', 'b' * 100000) }}", limit);
  expect_error("{% set x = 'ab' * 500000 %}{% for i in range(9999) %}{{ x[1:] }}{{ x[::-1] }}{% endfor %}", limit);
  expect_error("{% set x = range(100000)|list %}{% for i in x %}{% for j in x %}{% break %}{% endfor %}{% endfor %}",
               limit);
  expect_error("{{ range(1000000000) }}", "longer than the limit of 100000 numbers");
  expect_error("{{ '%9999d' % 1 }}", "only %s, %% and, for integers, %d are supported in a format");
  expect_error("{{ '{:9999}'.format(1) }}", "the format '9999' of an integer is not supported");
  const std::string long_key = "{% set k = 'x' * 1000000 %}{% set other = k ~ 'b' %}{% set d = {k ~ 'a': 1} %}";
  expect_error(long_key + "{% for i in range(100000) %}{{ d[other] }}{{ d.get(other) }}{% endfor %}", limit);
  expect_error(long_key + "{% for i in range(100000) %}{% if k.startswith(k) %}{% endif %}{% endfor %}", limit);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60)) << "far from what it should take";
}

TEST(Jinja, RejectsDeepNesting) {
  const std::string deep = "deep";
  expect_error("{{ " + repeated("(", 50'000) + "1" + repeated(")", 50'000) + " }}", deep);
  expect_error("{{ " + repeated("-", 50'000) + "1 }}", deep);
  expect_error("{{ " + repeated("not ", 50'000) + "1 }}", deep);
  expect_error("{{ 1" + repeated(" + 1", 50'000) + " }}", deep);
  expect_error("{{ x" + repeated(".x", 50'000) + " }}", deep);
  expect_error("{{ x" + repeated("|d", 50'000) + " }}", deep);
  expect_error("{{ 1" + repeated(" if 1 else 1", 20'000) + " }}", deep);
  expect_error(repeated("{% if 1 %}", 25'000), deep);
  expect_error(repeated("{% macro a() %}", 15'000), deep);
  expect_error("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "levels of nesting");
  expect_error("{% set ns = namespace(x=1) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}", deep);
  expect_error("{% set ns = namespace(x=1) %}{% for i in range(9999) %}{% set ns.x = [[[ns.x]]] %}{% endfor %}",
               "nests lists and mappings too deeply");
  expect_error(
      "{% set ns = namespace() %}{% macro f() %}{{ ns.f() }}{% endmacro %}{% set ns.f = f %}"
      "{% for i in range(9) if ns.f() %}{% endfor %}",
      "levels of nesting");
}

TEST(Jinja, RejectsATemplateThatIsNotUtf8OrTooLarge) {
  expect_error("a\xff", "is not UTF-8");
  expect_error(repeated("a", (256 << 10) + 1), "expected at most 262144");
}

TEST(Jinja, ALoopOverALazySequenceFetchesItemsLate) {
  EXPECT_EQ(render("{% set ns = namespace(go=true) %}{% for i in range(9) if ns.go %}{{ i }}{% if i == 3 %}"
                   "{% set ns.go = false %}{% endif %}{% endfor %}"),
            "0123");
}

}  // namespace
}  // namespace minimind
