"""Tests the parts of compare_eval.py that need no checkout: python -m unittest discover -s tools/reference"""

import contextlib
import io
import struct
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from compare_eval import Table, has_tags, tokens_of_session  # noqa: E402


class Session(unittest.TestCase):
    def test_the_tokens_follow_the_header(self):
        header = b'{"messages": []}'
        session = b"minimind session" + struct.pack("<IQ", 2, len(header)) + header + struct.pack("<Q3i", 3, 1, 6399, 2)
        self.assertEqual(tokens_of_session(session + b"keys and values"), [1, 6399, 2])

    def test_tags_are_found_anywhere(self):
        self.assertTrue(has_tags("a</think>b"))
        self.assertFalse(has_tags("a <b> think"))


class Rows(unittest.TestCase):
    def test_a_difference_or_a_missing_answer_fails(self):
        table = Table()
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            table.row("same", ["a"], ["a"])
            self.assertEqual(table.failed, 0)
            table.row("other", ["a", "b"], ["a", "c"])
            table.row("short", ["a"], [])
        self.assertEqual(table.failed, 2)
        self.assertIn("DIFFERS  other", printed.getvalue())


if __name__ == "__main__":
    unittest.main()
