"""Random schemas in which every keyword meets every other, against jsonschema.

Without options, writes random.jsonl: one schema for each pair of keywords. With --check ./minimind, asks `minimind validate`
about new schemas and prints where it judges otherwise. See README.md for the commands.
"""

import argparse
import collections
import json
import random
import subprocess
import sys
import tempfile

import golden

NAMES = ["a", "b", "ab", "c"]
TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"]


def value(depth=0):
    kind = random.randrange(9 if depth < 3 else 6)
    if kind < 2:
        return [None, True, False][random.randrange(3)]
    if kind == 2:
        return random.randrange(-2, 6)
    if kind == 3:
        return random.choice([0.5, 1.0, 2.5, -1.5, 3.0])
    if kind in (4, 5):
        return "".join(random.choice("ab é\"1") for _ in range(random.randrange(4)))
    if kind == 6:
        return [value(depth + 1) for _ in range(random.randrange(4))]
    return {random.choice(NAMES): value(depth + 1) for _ in range(random.randrange(4))}


def limit(low, high):
    """Two keywords of a range, of which either may be missing."""
    return lambda depth: {random.choice([low, high]): random.randrange(4)}


def some(keyword):
    return lambda depth: {keyword: [schema(depth + 1) for _ in range(random.randrange(1, 4))]}


def one(keyword):
    return lambda depth: {keyword: schema(depth + 1)}


def named(keyword, names):
    return lambda depth: {keyword: {name: schema(depth + 1) for name in random.sample(names, random.randrange(1, 3))}}


def choice(keyword, *values):
    return lambda depth: {keyword: random.choice(values)}


def condition(depth):
    result = {"if": schema(depth + 1)}
    if random.random() < 0.8:
        result["then"] = schema(depth + 1)
    if random.random() < 0.5:
        result["else"] = schema(depth + 1)
    return result


def contains(depth):
    result = {"contains": schema(depth + 1)}
    if random.random() < 0.3:
        result["minContains"] = random.randrange(3)
    if random.random() < 0.3:
        result["maxContains"] = random.randrange(1, 3)
    return result


KEYWORDS = {
    "type": lambda depth: {"type": random.choice([*TYPES, ["string", "null"], ["object", "array"]])},
    "enum": lambda depth: {"enum": [value(2) for _ in range(3)]},
    "const": lambda depth: {"const": value(2)},
    "minimum": choice("minimum", 0, 1, 1.5),
    "maximum": choice("maximum", 0, 2, 2.5),
    "exclusiveMinimum": choice("exclusiveMinimum", 0, 1, 1.5),
    "exclusiveMaximum": choice("exclusiveMaximum", 1, 2, 2.5),
    "multipleOf": choice("multipleOf", 1, 2, 0.5),
    "length": limit("minLength", "maxLength"),
    "pattern": choice("pattern", "^a", "b$", "^[ab]*$", "é", "^(a|b)+1?$", "1", "^(?!a)"),
    "format": choice("format", "date", "ipv4", "uuid", "unknown"),
    "items": one("items"),
    "prefixItems": some("prefixItems"),
    "contains": contains,
    "count": limit("minItems", "maxItems"),
    "uniqueItems": choice("uniqueItems", True, True, False),
    "properties": named("properties", NAMES),
    "patternProperties": named("patternProperties", ["^a", "b", "^c$"]),
    "additionalProperties": one("additionalProperties"),
    "required": lambda depth: {"required": random.sample(NAMES, random.randrange(1, 3))},
    "size": limit("minProperties", "maxProperties"),
    "propertyNames": choice("propertyNames", {"maxLength": 1}, {"pattern": "^a"}, {"enum": ["a", "b"]}, {"not": {"const": "a"}}),
    "dependentSchemas": named("dependentSchemas", NAMES),
    "dependentRequired": lambda depth: {"dependentRequired": {random.choice(NAMES): [random.choice(NAMES)]}},
    "allOf": some("allOf"),
    "anyOf": some("anyOf"),
    "oneOf": some("oneOf"),
    "not": one("not"),
    "if": condition,
    "$ref": choice("$ref", "#/$defs/x", "#/$defs/y"),
    "unevaluatedProperties": choice("unevaluatedProperties", False, {"type": "integer"}),
    "unevaluatedItems": choice("unevaluatedItems", False, {"const": 1}),
}
# Below the root they meet `not` and `if` too often, where they are rejected.
ROOT_ONLY = {"unevaluatedProperties", "unevaluatedItems"}
PAIRS = [(first, second) for i, first in enumerate(KEYWORDS) for second in list(KEYWORDS)[i + 1:]]


