"""Writes suite.jsonl: for every keyword of every draft what it says, as schemas and values made by rules.

The verdicts are those of jsonschema. See README.md for the command.
"""

import itertools
import random

import golden

random.seed(20)

NUMBERS = [0, 1, -1, 2, 3, 1.0, 1.5, 2.5, -2.5, 0.1, 7, 100]
TEXTS = ["", "a", "ab", "abc", "aab", "b", "é", "你好", "\U0001F600", "\U0001F600\U0001F600", "1", "a\nb", "\"", "\\"]
ARRAYS = [[], [1], [1, 2], [1, 1], [1, True], [0, False], [1, 1.0], [[1], [1]], [[1], [True]], [{"a": 1}, {"a": 1}],
          [{"a": 1, "b": 2}, {"b": 2, "a": 1}], ["a", "b"], ["a", "a"], [1, 2, 3], [1, "a", None], [None, None], ["a", 1]]
OBJECTS = [{}, {"a": 1}, {"b": 1}, {"a": 1, "b": 2}, {"a": "x"}, {"a": None}, {"a": [], "b": {}}, {"c": 1}, {"a": 1, "c": 1},
           {"aa": 1}, {"a": 1, "b": 2, "c": 3}, {"": 1}, {"é": 1}, {"a": {"a": 1}}, {"a": {"b": "x"}}, {"b": "x"}]
VALUES = [None, True, False, *NUMBERS, *TEXTS, *ARRAYS, *OBJECTS]

ALL, SINCE6, SINCE7, SINCE2019 = ("4", "6", "7", "2019", "2020"), ("6", "7", "2019", "2020"), ("7", "2019", "2020"), ("2019", "2020")
UP_TO7, UP_TO2019 = ("4", "6", "7"), ("4", "6", "7", "2019")


def types():
    names = ["null", "boolean", "integer", "number", "string", "array", "object"]
    for name in names:
        yield ALL, {"type": name}, []
    for two in itertools.combinations(names, 2):
        if set(two) != {"integer", "number"}:
            yield ALL, {"type": list(two)}, []


def constants():
    kinds = [None, True, False, 0, 1, 1.0, -2.5, "", "a", "你好", [], [1], [True], [[1], {}], {}, {"a": 1}, {"a": [1], "b": None}]
    for value in kinds:
        yield SINCE6, {"const": value}, kinds
        yield ALL, {"enum": [value]}, kinds
    for two in itertools.combinations(kinds, 2):
        if random.random() < 0.2:
            yield ALL, {"enum": list(two)}, kinds
    for other in ({"type": "string"}, {"type": "integer"}, {"minLength": 1}, {"maximum": 0}, {"required": ["a"]}):
        yield ALL, {"enum": kinds, **other}, kinds
    yield ALL, {"type": "object", "properties": {"a": {"enum": ["x"]}, "b": {"enum": [1, False]}}, "required": ["b"]}, \
        [{"a": "x", "b": 1}, {"a": "x"}, {"b": False}, {"b": 0}, {"b": True}]


def numbers():
    for bound in (0, 1, -2, 1.5, 100, 0.1, 90071992547409):
        near = [bound - 1, bound - 0.5, bound, bound + 0.5, bound + 1, -bound, int(bound)]
        for keyword in ("minimum", "maximum"):
            yield ALL, {keyword: bound}, near
            yield ALL, {"type": "integer", keyword: bound}, near
            yield ("4",), {keyword: bound, "exclusive" + keyword.capitalize(): True}, near
            yield ("4",), {keyword: bound, "exclusive" + keyword.capitalize(): False}, near
            yield SINCE6, {"exclusive" + keyword.capitalize(): bound}, near
    for low, high in ((0, 3), (-1, 1), (1.5, 2.5), (10, 12)):
        near = [low - 1, low, (low + high) / 2, high, high + 1]
        yield ALL, {"minimum": low, "maximum": high}, near
        yield SINCE6, {"exclusiveMinimum": low, "exclusiveMaximum": high}, near
    for step in (1, 2, 3, 7, 0.5, 0.25, 1.5):
        yield ALL, {"multipleOf": step}, [step * k for k in range(-3, 8)] + [step * k + step / 2 for k in range(5)]
        yield ALL, {"type": "integer", "multipleOf": step, "minimum": 0, "maximum": 12}, list(range(-3, 15))


