"""Checks that attacks/README.md lists exactly the tests of that folder."""

import pathlib
import re
import unittest

ATTACKS = pathlib.Path(__file__).parent / "attacks"


class AttacksTest(unittest.TestCase):
    def test_the_list_names_every_test(self):
        tests = [".".join(names) for file in sorted(ATTACKS.glob("*.cpp"))
                 for names in re.findall(r"^TEST(?:_F)?\((\w+), (\w+)\)", file.read_text(), re.M)]
        listed = re.findall(r"^\| (\w+\.\w+) \|", (ATTACKS / "README.md").read_text(), re.M)
        self.assertEqual(sorted(listed), sorted(tests))


if __name__ == "__main__":
    unittest.main()
