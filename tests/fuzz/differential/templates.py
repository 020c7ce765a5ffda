"""Random templates: does `minimind render` give the text of Jinja2 as transformers sets it up?"""

import copy
import json
import random
import re
import subprocess
import tempfile
import warnings

from transformers.utils.chat_template_utils import _compile_jinja_template

import common

GOLDEN = common.ROOT / "tests/golden_jinja"
VARIABLES = json.loads((GOLDEN / "variables.json").read_text(encoding="utf-8"))
EXPRESSIONS = (GOLDEN / "expressions.txt").read_text(encoding="utf-8").strip("\n").split("\n")
SNIPPETS = [json.loads(line)["template"] for line in open(GOLDEN / "cases.jsonl", encoding="utf-8")]
TESTS = ["defined", "undefined", "none", "string", "number", "mapping", "iterable", "sequence", "true", "false", "integer", "odd",
         "even", "boolean", "equalto(5)", "in([1, 5])", "float", "divisibleby(2)"]
# The part of Jinja2 that is supported is smaller, and says so.
SMALLER = re.compile("supported|unsafe|limit of|64 bits|cannot print|decimal digits|deep")
# What depends on the process, or on the version of Python.
UNSTABLE = re.compile(r" at 0x|<(generator|filter|map|dict_|built-in|bound|function|Undefined)|strftime|Infinity|NaN|\binf\b|\bnan\b")


def pick(*choices):
    """Each choice is a text, or a function that makes one."""
    chosen = random.choice(choices)
    return chosen() if callable(chosen) else chosen


def text(d=0):
    if d > 3 or random.random() < 0.3:
        return random.choice(["s", "q", "ws", "es", "emoji", "messages[0].content", "messages[-1]['content']", "messages[1].role", "'a'",
                              "'Hello World'", "''", "'你好 é'", "'\\n x'", '"it\'s"', "'%s'"])
    return pick(
        lambda: f"{text(d + 1)}|{pick('trim', 'upper', 'lower', 'title', 'capitalize', 'string', 'indent(2)', 'e', 'safe', 'first', 'last')}",
        lambda: f"{text(d + 1)}|replace({text(4)}, {text(4)})", lambda: f"({value(d + 1)} ~ {value(d + 1)})",
        lambda: f"({text(d + 1)} + {text(d + 1)})", lambda: f"({text(d + 1)} * {random.randrange(4)})",
        lambda: f"({items(d + 1)})|join({text(4)})", lambda: f"{value(d + 1)}|string", lambda: f"{value(d + 1)}|tojson",
        lambda: f"{value(d + 1)}|tojson(indent={random.randrange(4)})", lambda: f"{value(d + 1)}|default({text(4)}{pick('', ', true')})",
        lambda: f"({text(d + 1)}){pick('[1:]', '[:2]', '[::-1]', '[-3:-1]', '[0:1]')}",
        lambda: f"({text(d + 1)}).{pick('strip()', 'lstrip()', 'rstrip()', 'upper()', 'lower()', 'title()', 'capitalize()')}",
        lambda: f"({text(d + 1)}).{pick('strip', 'lstrip', 'rstrip', 'removeprefix', 'removesuffix')}({text(4)})",
        lambda: f"({text(d + 1)}).replace({text(4)}, {text(4)})", lambda: f"({text(d + 1)} if {truth(d + 1)} else {text(d + 1)})",
        lambda: f"({text(d + 1)} % {value(d + 1)})", lambda: f"({text(d + 1)}).split({text(4)})[{pick('0', '-1')}]",
        lambda: f"'{{}}-{{}}'.format({value(d + 1)}, {value(d + 1)})")


