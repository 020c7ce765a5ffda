"""Writes cases.jsonl: schemas as Pydantic and Zod write them, with values and whether jsonschema finds them valid.

See README.md for the command.
"""

import dataclasses
import datetime
import decimal
import enum
import ipaddress
import json
import pathlib
import random
import typing
import uuid
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar, Union

import jsonschema
import pydantic
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, RootModel, TypeAdapter
from typing_extensions import NotRequired, TypedDict

random.seed(17)


class Colour(enum.Enum):
    red = "red"
    blue = "blue"


class Level(enum.IntEnum):
    low = 1
    high = 2


class Address(BaseModel):
    street: str
    zip: Annotated[str, Field(pattern=r"^\d{5}(-\d{4})?$")]
    country: str = "DE"


class Person(BaseModel):
    model_config = ConfigDict(title="A person", extra="forbid")
    name: Annotated[str, Field(min_length=1, max_length=20, description="The name")]
    age: Annotated[int, Field(ge=0, lt=150)]
    height: Optional[float] = None
    address: Optional[Address] = None
    tags: set[str] = set()
    colour: Colour = Colour.red
    level: Level
    born: datetime.date


class Everything(BaseModel):
    at: datetime.datetime
    time: datetime.time
    lasts: datetime.timedelta
    id: uuid.UUID
    price: decimal.Decimal
    url: AnyUrl
    ip: ipaddress.IPv4Address
    ip6: ipaddress.IPv6Address
    data: bytes
    path: pathlib.Path
    any: Any


class Containers(BaseModel):
    pair: tuple[int, str]
    many: tuple[bool, ...]
    unique: frozenset[int]
    counts: dict[str, int]
    nested: dict[str, list[Optional[float]]]
    keyed: dict[Colour, int]
    numbered: dict[int, str]
    some: Annotated[list[int], Field(min_length=1, max_length=3)]
    either: Union[int, str, None]
    literal: Literal["a", 1, True, None]
    halves: Annotated[float, Field(multiple_of=0.5, gt=0, le=5)]


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    barks: bool


class Zoo(BaseModel):
    pets: list[Annotated[Union[Cat, Dog], Field(discriminator="kind")]]
    favourite: Union[Cat, Dog]


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []
    parent: Optional["Tree"] = None


T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    items: list[T]
    next: Optional[str] = None


class Aliased(BaseModel):
    first: Annotated[int, Field(alias="firstName", examples=[1], deprecated=True)]
    second: Annotated[str, Field(serialization_alias="2nd", json_schema_extra={"x-order": 2})] = "b"


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    steps: list["Step"]
    answer: str


class Step(BaseModel):
    model_config = ConfigDict(extra="forbid")
    explanation: str
    output: str


class Extra(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]
    a: str


class Shape(RootModel[Union[list[int], dict[str, int]]]):
    pass


class Children(BaseModel):
    colour: Annotated[Colour, Field(description="A reference beside other keywords")] = Colour.blue
    by_name: dict[Annotated[str, Field(pattern="^[a-z]+$", max_length=4)], Point]
    json_text: pydantic.Json
    email: Annotated[str, Field(json_schema_extra={"format": "email"})]
    positive: pydantic.PositiveInt
    secret: pydantic.SecretStr


PYDANTIC = [Address, Person, Everything, Containers, Zoo, Tree, Page[int], Page[Person], Aliased, Point, Movie, Strict,
            Extra, Shape, Children, list[Cat], Optional[Point], dict[str, Union[int, list[str]]]]

# The shapes of zod-to-json-schema (draft 7) and of Zod 4's z.toJSONSchema() (2020-12).
DRAFT7 = "http://json-schema.org/draft-07/schema#"
DRAFT2020 = "https://json-schema.org/draft/2020-12/schema"
TEXT, NUMBER, NULL = {"type": "string"}, {"type": "number"}, {"type": "null"}


def zod_object(properties, optional=(), **more):
    return {"type": "object", "properties": properties,
            "required": [name for name in properties if name not in optional], "additionalProperties": False, **more}


