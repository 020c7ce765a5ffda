import argparse
import contextlib
import io
import json
import types
import unittest

from many_texts import BEGIN, BUSY, END, PAGE, README, RESULTS, busy_table, table, texts_of, updated, updated_readme
from peer import fill, measure_many
from table import json_text, name_of, with_kept


class Recorder:
    """An engine that records the calls."""

    vocab_size = 10

    def __init__(self):
        self.calls = []

    def open(self, positions: int, texts: int) -> None:
        self.calls.append(("open", positions, texts))

    def run(self, tokens: list[int]) -> None:
        self.calls.append(("run", len(tokens)))

    def copy_first(self) -> None:
        self.calls.append(("copy_first",))

    def rewind(self, position: int) -> None:
        self.calls.append(("rewind", position))

    def batch(self, tokens: list[int], position: int) -> tuple:
        return len(tokens), position

    def decode(self, batch: tuple) -> None:
        self.calls.append(("decode", *batch))


class ManyTexts(unittest.TestCase):
    def test_each_step_decodes_a_token_of_every_text_after_the_prompt(self):
        engine = Recorder()
        options = argparse.Namespace(prompt=0, depths=[5], decode=3, parallel=[4], repetitions=1)
        (result,) = measure_many(engine, options)
        warm_up = [("decode", 4, 5), ("decode", 4, 6), ("rewind", 5)]
        steps = [("decode", 4, 5), ("decode", 4, 6), ("decode", 4, 7), ("rewind", 5)]
        self.assertEqual(engine.calls, [("open", 8, 4), ("run", 5), ("copy_first",), *warm_up, *steps])
        self.assertEqual(name_of(result), "4 x decode 3 after 5")
        self.assertEqual(len(result["tokens_per_second"]["samples"]), 1)

    def test_a_batch_has_a_token_of_each_text_at_one_position(self):
        empty = types.SimpleNamespace(token=[0, 0], pos=[0, 0], logits=[0, 0], n_seq_id=[0, 0], seq_id=[[9], [9]])
        batch = fill(empty, [7, 8], 5)
        self.assertEqual((batch.n_tokens, batch.token, batch.pos), (2, [7, 8], [5, 5]))
        self.assertEqual((batch.n_seq_id, batch.seq_id, batch.logits), ([1, 1], [[0], [1]], [1, 1]))

    def test_the_name_of_a_test_tells_the_number_of_texts(self):
        self.assertEqual(texts_of("decode 16 after 1,024"), (1, "decode 16 after 1,024"))
        self.assertEqual(texts_of("32 x decode 16"), (32, "decode 16"))

    def test_texts_are_columns(self):
        rows = [{"model": "3", "type": "f16", "test": test, "medians": {"minimind": ours, "llama.cpp": 2}}
                for test, ours in (("decode 16", 3), ("8 x decode 16", 8))]
        self.assertEqual(table({"versions": {"llama.cpp": "1"}, "results": rows}).splitlines(), [
            "| model, type | each text | texts: | 1 | 8 |",
            "|---|---|---|---|---|",
            "| 3 f16 | decode 16 | minimind | 3 | 8 |",
            "| 3 f16 | decode 16 | llama.cpp | 2 | 2 |",
            "| 3 f16 | decode 16 | **minimind / best peer** | **1.50** | **4.00** |",
        ])

    def test_other_tests_of_the_same_machine_are_kept(self):
        def report(machine: str, test: str, speed: float) -> dict:
            same = {key: 1 for key in ("cores", "threads", "kernels", "samples", "rounds", "versions")}
            row = {"model": "3", "type": "f16", "test": test, "medians": {"minimind": speed}}
            return same | {"machine": machine, "commands": [test], "not_loaded": [], "results": [row]}

        both = with_kept(report("A", "decode 2", 2), report("A", "decode 1", 1))
        self.assertEqual([row["test"] for row in both["results"]], ["decode 1", "decode 2"])
        again = with_kept(report("A", "decode 1", 3), both)
        self.assertEqual([row["medians"]["minimind"] for row in again["results"]], [2, 3])
        self.assertEqual(json.loads(json_text(again)), again)
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            with_kept(report("B", "decode 2", 2), both)

    def test_the_pages_have_the_tables_of_the_committed_measurements(self):
        page, readme = PAGE.read_text(), README.read_text()
        measured, busy = json.loads(RESULTS.read_text()), json.loads(BUSY.read_text())
        self.assertLess(page.index(BEGIN), page.index(END))
        self.assertEqual(page, updated(page, measured), "run python3 tools/bench_peers/many_texts.py")
        self.assertEqual(readme, updated_readme(readme, measured, busy), "run python3 tools/bench_peers/many_texts.py")

    def test_a_busy_machine_is_compared_with_the_quiet_one(self):
        report = {"results": [{"test": "decode 128", "medians": {"minimind": 800, "llama.cpp": 200}},
                              {"test": "decode 128 beside 2 busy", "medians": {"minimind": 400, "llama.cpp": 20}}]}
        self.assertEqual(busy_table(report, False).splitlines()[2:], ["| minimind | 800 | 400 (0.50) |", "| llama.cpp | 200 | 20 (0.10) |"])


if __name__ == "__main__":
    unittest.main()