def number(d=0):
    if d > 3 or random.random() < 0.4:
        return random.choice(["n", "neg", "0", "1", "-3", "7", "f", "big", "2.5", "t"])
    return pick(lambda: f"({number(d + 1)} {pick('+', '-', '*', '//', '%')} {number(d + 1)})", lambda: f"{items(d + 1)}|length",
                lambda: f"{text(d + 1)}|length", lambda: f"{number(d + 1)}|{pick('abs', 'int', 'float')}",
                lambda: f"({text(d + 1)}).{pick('find', 'count')}({text(4)})", lambda: f"{text(d + 1)}|int({random.randrange(9)})",
                lambda: f"[{number(d + 1)}, {number(d + 1)}]|{pick('sum', 'min', 'max', 'first')}", lambda: f"-{number(4)}")


def items(d=0):
    if d > 3 or random.random() < 0.3:
        return random.choice(["l", "e", "messages", "nested", "[1, 2, 3]", "['b', 'a', 'B']", "(1, 'x')", "tools", "['a', none, 2]"])
    return pick(lambda: f"[{value(d + 1)}, {value(d + 1)}]", lambda: f"({text(d + 1)}).split({pick('', lambda: text(4))})",
                lambda: f"({items(d + 1)}){pick('[1:]', '[:2]', '[::-1]', '[-1:]')}", lambda: f"({items(d + 1)} + {items(d + 1)})",
                lambda: f"range({pick('3', '1, 4', '5, 0, -2', 'n')})|list", lambda: f"{mapping(d + 1)}|list",
                lambda: f"({mapping(d + 1)}).{pick('keys()', 'values()', 'items()')}|list", lambda: f"{mapping(d + 1)}|{pick('items', 'dictsort')}|list",
                lambda: f"{items(d + 1)}|map('{pick('string', 'length', 'upper', 'trim')}')|list", lambda: f"messages|map(attribute='{pick('role', 'content', 'x')}')|list",
                lambda: f"{items(d + 1)}|{pick('select', 'reject')}({pick('', repr('string'), repr('none'), repr('number'))})|list",
                lambda: f"messages|{pick('select', 'reject')}attr('role', '{pick('equalto', 'ne', 'in')}', {text(d + 1)})|list",
                lambda: f"{items(d + 1)}|{pick('unique', 'reverse', 'list', 'batch(2)')}|list", lambda: f"{text(d + 1)}|list",
                lambda: f"[{text(d + 1)}, {text(d + 1)}, {text(d + 1)}]|sort{pick('', '(reverse=true)')}")


def mapping(d=0):
    if d > 3 or random.random() < 0.6:
        return random.choice(["d", "ed", "messages[0]", "tools[0].function", "{'a': 1}", "nested[2]"])
    return pick(lambda: f"{{'b': {value(d + 1)}, 'a': {value(d + 1)}}}", lambda: f"dict(a={value(d + 1)})")


def truth(d=0):
    if d > 3 or random.random() < 0.2:
        return random.choice(["t", "fl", "none", "missing", "add_generation_prompt", "true", "x"])
    return pick(lambda: f"{value(d + 1)} is {pick('', 'not ')}{random.choice(TESTS)}", lambda: f"({text(d + 1)} in {text(d + 1)})",
                lambda: f"({value(d + 1)} {pick('in', 'not in')} {items(d + 1)})", lambda: f"({value(d + 1)} {pick('==', '!=')} {value(d + 1)})",
                lambda: f"({number(d + 1)} {pick('<', '<=', '>', '>=')} {number(d + 1)})", lambda: f"({truth(d + 1)} {pick('and', 'or')} {truth(d + 1)})",
                lambda: f"(not {truth(d + 1)})", lambda: f"({text(d + 1)}).{pick('startswith', 'endswith')}({text(4)})",
                lambda: f"({text(d + 1)} < {text(d + 1)})", lambda: value(d + 1))


def value(d=0):
    if random.random() < 0.05:
        return pick("missing", "missing.x", lambda: "(" + random.choice(EXPRESSIONS) + ")", "x", "i", "loop.index", "y", "d.a", "loop.last")
    return pick(lambda: text(d), lambda: text(d), lambda: number(d), lambda: items(d), lambda: mapping(d), lambda: truth(d))


def expression():
    return value()


def tag(text):
    return "{%" + random.choice(["", "", "-", "+"]) + " " + text + " " + random.choice(["", "", "-"]) + "%}"


