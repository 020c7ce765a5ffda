#include <gtest/gtest.h>

#include <string>

#include "runtime/jinja/jinja.h"
#include "runtime/jinja/value.h"

namespace minimind {
namespace {

// The text with each marked part in brackets.
std::string bracketed(const MarkedText& text) {
  std::string result;
  std::size_t at = 0;
  for (const auto& [begin, end] : text.marks.ranges()) {
    result += text.bytes.substr(at, begin - at) + "[" + text.bytes.substr(begin, end - begin) + "]";
    at = end;
  }
  return result + text.bytes.substr(at);
}

// With the marked variable c = "ab,Cd" and the marked d = {"k": "v"}.
std::string render_marks(const std::string& source) {
  jinja::Budget budget({});
  jinja::Dict variables, d;
  d.set(MarkedText::all("k"), MarkedText::all("v"));
  variables.set("c", MarkedText::all("ab,Cd"));
  variables.set("d", jinja::make_dict(std::move(d), budget));
  return bracketed(JinjaTemplate(source, "test").render_marked(variables, 0));
}

TEST(JinjaMarks, FollowTextThroughEveryOperation) {
  const std::pair<const char*, const char*> cases[] = {
      {"x{{ c }}y", "x[ab,Cd]y"},
      {"{{ 'x' + c + 'y' }}", "x[ab,Cd]y"},
      {"{{ 'x' ~ c ~ 1 }}", "x[ab,Cd]1"},
      {"{{ (c + '-') * 2 }}", "[ab,Cd]-[ab,Cd]-"},
      {"{{ ('x' + c)[0:3] }}", "x[ab]"},
      {"{{ ('x' + c)[::-1] }}", "[dC,ba]x"},
      {"{{ ('x' + c)[1] + ('x' + c)[0] }}", "[a]x"},
      {"{{ ('x' + c)|first }}{{ (c + 'y')|last }}", "xy"},
      {"{{ ('é' + c + 'é')[1] }}", "[a]"},
      {"{{ ('  ' + c + ' ')|trim }}!", "[ab,Cd]!"},
      {"{{ ('x' + c).strip('xa') }}", "[b,Cd]"},
      {"{{ ('x' + c).lstrip('x') + (c + '\\n').rstrip('\\n') }}", "[ab,Cdab,Cd]"},
      {"{% for p in ('x' + c).split(',') %}{{ p }};{% endfor %}", "x[ab];[Cd];"},
      {"{{ (c + ' y').split()|join('+') }}", "[ab,Cd]+y"},
      {"{{ ('x' + c)|replace(',', '.') }}", "x[ab].[Cd]"},
      {"{{ 'x,y'|replace(',', c) }}", "x[ab,Cd]y"},
      {"{{ ('x' + c).replace('xa', '-') }}", "-[b,Cd]"},
      {"{{ ('x' + c)|upper }}{{ ('X' + c)|lower }}", "X[AB,CD]x[ab,cd]"},
      {"{{ ('x ' + c)|title }}{{ ('x' + c)|capitalize }}{{ (c + 'x').title() }}", "X [Ab,cd]X[ab,cdAb,Cd]x"},
      {"{{ ['x', c]|join('-') }}{{ '-'.join(['x', c]) }}{{ c.join(['x', 'y']) }}", "x-[ab,Cd]x-[ab,Cd]x[ab,Cd]y"},
      {"{{ c|tojson }}", "\"[ab,Cd]\""},
      {"{{ (c + '\"')|tojson }}", "\"[ab,Cd]\\\"\""},
      {"{{ [d, 'x']|tojson }}", "[{\"[k]\": \"[v]\"}, \"x\"]"},
      {"{{ d|tojson(indent=1) }}", "{\n \"[k]\": \"[v]\"\n}"},
      {"{{ d }}{{ [c] }}", "{'[k]': '[v]'}['[ab,Cd]']"},
      {"{{ '%s=%s%%' % (c, 1) }}", "[ab,Cd]=1%"},
      {"{{ '%s'|format(c) }}{{ 'a{}b{x}'.format(c, x=c) }}", "[ab,Cd]a[ab,Cd]b[ab,Cd]"},
      {"{{ (c + '\\nx')|indent(2) }}", "[ab,Cd]\n  x"},
      {"{{ ('x' + c)|reverse }}{{ ('x' + c)|string }}", "[dC,ba]xx[ab,Cd]"},
      {"{% set s %}x{{ c }}{% endset %}{{ s }}", "x[ab,Cd]"},
      {"{% filter upper %}x{{ c }}{% endfilter %}", "X[AB,CD]"},
      {"{% macro m(t) %}<{{ t }}{{ caller() if caller }}>{% endmacro %}{{ m(c) }}{% call m('x') %}{{ c }}{% endcall %}",
       "<[ab,Cd]><x[ab,Cd]>"},
      {"{% for l in 'x' + c %}{{ l }}.{% endfor %}", "x.[a].[b].[,].[C].[d]."},
      {"{% for k, v in d.items() %}{{ k }}={{ v }}{% endfor %}{{ d|items|list|first|first }}{{ d.k }}", "[k]=[vkv]"},
      {"{% for k, v in d|dictsort %}{{ k }}={{ v }}{% endfor %}{{ [c]|map('upper')|list|first }}", "[k]=[vAB,CD]"},
      {"{{ c|safe + '<' }}{{ '<'|safe + c + '&' }}", "[ab,Cd]&lt;<[ab,Cd]&amp;"},
      {"{{ none|default(c) }}{{ c if c else 'x' }}{{ c or 'x' }}{{ [c, 'x']|unique|join }}", "None[ab,Cdab,Cdab,Cd]x"},
      {"{% set n = namespace(t=c) %}{{ n.t }}{{ dict(a=c).a }}{{ {'a': c}['a'] }}", "[ab,Cdab,Cdab,Cd]"},
      {"{{ c|length }}{{ c == 'ab,Cd' }}{{ 'b,' in c }}{{ c.startswith('ab') }}", "5TrueTrueTrue"},
  };
  for (const auto& [source, expected] : cases) EXPECT_EQ(render_marks(source), expected) << source;
}

}  // namespace
}  // namespace minimind
