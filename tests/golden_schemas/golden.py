"""What the scripts here share: verdicts of jsonschema, and the golden lines {name, schema, valid, invalid}."""

import json
import pathlib
import random

import jsonschema

DRAFTS = {
    "4": "http://json-schema.org/draft-04/schema#",
    "6": "http://json-schema.org/draft-06/schema#",
    "7": "http://json-schema.org/draft-07/schema#",
    "2019": "https://json-schema.org/draft/2019-09/schema",
    "2020": "https://json-schema.org/draft/2020-12/schema",
}


# Classes of characters as ECMA-262 has them, of which JSON Schema speaks; Python's have other alphabets, too.
ECMA = {"\\d": "[0-9]", "\\w": "[A-Za-z0-9_]", "\\D": "[^0-9]", "\\W": "[^A-Za-z0-9_]"}


def for_python(schema):
    """The schema with patterns that mean in Python what they mean in ECMA-262."""
    def pattern(text):
        for escape, characters in ECMA.items():
            text = text.replace(escape, characters)
        return text

    if isinstance(schema, list):
        return [for_python(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: for_python(part) for key, part in schema.items()}
    if isinstance(result.get("pattern"), str):
        result["pattern"] = pattern(result["pattern"])
    if isinstance(result.get("patternProperties"), dict):
        result["patternProperties"] = {pattern(key): part for key, part in result["patternProperties"].items()}
    return result


def validator(schema):
    schema = for_python(schema)
    cls = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    # Every draft has the formats of the last one.
    return cls(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)


def judged(name, schema, values, most):
    """The golden line of a schema, with at most so many of the values of either kind."""
    check = validator(schema)
    valid, invalid = {}, {}
    for value in values:
        (valid if check.is_valid(value) else invalid)[json.dumps(value)] = None
    pick = lambda texts: random.sample(list(texts), min(len(texts), most))
    return {"name": name, "schema": schema, "valid": pick(valid), "invalid": pick(invalid)}


def write(name, cases):
    path = pathlib.Path(__file__).parent / name
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    print(name, len(cases), path.stat().st_size)