def schema(depth=0, keywords=()):
    if depth > 2 or (depth > 0 and random.random() < 0.15):
        return random.choice([True, {}, {"type": "integer"}, {"type": "string"}, {"type": "object"}, False, {"const": 1}])
    result = {}
    for keyword in [*keywords, *random.sample(sorted(set(KEYWORDS) - ROOT_ONLY), random.randrange(0 if keywords else 1, 3))]:
        result.update(KEYWORDS[keyword](depth))
    return result


def document(pair):
    return {"$schema": golden.DRAFTS["2020"], **schema(0, pair), "$defs": {"x": schema(1), "y": schema(1)}}


def mutants(of):
    yield of
    if isinstance(of, dict):
        for name in of:
            yield {other: of[other] for other in of if other != name}
            yield {**of, name: value(2)}
        yield {**of, random.choice(NAMES): value(2)}
    if isinstance(of, list):
        yield of + [value(2)]
        yield of[1:]
        yield of[:-1]


def values():
    for _ in range(14):
        yield from mutants(value())
    for _ in range(10):
        yield from mutants({random.choice(NAMES): random.choice([1, "a", None, {}, value(1)]) for _ in range(random.randrange(4))})
    for _ in range(6):
        yield from mutants([random.choice([1, "a", None, 2]) for _ in range(random.randrange(4))])
    yield from ("2024-01-01", "1.2.3.4", "2eb8aa08-aa98-11ea-b4aa-73b441d16380")


def case(number, most):
    """None where jsonschema itself does not end: a reference that leads to itself."""
    pair = PAIRS[number % len(PAIRS)]
    try:
        return golden.judged(f"{number} {' '.join(pair)}", document(pair), values(), most)
    except RecursionError:
        return None


def disagreements(program, made):
    """Yields what kind each is and the text, or the message if the program refuses the schema."""
    texts = made["valid"] + made["invalid"]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(made["schema"], file)
        file.flush()
        run = subprocess.run([program, "validate", "-q", "--json-schema", file.name, "--jsonl"], input="\n".join(texts) + "\n",
                             capture_output=True, text=True)
    if run.returncode not in (0, 1):
        yield "crashed", run.stderr.strip()
    verdicts = [json.loads(line)["conforms"] for line in run.stdout.split("\n") if line]
    if len(verdicts) != len(texts):
        # A schema by which nothing is valid is refused.
        yield ("refused" if made["valid"] else "refused, nothing valid was found"), run.stderr.strip()
        return
    for i, (text, conforms) in enumerate(zip(texts, verdicts)):
        if conforms != (i < len(made["valid"])):
            yield ("accepted wrongly" if conforms else "rejected wrongly"), text


def check(program, count):
    """Returns 1 if the program accepts an invalid text."""
    results = collections.Counter()
    for number in range(count):
        made = case(number, 60)
        if made is None:
            continue
        results["schemas"] += 1
        results["texts"] += len(made["valid"]) + len(made["invalid"])
        for kind, text in disagreements(program, made):
            results[kind] += 1
            if kind != "refused, nothing valid was found":
                print(kind, json.dumps(made["schema"]), text)
    print(dict(results))
    return 1 if results["accepted wrongly"] or results["crashed"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", metavar="PROGRAM", help="the program to ask, instead of writing random.jsonl")
    parser.add_argument("--count", type=int, default=len(PAIRS), help=f"schemas (default: {len(PAIRS)}, each pair once)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random.seed(options.seed)
    if options.check:
        sys.exit(check(options.check, options.count))
    golden.write("random.jsonl", [made for made in (case(number, 6) for number in range(options.count)) if made])


if __name__ == "__main__":
    main()
