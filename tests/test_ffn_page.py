"""Tests that the commands of tools/reference/FFN.md print what the page says.

Each command is a line that starts with "    $ ", followed by its output. MINIMIND_WRITE_PAGES=1 writes the outputs.
MINIMIND_PROGRAM names another program than ./minimind.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "tools" / "reference" / "FFN.md"
PROGRAM = os.environ.get("MINIMIND_PROGRAM", str(ROOT / "minimind"))
INDENT = "    "
COMMAND = re.compile(rf"^{INDENT}\$ (.+)\n((?:{INDENT}(?!\$ ).*\n)*)", re.M)


class FfnPageTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "minimind").symlink_to(pathlib.Path(PROGRAM).resolve())
        (self.folder / "tests").symlink_to(ROOT / "tests")

    def output(self, command):
        done = subprocess.run(command, shell=True, cwd=self.folder, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env=os.environ | {"LC_ALL": "C.UTF-8"})
        self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")
        return "".join(f"{INDENT}{line}".rstrip() + "\n" for line in done.stdout.splitlines())

    def test_has_what_its_commands_print(self):
        page = PAGE.read_text(encoding="utf-8")
        expected = COMMAND.sub(lambda found: f"{INDENT}$ {found[1]}\n{self.output(found[1])}", page)
        if os.environ.get("MINIMIND_WRITE_PAGES"):
            PAGE.write_text(expected, encoding="utf-8")
        self.assertEqual(page, expected)

    def test_has_the_same_numbers_in_both_languages(self):
        english, chinese = PAGE.read_text(encoding="utf-8").split("\n# 前馈网络（中文）\n")
        self.assertGreater(len(COMMAND.findall(english)), 10)
        numbers = [re.findall(r"\d+(?:\.\d+)?", COMMAND.sub("", text)) for text in (english, chinese)]
        self.assertEqual(*numbers)
        calls = [[found[0].replace(" --lang zh", "") for found in COMMAND.findall(text)] for text in (english, chinese)]
        self.assertEqual(*calls)


if __name__ == "__main__":
    unittest.main()
