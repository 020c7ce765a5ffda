"""Tests the tables of serve_peers.py and serve_delays.py, and the requests that they send."""

import random
import unittest

import load
import serve_delays
import serve_peers
from serve_peers import BEGIN, END, FIRST_TOKEN_ID, LLAMA, OURS, VOCABULARY


def test_of(speed):
    return {"tokens_per_second": speed, "first_ms": {"p50": 1.0, "p99": 2.0}, "between_ms": {"mean": 0.5, "p99": 1.5}}


def engine(speed):
    return {"start_seconds": 0.12, "memory_mb": 587, "tests": {"1 short": {**test_of(speed), "decoded_per_second": speed}}}


REPORT = {"machine": {"machine": "A", "cores": 2, "kernels": "avx2"}, "threads": 2, "date": "2026-01-01", "tokens": 96,
          "requests": 2, "rounds": 3,
          "models": {"3-q8_0": {OURS: engine(900.0), LLAMA: engine(300.0), "bench_tokens_per_second": 1000.0}}}


class ServePeersTest(unittest.TestCase):
    def test_prompts_share_their_prefix_and_nothing_else(self):
        clients = serve_peers.bodies(random.Random(1), 1000, 4, 2, 96)
        prompts = [body["prompt"] for client in clients for body in client]
        self.assertEqual(len(prompts), 8)
        self.assertEqual(len({tuple(prompt[:1000]) for prompt in prompts}), 1)
        self.assertEqual(len({tuple(prompt[1000:]) for prompt in prompts}), 8)
        self.assertTrue(all(FIRST_TOKEN_ID <= token < VOCABULARY for prompt in prompts for token in prompt))

    def test_medians_of_every_number(self):
        reports = [{"a": 1.0, "b": {"c": 5}}, {"a": 3.0, "b": {"c": 7}}, {"a": 2.0, "b": {"c": 6}}]
        self.assertEqual(serve_peers.median_of(reports), {"a": 2.0, "b": {"c": 6}})

    def test_decoding_leaves_the_first_text_out(self):
        piece = b'data: {"choices": [{"text": "a"}]}\n\n'
        answer = load.Answer(0.0, [(1.0, piece), (1.5, piece), (2.0, piece)])
        self.assertEqual(serve_peers.decoding([answer], 3), 2.0)

    def test_the_table_has_ratios_latencies_memory_and_start(self):
        table = serve_peers.table(REPORT)
        self.assertIn("| 3-q8_0 | 1 short | 900 | 300 | **3.00** | 1.0 / 2.0 | 1.0 / 2.0 | 0.5 / 1.5 | 0.5 / 1.5 |", table)
        self.assertIn("| 3-q8_0 | 0.12 | 0.12 | 587 | 587 | 900 / 1,000 = **0.90** |", table)

    def test_the_page_changes_between_its_markers_only(self):
        page = f"before\n{BEGIN}old\n{END}after\n"
        new = serve_peers.updated(page, REPORT)
        self.assertTrue(new.startswith("before\n" + BEGIN) and new.endswith(END + "after\n"))
        self.assertNotIn("old", new)
        self.assertEqual(serve_peers.updated(new, REPORT), new)

    def test_tests_of_another_run_are_kept(self):
        earlier = {OURS: engine(100.0), LLAMA: engine(50.0), "bench_tokens_per_second": 110.0}
        later = {name: {**engine(200.0), "tests": {"8 short": test_of(200.0)}} for name in (OURS, LLAMA)}
        both = serve_peers.with_tests(earlier, later)
        self.assertEqual(list(both[OURS]["tests"]), ["1 short", "8 short"])
        self.assertEqual(both["bench_tokens_per_second"], 110.0)
        self.assertEqual(serve_peers.with_tests({}, later), later)

    def test_a_page_without_markers_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "markers"):
            serve_peers.updated("a page", REPORT)


class ServeDelaysTest(unittest.TestCase):
    def test_waits_are_in_milliseconds(self):
        waits = serve_delays.summary([0.001, 0.002, 0.005])
        self.assertEqual(waits, {"p50": 2.0, "p99": 5.0, "worst": 5.0})
        table = serve_delays.table({"models": {"3-f16": {"health": waits}}})
        self.assertIn("| 3-f16 | health | 2.0 | 5.0 | 5.0 |", table)


if __name__ == "__main__":
    unittest.main()