ZOD = [
    zod_object({"a": {"type": "string", "minLength": 1, "maxLength": 5}, "b": {"type": "integer", "exclusiveMinimum": 0},
                "c": {"type": "boolean"}}, optional=("c",)),
    zod_object({"email": {"type": "string", "format": "email"}, "url": {"type": "string", "format": "uri"},
                "id": {"type": "string", "format": "uuid"}, "at": {"type": "string", "format": "date-time"},
                "start": {"type": "string", "pattern": "^ab"}, "ip": {"type": "string", "format": "ipv4"}}),
    zod_object({"n": {"type": ["string", "null"]}, "u": {"type": ["string", "number"]}, "l": {"type": "string", "const": "x"},
                "e": {"type": "string", "enum": ["a", "b"]}, "x": {}, "never": {"not": {}}}, optional=("x", "never")),
    zod_object({"o": {"anyOf": [zod_object({"a": TEXT}), NULL]}, "d": {"type": "number", "default": 1}}, optional=("d",)),
    {"anyOf": [zod_object({"kind": {"type": "string", "const": "a"}, "v": TEXT}),
               zod_object({"kind": {"type": "string", "const": "b"}, "v": NUMBER})]},
    {"allOf": [{"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
               {"type": "object", "properties": {"b": NUMBER}, "required": ["b"]}]},
    {"allOf": [{"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
               {"type": "object", "properties": {"b": NUMBER}, "required": ["b"]}], "unevaluatedProperties": False,
     "$schema": "https://json-schema.org/draft/2019-09/schema#"},
    {"type": "object", "additionalProperties": NUMBER},
    {"type": "object", "additionalProperties": NUMBER, "propertyNames": {"enum": ["a", "b"]}},
    {"type": "object", "additionalProperties": NUMBER, "propertyNames": {"minLength": 2}},
    {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 3},
    {"type": "array", "minItems": 2, "maxItems": 2, "items": [TEXT, NUMBER]},
    {"type": "array", "minItems": 1, "items": [TEXT], "additionalItems": NUMBER},
    {"type": "array", "items": {"type": "array", "items": [TEXT, NUMBER], "minItems": 2, "maxItems": 2}, "maxItems": 125},
    {"type": "array", "uniqueItems": True, "items": TEXT},
    {"$ref": "#/definitions/Node", "definitions": {"Node": zod_object(
        {"name": TEXT, "children": {"type": "array", "items": {"$ref": "#/definitions/Node"}}})}},
    zod_object({"value": TEXT, "next": {"anyOf": [{"$ref": "#"}, NULL]}, "same": {"$ref": "#/properties/value"}}),
    zod_object({"p": {"allOf": [{"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "b$"}]},
                "m": {"type": "number", "multipleOf": 0.5, "minimum": 0, "maximum": 2},
                "big": {"type": "integer", "format": "int64"}}),
    {"$schema": DRAFT2020, **zod_object({"t": {"type": "array", "prefixItems": [TEXT, NUMBER]},
                                         "i": {"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991},
                                         "r": {"type": "object", "propertyNames": TEXT, "additionalProperties": {}},
                                         "n": {"anyOf": [TEXT, NULL]}})},
    {"$schema": DRAFT2020, "$ref": "#/$defs/a", "$defs": {"a": {"id": "a", **zod_object({"b": {"$ref": "#/$defs/a"}},
                                                                                     optional=("b",))}}},
]

TEXTS = ["", "a", "ab", "aab", "red", "cat", "12345", "12345-6789", "2020-02-29", "2020-02-30", "2020-02-29T01:02:03Z", "01:02:03Z",
         "P1D", "PT1H", "123e4567-e89b-12d3-a456-426614174000", "1.5", "http://a.example/b", "1.2.3.4", "::1", "x@y.example", "x",
         "é\n\"", "[1]"]


def value_of(schema, root, depth=0):
    """A value that is often valid."""
    if not isinstance(schema, dict) or depth > 6:
        return random.choice([None, 1, "a"])
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].split("/")[1:]:
            target = target[part]
        return value_of(target, root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return random.choice(schema["enum"])
    if "anyOf" in schema or "oneOf" in schema:
        return value_of(random.choice(schema.get("anyOf") or schema["oneOf"]), root, depth + 1)
    if "allOf" in schema:
        parts = [value_of(part, root, depth + 1) for part in schema["allOf"]]
        return {key: part[key] for part in parts for key in part} if isinstance(parts[0], dict) else parts[0]
    kind = schema.get("type", random.choice(["string", "integer", "null"]))
    kind = random.choice(kind) if isinstance(kind, list) else kind
    if kind == "object":
        required = schema.get("required", [])
        value = {name: value_of(part, root, depth + 1) for name, part in schema.get("properties", {}).items()
                 if name in required or random.random() < .4}
        if isinstance(schema.get("additionalProperties"), dict):
            for name in random.sample(["a", "red", "1", "ab"], random.randrange(3)):
                value.setdefault(name, value_of(schema["additionalProperties"], root, depth + 1))
        return value
    if kind == "array":
        prefix = schema.get("prefixItems") or (schema["items"] if isinstance(schema.get("items"), list) else [])
        items = schema.get("items") if isinstance(schema.get("items"), dict) else {}
        count = max(len(prefix), schema.get("minItems", 0)) + (0 if prefix else random.randrange(3))
        return [value_of(prefix[i] if i < len(prefix) else items, root, depth + 1) for i in range(count)]
    if kind == "string":
        checker = jsonschema.Draft202012Validator({**schema, "$schema": DRAFT2020},
                                                  format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        return random.choice([text for text in TEXTS if checker.is_valid(text)] or TEXTS)
    return {"boolean": True, "null": None, "integer": random.randrange(1, 9),
            "number": random.choice([0.5, 1, 2.5, 3.0])}[kind]


def mutants(value):
    """Values that differ in one place."""
    yield random.choice([None, True, 0, -1, 2.5, "", [], {}])
    if isinstance(value, dict):
        for name in value:
            yield {other: value[other] for other in value if other != name}
            for mutant in mutants(value[name]):
                yield {**value, name: mutant}
        yield {**value, "unknown": 1}
    if isinstance(value, list):
        yield value + [random.choice([None, 1, "a"])]
        for i, item in enumerate(value):
            yield value[:i] + value[i + 1:]
            yield value[:i + 1] + value[i:]
            for mutant in mutants(item):
                yield value[:i] + [mutant] + value[i + 1:]


def case(name, schema):
    cls = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    # Every draft has the formats of the last one.
    validator = cls(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    valid, invalid = {}, {}
    for _ in range(60):
        value = value_of(schema, schema)
        for other in [value, *mutants(value)]:
            (valid if validator.is_valid(other) else invalid)[json.dumps(other)] = None
    assert valid and invalid, (name, schema)
    pick = lambda texts: random.sample(list(texts), min(len(texts), 20))
    return {"name": name, "schema": schema, "valid": pick(valid), "invalid": pick(invalid)}


def main():
    cases = [case(f"pydantic {model} {mode}", TypeAdapter(model).json_schema(mode=mode))
             for model in PYDANTIC for mode in ("validation", "serialization")]
    cases += [case(f"zod {i}", schema if "$schema" in schema else {**schema, "$schema": DRAFT7}) for i, schema in enumerate(ZOD)]
    path = pathlib.Path(__file__).parent / "cases.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in cases))
    print(len(cases), path.stat().st_size)


if __name__ == "__main__":
    main()
