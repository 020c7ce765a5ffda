"""Random JSON Schemas and values: does `minimind validate` judge as Python's jsonschema does?"""

import sys

import common

sys.path.insert(0, str(common.ROOT / "tests/golden_schemas"))
import random_schemas  # noqa: E402


def main():
    comparison = common.Comparison("schemas", __doc__)
    number = comparison.seed
    while comparison.has_time():
        number += 1
        made = random_schemas.case(number, 60)
        if made is None:
            continue
        comparison.count("schemas")
        comparison.count("texts", len(made["valid"]) + len(made["invalid"]))
        for kind, text in random_schemas.disagreements(comparison.program, made):
            if kind.startswith("refused"):
                comparison.count(kind)
            else:
                comparison.disagree(kind, schema=made["schema"], text=text)
    comparison.finish()


if __name__ == "__main__":
    main()