def strings():
    for length in (0, 1, 2, 3):
        yield ALL, {"minLength": length}, []
        yield ALL, {"maxLength": length}, []
        yield ALL, {"minLength": length, "maxLength": length + 1}, []
    yield SINCE6, {"maxLength": 2.0}, []
    patterns = ["a", "^a", "a$", "^a*$", "^[ab]+$", "^(a|b)c?$", "^[^a]*$", "b{2}", "^a{2,}b", "^.b$", "é", "^\\W+$", "^\\S*$",
                "^\\d$", "^\\w+$", "^(?=a)..$", "^(?!a).*$", "^a|b$", "\\u00e9", "^$", "\\\\", "^[a-c]{1,2}$"]
    for pattern in patterns:
        yield ALL, {"pattern": pattern}, ["cab", "bb", "ac", "aabb", "ax", "xa", "c", "ba", "a b", "٣"]
        if random.random() < 0.5:
            yield ALL, {"type": "string", "pattern": pattern, "minLength": 1, "maxLength": 3}, ["cab", "bb", "aabb"]


def arrays():
    yes, no, whole, text = {}, {"not": {}}, {"type": "integer"}, {"type": "string"}
    for item in (yes, no, whole, text, {"enum": [1, "a"]}, {"items": whole}):
        yield ALL, {"items": item}, []
        yield UP_TO2019, {"items": [item]}, []
        yield ("2020",), {"prefixItems": [item]}, []
        yield SINCE6, {"contains": item}, []
        for further in (no, text):
            yield UP_TO2019, {"items": [item, whole], "additionalItems": further}, []
            yield ("2020",), {"prefixItems": [item, whole], "items": further}, []
        for low, high in ((0, 1), (1, 1), (2, None), (1, 2), (0, 0)):
            limits = {"minContains": low, **({} if high is None else {"maxContains": high})}
            yield SINCE2019, {"contains": item, **limits}, []
    yield UP_TO2019, {"additionalItems": no}, []
    yield SINCE6, {"items": False}, []
    for count in range(4):
        yield ALL, {"minItems": count}, []
        yield ALL, {"maxItems": count}, []
        yield ALL, {"minItems": count, "maxItems": 2 * count, "items": whole}, []
    for item in ({}, whole, {"type": "boolean"}, {"enum": [1, "a", None]}, {"type": "array"}):
        yield ALL, {"uniqueItems": True, "items": item}, [[True, False], [True, True], [1, "a", None]]
    yield ALL, {"uniqueItems": False}, []


def objects():
    whole, text, no = {"type": "integer"}, {"type": "string"}, {"not": {}}
    names = ["a", "b", "é", "", "$ref", "type", "a/b", "m~n", "c%d", "\"", "\n", "__proto__", "toString", "constructor"]
    mixed = [{name: value} for name in names for value in (1, "x", None)]
    for name in names:
        yield ALL, {"properties": {name: whole}}, mixed
        yield ALL, {"required": [name]}, mixed
    for further in (no, whole, text, {}):
        yield ALL, {"properties": {"a": whole}, "additionalProperties": further}, []
        yield ALL, {"patternProperties": {"^a": whole}, "additionalProperties": further}, [{"ab": 1}, {"ab": "x"}]
        yield ALL, {"properties": {"a": text}, "patternProperties": {"b": whole}, "additionalProperties": further}, []
    yield ALL, {"properties": {"aa": {"minimum": 1}}, "patternProperties": {"a": whole, "^aa$": {"maximum": 2}}}, \
        [{"aa": value} for value in (0, 1, 2, 3, "x")]
    yield SINCE6, {"properties": {"a": True, "b": False}}, []
    yield SINCE6, {"patternProperties": {"a": True, "b": False}}, []
    for count in range(4):
        yield ALL, {"minProperties": count}, []
        yield ALL, {"maxProperties": count}, []
        yield ALL, {"maxProperties": count, "required": ["a"], "properties": {"b": whole}} if count else {"maxProperties": 0}, []
    for name in ({"maxLength": 1}, {"pattern": "^a"}, {"enum": ["a", "b"]}, {"const": "a"}, {"minLength": 1}, {"type": "integer"}):
        yield SINCE6, {"propertyNames": name}, []
    yield SINCE6, {"propertyNames": False}, []
    for rest in ({"a": []}, {"a": ["b"]}, {"a": ["b", "c"]}, {"a": ["b"], "b": ["a"]}, {"c": ["a"]}):
        yield UP_TO7 if all(rest.values()) else ("6", "7"), {"dependencies": rest}, []
        yield SINCE2019, {"dependentRequired": rest}, []
    for rest in ({"a": {"required": ["b"]}}, {"a": {"properties": {"b": text}}}, {"a": {"minProperties": 2}, "b": {"maxProperties": 1}}):
        yield UP_TO7, {"dependencies": rest}, []
        yield SINCE2019, {"dependentSchemas": rest}, []


PARTS = [{"type": "integer"}, {"type": "string"}, {"minimum": 1}, {"maxLength": 1}, {"required": ["a"]}, {"required": ["b"]},
         {"properties": {"a": {"type": "integer"}}}, {"minItems": 1}, {"enum": [1, "a", None]}, {}, {"not": {"type": "array"}}]


