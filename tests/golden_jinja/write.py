#!/usr/bin/env python3
"""Writes cases.jsonl: the snippets below, rendered by Jinja2 as transformers sets it up for chat templates.

usage: python write.py      with transformers and jinja2 installed (written with 5.23.0 and 3.1.6)
A case is {"template", "rendered"}; "rendered" is null if Jinja2 throws. The variables of all cases are in variables.json.
"""
import copy
import json
import pathlib
import warnings

from transformers.utils.chat_template_utils import _compile_jinja_template

HERE = pathlib.Path(__file__).parent
VARIABLES = json.loads((HERE / "variables.json").read_text(encoding="utf-8"))
# One expression per line, printed, assigned, tested and iterated over.
EXPRESSIONS = (HERE / "expressions.txt").read_text(encoding="utf-8").strip("\n").split("\n")
FORMS = ["{{ EXPRESSION }}", "{% set x = EXPRESSION %}[{{ x }}]", "{% if EXPRESSION %}yes{% else %}no{% endif %}",
         "{% for y in EXPRESSION %}({{ y }}{{ loop.last }}){% endfor %}"]

TEMPLATES = [
    # Whitespace.
    "a\n  {% if t %}\n  b\n  {% endif %}\nc\n", "a\n  {%- if t %}\n  b\n  {%- endif %}\nc\n\n", "a \n {{- n -}} \n b",
    "a \n {{ n }} \n b\n\n", "  {%+ if t %}x{% endif %}", "  {% if t +%}\nx{% endif %}", "x  {% if t %}y{% endif %}  z",
    "{# a #}\n{#- b -#}\n c", "a\n  {# c #}\n  b", "a\n  {#+ c +#}\n  b", "a {#- {{ n }} {% if #} -#} b", "\n\n{% set x = 1 %}\n\n{{ x }}\n\n",
    "{% raw %}\n {{ x }} {% if %}\n{% endraw %}\nz", "a  {%- raw -%}  {{ x }}  {%- endraw -%}  b", "  {% raw +%} x {% endraw %}", "{%raw%}{# {%endraw%}",
    "a\r\nb\rc\n{% if t %}\r\nd{% endif %}\r\n", "{{ 'a\r\nb' }}", "\t {% if t %}\tx\t{% endif %}\t", "a\u00a0 {%- if t -%} \u3000b{% endif %}",
    "{{- '' -}}   x   {{- '' }}", "{%- for i in [1, 2] -%}\n {{ i }} \n{%- endfor -%}\n", "{% for i in [1, 2] %}\n{{ i }}\n{% endfor %}", "{{-5}}", "{{ -5 }}", "{{+5}}",
    "{{ {'a': {'b': 1}} }}", "{{ {'a': {}}}}", "a{", "a{{", "{%", "{#", "a}}", "%}", "{% if %}", "{{ }}", "{{ 1 }", "{% raw %}", "{% endraw %}", "{{ ) }}", "{{ (] }}", "{{ 'a }}", "{{ 'a\\", "{{ 'a\\\nb' }}", "{{ n +}}", "{# a", "{% raw %}a", "{% raw %}a{% endraw x %}b{% endraw %}c", "{{ 1", "{{ 1e", "{{ abc", "a\r",
    # Branches.
    "{% if fl %}a{% elif n == 5 %}b{% elif t %}c{% else %}d{% endif %}", "{% if fl %}a{% endif %}", "{% if fl: %}a{% else: %}b{% endif %}", "{% if t %}a", "{% if t %}a{% endfor %}", "{% else %}", "{% elif t %}",
    "{% if n, t %}a{% endif %}", "{% if t %}{{ s|nofilter }}{% endif %}", "{% if fl %}{{ s|nofilter }}{% endif %}ok", "{% for i in [] %}{{ i|nofilter }}{% endfor %}", "{{ (s|nofilter) if fl else 1 }}", "{% if fl %}{% for i in e %}{{ i|nofilter }}{% endfor %}{% endif %}",
    # Loops.
    "{% for i in [1, 2, 3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }};{% endfor %}",
    "{% for i in [1, 2, 3] %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }};{% endfor %}",
    "{% for i in range(6) if i is odd %}{{ i }}{{ loop.index }}{{ loop.length }}{{ loop.last }}{{ loop.nextitem }} {% endfor %}", "{% for i in range(6) if i > 9 %}{{ i }}{% else %}none{% endfor %}", "{% for i in e %}x{% else %}y{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}", "{% for k, v in d|items %}{{ k }}{{ loop.length }}{% endfor %}", "{% for (a, b), c in [[(1, 2), 3]] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for a, b in [[1, 2, 3]] %}{% endfor %}",
    "{% for a, b in [[1], [2]] %}{% endfor %}", "{% for a, b in ['xy'] %}{{ b }}{{ a }}{% endfor %}", "{% for i in none %}{% endfor %}", "{% for i in 5 %}{% endfor %}", "{% for i in undefined_x %}x{% else %}none{% endfor %}",
    "{% for i in range(9) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}", "{% for i in range(5) %}{% if i is even %}{% continue %}{% endif %}{{ i }}{% endfor %}", "{% for i in [1] %}{% continue %}{% else %}else{% endfor %}", "{% for i in [1] %}{% break %}{% else %}else{% endfor %}",
    "{% break %}", "{% for i in [1] %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{% for i in [1] %}{% else %}{% break %}{% endfor %}", "{% for i in [1, 2] %}{% for j in e %}{% else %}{% break %}{% endfor %}{{ i }}{% endfor %}",
    "{% for i in [1, 2] %}{% set z %}{{ i }}{% break %}{% endset %}{% endfor %}[{{ z }}]", "{% for i in [1, 2] %}{% for j in [3, 4] %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}", "{% for i in [[1, 2], [3]] %}{% for j in i if loop.first %}{{ j }}{% endfor %}{% endfor %}",
    "{% for loop in [1] %}{% endfor %}", "{% for i in [1] %}{% set loop = 2 %}{% endfor %}", "{{ loop is defined }}",
    "{% for i in l if i %}{{ i }}{% endfor %}", "{% for i in l %}{{ loop['index'] }}{{ loop.foo }}{% endfor %}", "{% for m in nested|sort(attribute='name') %}{{ m.name }}{% if not loop.last %}, {% endif %}{% endfor %}", "{% for i in range(3)|reverse %}{{ i }}{{ loop.length }}{% endfor %}",
    "{% for i in [3, 4]|map('string') %}{{ loop.revindex }}{{ i }}{% endfor %}", "{% set g = [1, 2]|map('string') %}{{ g|list }}{{ g|list }}", "{% set g = [1, 2, 3]|select('odd') %}{{ g|first }}{{ g|first }}{{ g|first }}", "{% for i in [1, 2] %}{{ i }}{% endfor %}{{ i }}",
    "{% for a, in [[1]] %}{{ a }}{% endfor %}", "{% for i in 1, 2, recursive %}{{ i }}{% endfor %}", "{% for i in 1, 2 if i > 1 %}{{ i }}{% endfor %}",
    "{% for a, b in [(1, 2), (3, 4)] if a > 1 %}{{ a }}{{ b }}{{ loop.index }}{% endfor %}", "{% continue %}",

    # Scopes.
    "{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}", "{% for i in [1, 2] %}{{ y }}{% set y = i %}{{ y }}{% endfor %}{{ y }}", "{% if t %}{% set x = 1 %}{% endif %}{{ x }}", "{% if fl %}{% set n = 1 %}{% endif %}{{ n }}",
    "{% for i in [1] %}{{ n }}{% endfor %}{% set n = 7 %}{{ n }}", "{% for i in [1] %}{% if fl %}{% set n = 7 %}{% endif %}{{ n }}{% endfor %}", "{% for i in [1] %}{% set n = 7 %}{{ n }}{% endfor %}{{ n }}", "{% macro m() %}{{ n }}{% endmacro %}{{ m() }}{% set n = 1 %}{{ m() }}",
    "{% macro m() %}{{ n }}{% endmacro %}{{ m() }}", "{% macro m() %}{% set n = 9 %}{{ n }}{% endmacro %}{{ m() }}{{ n }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = b, 1 %}{{ a }}{{ b }}", "{% set (a, b), c = (1, 2), 3 %}{{ a }}{{ b }}{{ c }}", "{% set a = 1, 2 %}{{ a }}", "{% set a = %}",
    "{% set n += 1 %}", "{% set 5 = 1 %}", "{% set n.x = 1 %}", "{% set true = 1 %}", "{% set a b %}",
    "{% set ns = namespace(c=0) %}{% for i in [1, 2, 3] %}{% set ns.c = ns.c + i %}{% endfor %}{{ ns.c }}", "{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.b, c = 2, 3 %}{{ ns.a }}{{ ns.b }}{{ c }}", "{% set ns = namespace(x=1) %}{% if t %}{% set ns.x = [ns.x] %}{% endif %}{{ ns.x }}{{ ns['x'] }}{{ ns.y }}",
    "{% set ns = namespace() %}{% set ns._a = 1 %}", "{% set ns = namespace() %}{{ ns._a }}", "{% set ns.x = 1 %}", "{% set d.x = 1 %}", "{% set ns = namespace() %}{% set ns.t %}abc{% endset %}{{ ns.t|upper }}", "{% set a %}x{{ n }}{% endset %}[{{ a }}]", "{% set a | upper | trim %} x{{ n }} {% endset %}[{{ a }}]", "{% set a|length %}abc{% endset %}{{ a + 1 }}",
    "{% filter upper %}a{{ s }}{% endfilter %}", "{% filter replace('a', 'b')|trim %} banana {% endfilter %}", "{% filter length %}abc{% endfilter %}", "{% set ns = namespace(stop=false) %}{% for i in range(5) if not ns.stop %}{{ i }}{% if i == 2 %}{% set ns.stop = true %}{% endif %}{% endfor %}",
    "{% for i in [1, 2] %}{% if loop.first %}{% set first = i %}{% endif %}{{ first }}{% endfor %}", "{% if messages[0].role == 'system' %}{% set sys = messages[0].content %}{% endif %}{% if sys is defined %}{{ sys }}{% endif %}",
    "{% for i in [1] %}{% for j in [1] %}{{ n }}{% set n = 2 %}{{ n }}{% endfor %}{{ n }}{% set n = 3 %}{{ n }}{% endfor %}{{ n }}", "{{ n }}{% for i in [1] %}{{ n }}{% endfor %}{% set n = 7 %}{{ n }}", "{% macro m() %}{{ n }}{% endmacro %}{{ m() }}{% if t %}{% set n = 1 %}{% endif %}{{ m() }}",
    "{% for i in [1] %}{% macro m() %}{{ n }}{% endmacro %}{{ m() }}{% set n = 2 %}{{ m() }}{% endfor %}{{ n }}", "{% set x %}{{ n }}{% for i in [1] %}{{ t }}{% endfor %}{% set t = 2 %}{{ t }}{% endset %}{{ x }}{{ t }}", "{% filter upper %}{% set s = 'x' %}{{ s }}{% endfilter %}{{ s }}",
    "{% set x = 1 %}{% macro m(a, x=x) %}{{ a }}{{ x }}{% endmacro %}{{ m(2) }}{{ m(2, 3) }}", "{% macro m(a=n, n=2) %}{{ a }}{{ n }}{% endmacro %}{{ m() }}{{ m(1) }}{{ m(n=3) }}",
    "{% for i in range(4) if n == 5 %}{% set n = 1 %}{{ n }}{% endfor %}{{ n }}", "{% for loop_item in [1] %}{% macro m() %}{{ loop.index }}{% endmacro %}{% for i in [1, 2] %}{{ m() }}{{ loop.last }}{% endfor %}{% endfor %}",
    # Iterators that are read in part.
    "{% set g = l|map('string') %}{% for x in g %}{{ x }}{% break %}{% endfor %}{{ g|list }}", "{% set g = l|map('string') %}{% for x in g %}{{ loop.last }}{% break %}{% endfor %}{{ g|list }}", "{% set g = [1, 2, 3]|select %}{{ 2 in g }}{{ g|list }}{{ 2 in g }}",
    "{% set g = [1, 2, 3]|select %}{% for x in g if x > 1 %}{{ x }}{% break %}{% endfor %}{{ g|list }}", "{% set g = [1, 2, 3]|select %}{{ g|first }}{{ 9 in g }}{{ g|first is defined }}", "{% set g = [1, 2]|select %}{% set a, b = g %}{{ a }}{{ b }}{{ g|list }}",
    # Macros and calls.
    "{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, 3) }}|{{ m(1, c=5) }}|{{ m(b=1, a=0) }}|{{ m() }}", "{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}{{ m(1) }}", "{% macro m(a) %}x{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}x{% endmacro %}{{ m(b=2) }}", "{% macro m(a) %}x{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m(a, a) %}{% endmacro %}", "{% macro m %}{% endmacro %}", "{% macro m(5) %}{% endmacro %}",
    "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}in{{ n }}{% endcall %}", "{% macro m() %}[{{ caller(1, 2) }}]{% endmacro %}{% call(a, b=3) m() %}{{ a }}{{ b }}{% endcall %}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}", "{% call n %}{% endcall %}", "{% macro m(a) %}{{ a }}{{ caller() }}{% endmacro %}{% call m(a=1) %}x{% endcall %}", "{% macro m() %}{{ caller() }}{% endmacro %}{% call m(caller=1) %}{% endcall %}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m(caller=none) }}", "{% call range(2) %}{% endcall %}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(4) }}", "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}", "{{ m() }}{% macro m() %}x{% endmacro %}", "{% macro m(x) -%} {{ x }} {%- endmacro %}[{{ m(1) }}][{{ m('<') }}]",
    "{% set ns = namespace() %}{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{% set ns.m = m %}{{ ns.m() }}{% endfor %}", "{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}", "{% macro a() %}{% macro b() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ b() }}{% endmacro %}{{ a() }}",
    "{% generation %}a{{ n }}{% endgeneration %}", "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% else %}{% generation %}{{ m.content }}{% set seen = 1 %}{% endgeneration %}{% endif %}{{ seen }}{% endfor %}", "{% generation %}",
    # Unknown tags, names and syntax.
    "{% foo %}", "{% do 1 %}", "{% trans %}a{% endtrans %}", "{% debug %}", "{% endif %}", "{% 5 %}", "{% %}", "{{ 1 2 }}", "{% if t %}{% else %}{% else %}{% endif %}", "{{ n if }}", "{{ 'a'.b.c }}", "{{ raise_exception('no') }}", "{% if n > 3 %}{{ raise_exception('n is ' ~ n) }}{% endif %}",
    # Whole chat templates.
    "{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + (m.content or '') | trim + '<|end|>\n' }}{% if loop.last and add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}{% endfor %}",
    "{%- if messages[0]['role'] == 'system' -%}\n    {%- set system = messages[0]['content'] -%}\n    {%- set rest = messages[1:] -%}\n{%- else -%}\n    {%- set rest = messages -%}\n{%- endif -%}\n{{- bos_token | default('<s>') -}}\n{%- for m in rest -%}\n    {%- if (m['role'] == 'user') != (loop.index0 % 2 == 0) -%}\n        {{- raise_exception('roles must alternate') -}}\n    {%- endif -%}\n    {%- if loop.first and system is defined -%}{{- '[' + system + ']\n' -}}{%- endif -%}\n    {{- m['content'].split('</think>')[-1].strip() + '</s>' -}}\n{%- endfor -%}",
    "{%- macro type_of(p) -%}\n{%- if p.type is string %}{{ p.type }}{% elif p.anyOf is defined %}{{ p.anyOf | map(attribute='type') | join(' | ') }}{% else %}any{% endif -%}\n{%- endmacro -%}\n{%- for tool in tools %}\n{%- set f = tool.function %}\n{{ f.name }}({% for name, p in f.parameters.properties.items() %}{{ name }}: {{ type_of(p) }}{{ '?' if name not in f.parameters.required }}{{ ', ' if not loop.last }}{% endfor %})\n{{ tool | tojson(indent=2) }}\n{%- endfor %}",
    "{%- set ns = namespace(last=-1) %}{% for m in messages[::-1] %}{% set index = messages|length - 1 - loop.index0 %}{% if ns.last < 0 and m.role == 'user' %}{% set ns.last = index %}{% endif %}{% endfor %}{{ ns.last }}{% for m in messages %}{% if loop.index0 > ns.last and '</think>' in m.content %}{{ m.content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') }}{% endif %}{% endfor %}",
    "{%- for m in messages %}{%- if m.content is string %}{{ m.content }}{%- else %}{%- for part in m.content %}{%- if part.type == 'image' or 'image_url' in part %}<image>{%- elif 'text' in part %}{{ part.text }}{%- endif %}{%- endfor %}{%- endif %}{%- endfor %}",
    "{{ strftime_now('%Y') | length }}{% set date = '26 Jul 2024' if not date is defined else date %}{{ date }}",
]


def render(template):
    try:
        return _compile_jinja_template(template).render(**copy.deepcopy(VARIABLES))
    except Exception:
        return None


def main():
    warnings.simplefilter("ignore")
    # Not cases: values printed with an address, and constants that Jinja2 folds into an undefined name.
    templates = [form.replace("EXPRESSION", expression) for expression in EXPRESSIONS for form in FORMS]
    with open(HERE / "cases.jsonl", "w", encoding="utf-8") as out:
        for template in templates + TEMPLATES:
            rendered = render(template)
            if rendered is not None and " at 0x" in rendered or "inf" in template or "nan" in template:
                continue
            out.write(json.dumps({"template": template, "rendered": rendered}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
