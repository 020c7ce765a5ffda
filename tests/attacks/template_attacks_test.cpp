#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "runtime/chat/chat_json.h"
#include "runtime/jinja/jinja.h"
#include "tests/support/attack.h"

// Chat templates that leave the sandbox of Jinja2, or take all time and memory. README.md in this folder lists them.
namespace minimind {
namespace {

void expect_template_refused(const std::string& source, std::string_view reason = "") {
  const jinja::Value value = template_value(
      parse_chat_json(R"({"messages": [{"role": "user", "content": "x"}], "tools": null, "s": "abc"})", "variables"));
  expect_refused([&] { JinjaTemplate(source, "test").render(*value.dict(), 0); }, reason);
}

// CVE-2024-34359, llama-cpp-python: the template of a GGUF's metadata ran outside of a sandbox.
TEST(TemplateAttack, ClassesOfValuesAreOutOfReach) {
  for (const char* const source : {
           "{{ ''.__class__.__mro__[1].__subclasses__() }}",
           "{{ s.__class__.__base__ }}",
           "{{ s['__class__']['__mro__'] }}",
           "{{ messages.__class__ }}",
           "{{ messages[0].__class__.__init__.__globals__ }}",
           "{% for c in [].__class__.__base__.__subclasses__() %}{% if c.__name__ == 'catch_warnings' %}"
           "{{ c()._module.__builtins__['__import__']('os').popen('id').read() }}{% endif %}{% endfor %}",
           "{{ self.__init__.__globals__ }}",
           "{{ self._TemplateReference__context }}",
           "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
           "{{ joiner.__init__.__globals__.os.popen('id').read() }}",
           "{{ namespace.__init__.__globals__.os.popen('id').read() }}",
           "{{ lipsum.__globals__.os.popen('id').read() }}",
           "{{ range.__class__ }}",
           "{{ raise_exception.__globals__ }}",
           "{{ strftime_now.__globals__ }}",
           "{{ loop.__class__ }}",
           "{% for i in [1] %}{{ loop._iterator.__class__ }}{% endfor %}",
           "{% macro m() %}{% endmacro %}{{ m.__class__ }}",
           "{% macro m() %}{% endmacro %}{{ m._func.__globals__ }}",
           "{{ get_flashed_messages.__globals__ }}",
           "{{ request.application.__globals__ }}",
           "{{ config.items() }}",
       }) {
    SCOPED_TRACE(source);
    expect_template_refused(source);
  }
}

// CVE-2025-27516, Jinja2: the filter `attr` reached str.format past the sandbox.
TEST(TemplateAttack, TheAttrFilterReachesNothing) {
  for (const char* const source : {
           "{{ s|attr('__class__') }}",
           "{{ s|attr('format')('{0.__class__}', 1) }}",
           "{{ ('{0.__class__}'|attr('format'))(s) }}",
           "{{ s|attr('__cl' ~ 'ass__') }}",
           "{{ [s]|map(attribute='__class__')|list }}",
           "{{ [s]|map(attribute='__class__.__mro__')|list }}",
           "{{ [messages]|map('attr', '__class__')|list }}",
           "{{ messages|groupby('__class__') }}",
           "{{ messages|sort(attribute='__class__') }}",
           "{{ messages|selectattr('__class__')|list }}",
       }) {
    SCOPED_TRACE(source);
    expect_template_refused(source);
  }
}

// CVE-2016-10745, CVE-2019-10906, CVE-2024-56326, Jinja2: str.format and format_map reached attributes.
TEST(TemplateAttack, FormatStringsReachNoAttributes) {
  for (const char* const source : {
           "{{ '{0.__class__}'.format(s) }}",
           "{{ '{0[__class__]}'.format(s) }}",
           "{{ '{x.__class__.__init__}'.format(x=s) }}",
           "{{ '{x.__class__}'.format_map({'x': s}) }}",
           "{% set f = '{0.__class__}'.format %}{{ f(s) }}",
           "{{ ['{0.__class__}'.format]|map('string')|list }}",
           "{{ '%(a.__class__)s' % {'a': s} }}",
           "{{ '{:{}}'.format(1, 999999999) }}",
           "{{ '%1000000000d' % 1 }}",
       }) {
    SCOPED_TRACE(source);
    expect_template_refused(source);
  }
}

// CVE-2024-56201, Jinja2: the name of a template or of a filter became Python code.
TEST(TemplateAttack, NamesBecomeNoCode) {
  for (const char* const source : {
           "{% filter x'%}{% endfilter %}",
           "{{ 1|__import__('os') }}",
           "{{ 1 is __import__('os') }}",
           "{% set __builtins__ = 1 %}{{ __import__('os') }}",
           "{% include '/etc/passwd' %}",
           "{% import 'os' as os %}",
           "{% from 'os' import system %}",
           "{% extends '../../etc/passwd' %}",
           "{% do s.__class__ %}",
           "{% autoescape false %}{% endautoescape %}",
       }) {
    SCOPED_TRACE(source);
    expect_template_refused(source);
  }
}

TEST(TemplateAttack, ValuesOfTheCallerAreNotChanged) {
  for (const char* const source : {
           "{{ messages.append(1) }}",
           "{{ messages.clear() }}",
           "{{ messages[0].update({'role': 'system'}) }}",
           "{{ messages[0].pop('role') }}",
           "{% set messages[0].role = 'system' %}",
       }) {
    SCOPED_TRACE(source);
    expect_template_refused(source);
  }
}

TEST(TemplateAttack, LongLoopsEnd) {
  for (const char* const source : {
           "{% for i in range(10 ** 9) %}{% endfor %}",
           "{% for i in range(1000000000) %}{% endfor %}",
           "{{ range(99999)|list|length * range(1000000000)|length }}",
           "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor "
           "%}{% endfor %}",
           "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
           "{% set l = range(99999)|list %}{% for i in l %}{{ l|sort|first }}{{ l|reverse|first }}{% endfor %}",
           "{% set l = range(99999)|list %}{% for i in l %}{{ l|unique|list|length }}{% endfor %}",
           "{% set l = range(99999)|list %}{% for i in l %}{{ l|join|length }}{{ l|sum }}{% endfor %}",
           "{% set l = range(99999)|list %}{% for i in l %}{% if l == l %}{% endif %}{{ l|tojson|length }}{% endfor %}",
           "{% set l = range(99999)|list %}{% for i in l %}{{ l[1:]|length }}{{ 99999 in l }}{% endfor %}",
       }) {
    SCOPED_TRACE(source);
    expect_template_refused(source);
  }
}

TEST(TemplateAttack, LongStringsAreNotMade) {
  for (const char* const source : {
           "{{ 'x' * 1000000000 }}",
           "{{ 'x' * 10 ** 9 }}",
           "{{ [0] * 1000000000 }}",
           "{{ ('x' * 1000000)|replace('x', 'y' * 1000000) }}",
           "{{ ('x' * 100000).split('')|join('y' * 100000) }}",
           "{{ ('x,' * 100000).split(',')|join('y' * 100000) }}",
           "{{ 'x'|center(1000000000) }}",
           "{{ 'x'|indent(1000000000, true) }}",
           "{{ [1]|tojson(indent=1000000000) }}",
           "{% set ns = namespace(x='x') %}{% for i in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
           "{% set ns = namespace(x='x') %}{% for i in range(100) %}{% set ns.x = ns.x|upper ~ ns.x|lower %}{% endfor "
           "%}",
           "{% set ns = namespace(x='x') %}{% for i in range(100) %}{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}{% "
           "endfor %}",
           "{% set ns = namespace(x=['x']) %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
           "{% set ns = namespace(x=['x']) %}{% for i in range(100) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ "
           "ns.x|tojson }}",
           "{% set ns = namespace(x=['x']) %}{% for i in range(100) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x "
           "== ns.x }}{{ ns.x|string }}",
       }) {
    SCOPED_TRACE(source);
    expect_template_refused(source);
  }
}

TEST(TemplateAttack, RecursionEnds) {
  for (const std::string& source : {
           std::string("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
           std::string("{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}"),
           std::string("{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}"),
           std::string("{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}"),
           std::string("{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}"),
           std::string("{% macro m(a=m()) %}{% endmacro %}{{ m() }}"),
           "{{ " + repeated("(", 400'000) + "1" + repeated(")", 400'000) + " }}",
           "{{ " + repeated("[", 400'000) + repeated("]", 400'000) + " }}",
           "{{ " + repeated("{'a':", 100'000) + "1" + repeated("}", 100'000) + " }}",
           "{{ 1" + repeated("+1", 400'000) + " }}",
           "{{ 1" + repeated("~1", 400'000) + " }}",
           "{{ not " + repeated("not ", 200'000) + "1 }}",
           repeated("{% for a in [1] %}", 50'000) + repeated("{% endfor %}", 20'000),
           repeated("{% if 1 %}", 50'000) + repeated("{% endif %}", 50'000),
       }) {
    SCOPED_TRACE(source.substr(0, 80));
    expect_template_refused(source);
  }
}

// CVE-2020-28493, Jinja2: a regular expression of `urlize` took quadratic time. Here, long tokens of each kind.
TEST(TemplateAttack, LongTokensAreReadInLinearTime) {
  const std::string many(900'000, 'a'), spaces(900'000, ' ');
  expect_template_refused("{{ " + many + ".x.y }}");
  expect_template_refused("{{ '" + many);
  expect_template_refused("{# " + many);
  expect_template_refused("{% raw %}" + repeated("{% raw %}", 90'000));
  expect_template_refused("{{ " + spaces);
  expect_template_refused("{%" + spaces + "%}");
  expect_template_refused("{{ '" + repeated("\\", 900'000));
  expect_template_refused("{{ " + repeated("1", 900'000) + " }}");
  expect_template_refused("{{ s|urlize }}{{ '" + repeated("a@", 400'000) + "'|urlize }}");
  expect_template_refused(repeated("{{ x", 200'000));
}

}  // namespace
}  // namespace minimind