def logic():
    for first, second in itertools.combinations(PARTS, 2):
        for keyword in ("allOf", "anyOf", "oneOf"):
            yield ALL, {keyword: [first, second]}, []
        if random.random() < 0.5:
            yield SINCE7, {"if": first, "then": second}, []
            yield SINCE7, {"if": first, "else": second}, []
            yield ALL, {"not": {"anyOf": [first, second]}}, []
    for one in PARTS:
        if one:
            yield ALL, {"not": one}, []
            yield ALL, {"not": {"not": one}}, []
    for three in random.sample(list(itertools.combinations(PARTS, 3)), 40):
        yield SINCE7, {"if": three[0], "then": three[1], "else": three[2]}, []
        yield ALL, {"oneOf": list(three)}, []
        yield ALL, {"allOf": [{"anyOf": list(three[:2])}, {"anyOf": list(three[1:])}]}, []
    for keyword in ("allOf", "anyOf", "oneOf"):
        for truths in ([True, False], [True, True], [True]):
            if keyword != "allOf" or all(truths):
                yield SINCE6, {keyword: truths, "type": ["object", "null"]}, []
    yield SINCE7, {"then": {"const": 0}}, []
    yield SINCE7, {"else": {"const": 0}}, []


def references():
    whole = {"type": "integer"}
    for place, draft in (("definitions", ALL), ("$defs", SINCE2019)):
        for name, pointer in (("x", "x"), ("a/b", "a~1b"), ("m~n", "m~0n"), ("c%d", "c%25d"), ("é", "%C3%A9"), ("\"", "%22")):
            yield draft, {"properties": {"a": {"$ref": f"#/{place}/{pointer}"}}, place: {name: whole}}, []
    tree = {"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": False}
    yield ALL, tree, [{"a": {"a": {}}}, {"a": {"a": {"b": {}}}}, {"a": 1}]
    yield ALL, {"properties": {"a": whole, "b": {"$ref": "#/properties/a"}}}, []
    yield ALL, {"items": {"$ref": "#/definitions/l"}, "definitions": {"l": {"anyOf": [whole, {"type": "array", "items": {"$ref": "#/definitions/l"}}]}}}, \
        [[[1]], [[[]]], [["a"]]]
    # What is next to a $ref counts from 2019-09 on.
    yield ALL, {"properties": {"a": {"$ref": "#/definitions/x", "maximum": 0}}, "definitions": {"x": whole}}, [{"a": 0}]
    yield ALL, {"$ref": "#/definitions/x", "definitions": {"x": {"$ref": "#/definitions/y"}, "y": whole}}, []
    base = "http://example.com/root.json"
    yield SINCE6, {"$id": base, "properties": {"a": {"$ref": "other.json"}}, "definitions": {"o": {"$id": "other.json", **whole}}}, []
    yield SINCE6, {"$id": base, "$ref": "#/definitions/o/definitions/i", "definitions":
                   {"o": {"$id": "folder/", "definitions": {"i": {"items": {"$ref": "i.json"}}, "j": {"$id": "i.json", **whole}}}}}, []
    yield ("6", "7"), {"properties": {"a": {"$ref": "#x"}}, "definitions": {"d": {"$id": "#x", **whole}}}, []
    yield SINCE2019, {"properties": {"a": {"$ref": "#x"}}, "$defs": {"d": {"$anchor": "x", **whole}}}, []
    yield ("2020",), {"properties": {"a": {"$dynamicRef": "#x"}}, "$defs": {"d": {"$dynamicAnchor": "x", **whole}}}, []
    yield ("2019",), {"$recursiveAnchor": True, "properties": {"a": {"$recursiveRef": "#"}}, "additionalProperties": False}, [{"a": {"a": {}}}]
    # An $id counts only where a schema is.
    yield SINCE6, {"$ref": "http://example.com/x.json", "properties": {"p": {}}, "definitions":
                   {"u": {"unknown": [{"$id": "http://example.com/x.json", "type": "null"}]},
                    "r": {"$id": "http://example.com/x.json", "type": "string"},
                    "c": {"const": {"$id": "http://example.com/x.json"}}}}, []


