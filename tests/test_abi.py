"""Programs that were compiled with an older runtime/api/minimind.h find what they know at its place in the present one.

    python3 tests/test_abi.py --write    # if something was added, which is kept from then on; refuses if something was changed
"""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = ROOT / "runtime/api/minimind.h"


def declarations(header):
    """The kind and the parts of each thing declared, by its name: members, values, or the whole of a function."""
    text = re.sub(r"/\*.*?\*/", " ", header, flags=re.DOTALL)
    found = {}
    for kind, name, body in re.findall(r"typedef (struct|enum) (\w+) \{(.*?)\}", text, re.DOTALL):
        separator = ";" if kind == "struct" else ","
        found[name] = kind, [" ".join(part.split()) for part in body.split(separator) if part.strip()]
    for function in re.findall(r"^MINIMIND_API ([^;]*);", text, re.MULTILINE):
        found[re.search(r"(\w+)\(", function)[1]] = "function", [" ".join(function.split())]
    return found


def golden():
    abi = re.search(r"#define MINIMIND_ABI (\d+)", HEADER.read_text())[1]
    return ROOT / f"tests/golden_abi/{abi}.txt"


def as_text(found):
    return "".join(f"{kind} {name}\n" + "".join(f"  {part}\n" for part in parts) for name, (kind, parts) in found.items())


def changed(now):
    """The names of what is known and no longer as it was."""
    names = []
    for known in re.findall(r"^\w+ \w+\n(?:  .*\n)+", golden().read_text(), re.MULTILINE):
        first, *parts = known.rstrip("\n").split("\n  ")
        kind, name = first.split()
        # The caller states the size of those structures, so that they may grow at their end.
        grows = parts[0] == "size_t size" or kind == "enum"
        now_kind, now_parts = now.get(name, ("", []))
        if now_kind != kind or (now_parts[:len(parts)] if grows else now_parts) != parts:
            names.append(name)
    return names


class Abi(unittest.TestCase):
    def test_keeps_what_older_programs_know(self):
        self.assertEqual(changed(declarations(HEADER.read_text())), [])

    def test_knows_all_that_is_declared(self):
        self.assertEqual(as_text(declarations(HEADER.read_text())), golden().read_text(),
                         "what is new is kept from now on: python3 tests/test_abi.py --write")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        now = declarations(HEADER.read_text())
        if golden().exists() and changed(now):
            sys.exit(f"test_abi.py: older programs would break: {', '.join(changed(now))}; add at the end, or change MINIMIND_ABI")
        golden().write_text(as_text(now))
    else:
        unittest.main()
