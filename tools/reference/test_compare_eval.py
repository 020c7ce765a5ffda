"""The parts of compare_eval.py that need no checkout: python -m unittest discover -s tools/reference"""

import contextlib
import io
import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from compare_eval import CALL, Table, pieces, pieces_of_json  # noqa: E402


class Pieces(unittest.TestCase):
    def test_a_plain_answer_is_content_to_the_byte(self):
        self.assertEqual(pieces("\n a \n", False), {"thought": "", "content": "\n a \n", "calls": []})

    def test_an_open_thought_ends_at_its_tag_or_with_the_answer(self):
        self.assertEqual(pieces("x\n</think>\n\ny", True), {"thought": "x", "content": "y", "calls": []})
        self.assertEqual(pieces("x", True), {"thought": "x", "content": "", "calls": []})

    def test_calls_are_taken_out(self):
        call = {"name": "weather", "arguments": {"city": "北京"}}
        self.assertEqual(pieces("a\n" + CALL, False), {"thought": "", "content": "a", "calls": [call]})

    def test_a_line_of_json_has_the_same_form(self):
        call = {"function": {"name": "f", "arguments": '{"a": 1}'}}
        line = json.dumps({"content": "y", "reasoning_content": "x", "tool_calls": [call]})
        expected = {"thought": "x", "content": "y", "calls": [{"name": "f", "arguments": {"a": 1}}]}
        self.assertEqual(pieces_of_json(line), expected)


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