def unevaluated():
    text, whole = {"type": "string"}, {"type": "integer"}
    for further in (False, text):
        base = {"unevaluatedProperties": further}
        for other in ({}, {"properties": {"a": whole}}, {"patternProperties": {"a": whole}}, {"allOf": [{"properties": {"a": {}}}]},
                      {"anyOf": [{"properties": {"a": whole}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]},
                      {"if": {"required": ["a"]}, "then": {"properties": {"a": {}}}, "else": {"properties": {"b": {}}}},
                      {"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {}}}}},
                      {"properties": {"a": {}}, "additionalProperties": whole}, {"dependentSchemas": {"a": {"properties": {"a": {}, "b": {}}}}}):
            # jsonschema forgets additionalProperties here in 2019-09.
            yield ("2020",) if "additionalProperties" in other else SINCE2019, {"type": "object", **base, **other}, []
        for draft, name in (("2019", "items"), ("2020", "prefixItems")):
            for other in ({}, {name: [whole]}, {"allOf": [{name: [whole]}]}, {"anyOf": [{name: [whole]}, {name: [{}, {"type": "null"}]}]}):
                yield (draft,), {"type": "array", "unevaluatedItems": further, **other}, []


def formats():
    days = [f"{year:04}-{month:02}-{day:02}" for year in (1999, 2000, 2024, 1900) for month in (0, 1, 2, 4, 12, 13) for day in (0, 1, 28, 29, 30, 31, 32)]
    times = [f"{hour:02}:{minute:02}:{second}{zone}" for hour in (0, 23, 24) for minute in (0, 59, 60) for second in ("00", "59", "61", "30.5")
             for zone in ("Z", "+01:30", "-24:00", "")]
    hex_digits = "2eb8aa08-aa98-11ea-b4aa-73b441d16380"
    lists = {
        "date": days + ["2024-2-01", "20240101", "2024-W01", "2024-01-01 ", "٢٠٢٤-01-01"],
        "time": times + ["1:00:00Z", "010000Z"],
        "date-time": [f"{random.choice(days)}{separator}{random.choice(times)}" for separator in "TTTt " for _ in range(30)],
        "duration": ["P1D", "PT1H", "P1Y2M3D", "P1Y2M3DT4H5M6S", "P1W", "PT", "P", "1D", "P1", "P1DT", "PT1D", "P2S", "p1d"],
        "ipv4": [".".join(parts) for parts in itertools.product(("0", "255", "256", "01", "a"), ("1", ""), ("2",), ("3", "3.4"))],
        "ipv6": ["::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7", "1::2::3", "12345::", "::1.2.3.4", "::1.2.3.256", "1:2:3:4:5:6:7:8:9", "g::", "fe80::1%a", "1:2:3:4:5:6:1.2.3.4", ":1", "1:2:3:4:5:6:7::"],
        "uuid": [hex_digits, hex_digits.upper(), hex_digits[:-1], hex_digits.replace("-", ""), hex_digits.replace("a", "g"), "{" + hex_digits + "}", hex_digits + "0"],
        "hostname": ["a", "a.b", "example.com", "-a", "a-", "a-b", "1a.2b", "a_b", "a..b", "a" * 63, "a" * 64, "", ".a", "a.b-"],
        "email": ["a@b.com", "a.b@c.de", "ab"],
        "json-pointer": ["", "/", "/a", "/a/b", "a", "/~0", "/~1", "/~2", "/~", "#/a", "/é", "//"],
        "relative-json-pointer": ["0", "1/a", "0#", "01", "-1", "1a", "/a", "", "2##"],
        "uri": ["http://a.b/c", "urn:a:b", "//a/b", "a", "http://a b", "mailto:a@b", "http://[::1]/", "http:// ", ":a", "http://a/%zz"],
        "uri-reference": ["http://a.b/c", "//a/b", "a", "#a", "?a", "\\a", "a b", "/a/../b", "#a\\b"],
        "iri": ["http://é.b/é", "é", "http://a b"],
        "uri-template": ["http://a/{b}", "{a", "a{+b,c}", "{}", "a}"],
    }
    for name, texts in lists.items():
        for draft in ("7", "2019", "2020"):
            yield (draft,), {"format": name}, texts
            yield (draft,), {"type": "string", "format": name, "maxLength": 12}, texts
    for name in ("unknown", "int32", "binary"):
        yield ALL, {"format": name}, TEXTS


def main():
    cases = []
    for rule in (types, constants, numbers, strings, arrays, objects, logic, references, unevaluated, formats):
        for i, (drafts, schema, further) in enumerate(rule()):
            # Most keywords say the same in each draft: two drafts of them are enough.
            few = drafts if rule in (references, unevaluated) else random.sample(drafts, min(2, len(drafts)))
            for draft in few:
                # jsonschema takes more than the standards have for most formats: only texts of known verdict are asked.
                values = [None, 1, True, [], {}, *further] if rule is formats else VALUES + further * 3
                cases.append(golden.judged(f"{rule.__name__} {i} draft {draft}", {"$schema": golden.DRAFTS[draft], **schema}, values, 5))
    golden.write("suite.jsonl", cases)


if __name__ == "__main__":
    main()
