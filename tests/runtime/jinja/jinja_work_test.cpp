#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/jinja/jinja.h"
#include "tests/support/cpu_seconds.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

// A template that does as much as it can of one operation, whose parts are as long as they can be.
struct Construct {
  const char* name;
  std::string source;
};

// `count` names, with commas between them and `rest` behind each.
std::string names(std::size_t count, const std::string& start, const std::string& rest) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += (i > 0 ? "," : "") + start + std::to_string(i) + rest;
  return text;
}

// Runs `statement` again and again.
std::string looped(const std::string& before, const std::string& statement) {
  return before + "{% for i in range(100000) %}{% for j in range(100000) %}" + statement + "{% endfor %}{% endfor %}";
}

const std::string long_text = "{% set s = 'a' * 1000000 %}", spaces = "{% set s = ' ' * 1000000 %}";
const std::string long_name(200'000, 'n');

std::vector<Construct> of_texts() {
  return {
      {"strip of characters", looped(long_text, "{% set x = s.strip('b' * 1000000 ~ 'a') %}")},
      {"strip of many characters once", "{% set x = ('a' * 100000000).strip('b' * 1000000 ~ 'a') %}"},
      {"strip of spaces", looped(spaces, "{% set x = s.strip() %}")},
      {"trim of text without spaces", looped(long_text, "{% set x = s|trim %}")},
      {"split at spaces", looped(spaces, "{% set x = s.split() %}")},
      {"split at a letter", looped("{% set s = 'a' * 100000 %}", "{% set x = s.split('a') %}")},
      {"split of a huge text", "{% set x = ('a' * 200000000).split('a') %}"},
      {"split at a self-similar text", looped(long_text, "{% set x = s.split('a' * 100 ~ 'b' ~ 'a' * 100) %}")},
      {"replace by nothing", looped(long_text, "{% set x = s.replace('a', '') %}")},
      {"replace of a huge text", "{% set x = ('a' * 200000000).replace('a', '') %}"},
      {"search of a self-similar text", looped(long_text, "{% set x = ('b' ~ 'a' * 254) in s %}")},
      {"search of a long self-similar text", looped(long_text, "{% set x = ('a' * 500000 ~ 'b') in s %}")},
      {"indent", looped("{% set s = '\\n' * 1000000 %}", "{% set x = s|indent(0) %}")},
      {"indent of a huge text", "{% set x = ('\\n' * 100000000)|indent(0) %}"},
      {"reverse", looped(long_text, "{% set x = s|reverse %}{% set x = s[::-1] %}")},
      {"tojson of control characters", looped("{% set s = '\\x01' * 1000000 %}", "{% set x = s|tojson %}")},
      {"repr of control characters", looped("{% set s = '\\x01' * 1000000 %}", "{% set x = [s]|string %}")},
      {"cases", looped("{% set s = '\u00e4' * 500000 %}", "{% set x = s|upper %}{% set x = s|title %}")},
      {"escaping", looped("{% set s = '&' * 1000000 %}{% set m = ''|safe %}", "{% set x = s + m %}")},
      {"repetition", looped("", "{% set x = 'a' * 100000000 %}")},
      {"join of characters", looped(long_text, "{% set x = s|join %}")},
      {"characters", looped(long_text, "{% set x = s|list %}{% set x = s|first %}{% set x = s|last %}")},
      {"index of a long text", looped("{% set s = '\u00e4' * 500000 %}", "{% set x = s[499999] %}")},
      {"concatenation", looped("{% set n = namespace(s='') %}", "{% set n.s = n.s ~ 'x' %}")},
      {"time", looped("", "{% set x = strftime_now('%c' * 500) %}")},
      {"comparison", looped(long_text + "{% set t = s ~ '' %}", "{% set x = s == t or s < t %}")},
      {"int", looped("{% set s = '0' * 1000000 %}", "{% set x = s|int %}")},
  };
}

std::vector<Construct> of_formats() {
  const std::string empty = "{% set e = ('a' * 65535).split('a') %}";
  return {
      {"{} with keywords", "{{ '{k39999}'.format(" + names(40'000, "k", "=1") + ") }}"},
      {"{} with keywords many times", "{% set x = ('{k39999}' * 40000).format(" + names(40'000, "k", "=1") + ") %}"},
      {"{} with a long keyword", looped("", "{% set x = '{" + long_name + "}'.format(" + long_name + "=1) %}")},
      {"{{", looped("{% set f = '{{' * 500000 %}", "{% set x = f.format() %}")},
      {"%%", looped("{% set f = '%%' * 500000 %}", "{% set x = f % () %}")},
      {"%s of empty texts", looped("{% set f = '%s' * 65536 %}" + empty, "{% set x = f|format(*e) %}")},
  };
}

std::vector<Construct> of_calls() {
  const std::string macro = "{% macro m(" + names(20'000, "p", "=1") + ") %}{% endmacro %}";
  const std::string repeats = "{% set e = ('a' * 50000).split('a') %}";
  return {
      {"parameters", "{% macro m(" + names(90'000, "p", "") + ") %}{% endmacro %}"},
      {"keywords", "{% set x = f(" + names(90'000, "k", "=1") + ") if false %}"},
      {"keywords of a macro", macro + "{% set x = m(" + names(20'000, "p", "=2") + ") %}"},
      {"a macro with many parameters", looped(macro, "{% set x = m() %}")},
      {"a long keyword",
       looped("{% macro m(" + long_name + ") %}{% endmacro %}", "{% set x = m(" + long_name + "=1) %}")},
      {"arguments of a filter that maps", repeats + "{% set x = e|map('select', 'defined', *range(100000))|list %}"},
      {"arguments of a test that chooses", repeats + "{% set x = e|map('reject', 'defined', *range(100000))|list %}"},
      {"long message", "{{ raise_exception('a' * 50000000) }}"},
  };
}

std::vector<Construct> of_containers() {
  const std::string keys =
      "{% set k = 'x' * 1000000 %}{% set d = {k ~ 'a': 1, k ~ 'b': 1, k ~ 'c': 1} %}"
      "{% set o = {k ~ 'a': 1, k ~ 'b': 1, k ~ 'c': 1} %}";
  const std::string name_space = "{% set n = namespace(" + long_name + "=1) %}";
  return {
      {"mapping of long keys", looped("{% set k = 'x' * 1000000 %}", "{% set x = {k: 1, k: 2, k: 3} %}")},
      {"comparison of mappings", looped(keys, "{% set x = d == o %}")},
      {"mapping of a mapping", looped(keys, "{% set x = dict(d) %}")},
      {"a long keyword of a mapping", looped("", "{% set x = dict(" + long_name + "=1) %}")},
      {"attribute of a namespace", looped(name_space, "{% set x = n." + long_name + " %}")},
      {"setting an attribute", looped(name_space, "{% set n." + long_name + " = 1 %}")},
      {"attribute of a mapping", looped(keys, "{% set x = d." + long_name + " %}")},
      {"attribute of a text", looped("", "{% set x = 'a'." + long_name + " %}")},
      {"views", looped("{% set d = {" + names(40'000, "'k", "': 1") + "} %}",
                       "{% set x = d.items() %}{% set x = d.keys() %}{% set x = d|dictsort %}")},
      {"unique", "{% set x = range(100000)|unique|list %}"},
      {"sort", looped("{% set r = range(100000)|list %}", "{% set x = r|sort(reverse=true) %}")},
      {"sort of long texts", "{% set s = 'x' * 1000000 %}{% set x = [s ~ 'a', s ~ 'b', s ~ 'c']|map('list')|list %}"},
      {"comparison of lists", looped("{% set a = range(100000)|list %}{% set b = a + [] %}", "{% set x = a == b %}")},
      {"in a list", looped("{% set a = range(100000)|list %}", "{% set x = 100000 in a %}")},
      {"slices", looped("{% set a = range(100000)|list %}", "{% set x = a[1:] %}")},
      {"tojson with an indent", looped("{% set a = range(100000)|list %}", "{% set x = a|tojson(indent=1) %}")},
      {"joined lists", looped("{% set n = namespace(a=[]) %}", "{% set n.a = n.a + [1] %}")},
      {"length of a loop",
       looped("{% set a = range(100000)|list %}", "{% for x in a if loop is defined %}{% break %}{% endfor %}")},
      {"undefined values", looped("{% macro m(a) %}{% endmacro %}", "{{ m(" + std::string(200, 'u') + ") }}")},
  };
}

class JinjaWork : public testing::TestWithParam<std::vector<Construct> (*)()> {};

TEST_P(JinjaWork, IsRejectedSoon) {
  for (const Construct& construct : GetParam()()) {
    const double start = cpu_seconds();
    std::string message;
    try {
      JinjaTemplate(construct.source, "test").render({}, 0);
    } catch (const Error& error) {
      message = error.what();
    }
    EXPECT_LT(cpu_seconds() - start, most_cpu_seconds) << construct.name;
    EXPECT_LT(message.size(), 5000u) << construct.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Texts, JinjaWork, testing::Values(&of_texts));
INSTANTIATE_TEST_SUITE_P(Formats, JinjaWork, testing::Values(&of_formats));
INSTANTIATE_TEST_SUITE_P(Calls, JinjaWork, testing::Values(&of_calls));
INSTANTIATE_TEST_SUITE_P(Containers, JinjaWork, testing::Values(&of_containers));

}  // namespace
}  // namespace minimind