def block(depth=0):
    kind = random.randrange(11 if depth < 3 else 4)
    if kind == 0:
        return random.choice(["text", " \n ", "\n", "  x", "é你\n", "{# c #}", "{#- c -#}\n", "\t"])
    if kind < 4:
        return "{{" + random.choice(["", "-"]) + " " + expression() + " " + random.choice(["", "-"]) + "}}"
    inner = "".join(block(depth + 1) for _ in range(random.randrange(1, 4)))
    if kind in (4, 5):
        condition = f" if {truth()}" if random.random() < 0.2 else ""
        other = tag("else") + "e" if random.random() < 0.2 else ""
        return tag(f"for {random.choice(['i', 'x'])} in {items()}{condition}") + inner + other + tag("endfor")
    if kind in (6, 7):
        other = random.choice(["", tag("else") + "e", tag(f"elif {truth()}") + "f"])
        return tag(f"if {truth()}") + inner + other + tag("endif")
    if kind == 8:
        return tag(f"set x = {expression()}") if random.random() < 0.7 else tag("set y") + inner + tag("endset")
    if kind == 9:
        return tag("macro m(i, y=1)") + inner + tag("endmacro") + "{{ m(" + expression() + ") }}"
    return random.choice([tag("set ns = namespace(a=1)") + tag(f"set ns.a = {expression()}") + "{{ ns.a }}",
                          tag(f"filter {random.choice(['upper', 'trim', 'length'])}") + inner + tag("endfilter"),
                          tag("raw") + inner + tag("endraw"), random.choice(SNIPPETS)])


def template():
    if random.random() < 0.2:  # one that exists, with characters changed
        source = list(random.choice(SNIPPETS))
        for _ in range(random.randrange(1, 4)):
            at = random.randrange(len(source) + 1)
            source[at:at + random.randrange(3)] = random.choice(["", "-", " ", "|", "(", "}", "%", "'", "not ", "[0]", ".a", "\n", "1"])
        return "".join(source)
    return "".join(block() for _ in range(random.randrange(1, 5)))


def rendered_by_jinja2(source):
    variables = copy.deepcopy(VARIABLES)
    try:
        return _compile_jinja_template(source).render(documents=None, **variables)
    except Exception:
        return None


def main():
    warnings.simplefilter("ignore")
    comparison = common.Comparison("templates", __doc__)
    line = json.dumps(VARIABLES) + "\n"
    with tempfile.NamedTemporaryFile("w", suffix=".jinja", encoding="utf-8", newline="") as file:
        while comparison.has_time():
            source = template()
            if UNSTABLE.search(source) or "\r" in source or not source:
                continue
            expected = rendered_by_jinja2(source)
            if expected is None and random.random() < 0.7:
                continue  # half of all are rejected, which says little
            if expected is not None and (UNSTABLE.search(expected) or len(expected) > 100_000):
                continue
            file.seek(0)
            file.truncate()
            file.write(source)
            file.flush()
            run = subprocess.run([comparison.program, "render", "--template", file.name, "--jsonl"], input=line, capture_output=True, text=True)
            comparison.count("templates")
            if run.returncode not in (0, 1):
                comparison.disagree("crashed", template=source, status=run.returncode, message=run.stderr[-2000:])
            elif run.returncode == 0 and expected is None:
                comparison.disagree("rendered what Jinja2 rejects", template=source, got=run.stdout)
            elif run.returncode == 0 and json.loads(run.stdout) != expected:
                comparison.disagree("another text", template=source, expected=expected, got=json.loads(run.stdout))
            elif run.returncode == 1 and expected is not None:
                reason = run.stderr.strip().split(": ", 2)[-1]
                if SMALLER.search(reason):
                    comparison.count("refused")
                else:
                    comparison.disagree("rejected what Jinja2 renders", template=source, expected=expected, message=reason)
            else:
                comparison.count("rejected by both" if expected is None else "same text")
    comparison.finish()


if __name__ == "__main__":
    main()
