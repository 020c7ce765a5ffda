"""Tests of batch.py with Ray's local cluster. Run: make test-ray"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import pyarrow as pa
import pyarrow.parquet
import ray
from cluster import DEMO, HERE, ROOT, start_cluster
from ray.util.state import list_actors

PROGRAM = os.environ.get("MINIMIND_PROGRAM", str(ROOT / "minimind"))
sys.path.insert(0, str(HERE.parent))
import batch  # noqa: E402

TITLES = ("山居", "秋夜", "春雨", "江雪", "松风", "月夜", "落花", "古寺")


def requests(count):
    for i in range(count):
        message = {"role": "user", "content": f"写一首七言绝句，题目：{TITLES[i % len(TITLES)]}"}
        body = {"messages": [message]} if i % 3 else {"prompt": TITLES[i % len(TITLES)]}
        url = "/v1/chat/completions" if "messages" in body else "/v1/completions"
        yield {"custom_id": f"r{i}", "method": "POST", "url": url, "body": body | {"max_tokens": 12 + i % 7}}


def text_of(result):
    return result["text"] if result.get("text") is not None else result["message"]["content"]


class Batch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        start_cluster(4, include_dashboard=True)
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        cls.folder = tempfile.TemporaryDirectory()
        cls.input = str(pathlib.Path(cls.folder.name, "in.jsonl"))
        cls.write(requests(60))

    @classmethod
    def tearDownClass(cls):
        ray.shutdown()
        cls.folder.cleanup()

    @classmethod
    def write(cls, rows):
        lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
        pathlib.Path(cls.input).write_text("".join(line + "\n" for line in lines))

    def answer(self, workers, **options):
        results = batch.answer(batch.read(self.input, workers), DEMO, workers=workers, batch_rows=8, **options)
        return [json.loads(line) for line in batch.lines_of(results)]

    def test_texts_are_those_of_minimind_batch_whatever_the_workers(self):
        output = pathlib.Path(self.folder.name, "out.jsonl")
        command = [PROGRAM, "batch", self.input, "-q", "--greedy", "-m", DEMO, "-o", output]
        subprocess.run(command, check=True, capture_output=True)
        choices = [json.loads(line)["response"]["body"]["choices"][0] for line in output.read_text().splitlines()]
        for workers in (1, 2, 3):
            results = self.answer(workers, temperature=0)
            self.assertEqual([result["custom_id"] for result in results], [f"r{i}" for i in range(60)])
            for result, choice in zip(results, choices):
                self.assertEqual(result["finish_reason"], choice["finish_reason"])
                self.assertEqual(text_of(result), text_of(choice))

    def test_sampled_texts_depend_on_the_request_and_the_seed_alone(self):
        first, second, other = self.answer(1, seed=3), self.answer(3, seed=3), self.answer(2, seed=4)
        self.assertEqual(first, second)
        self.assertNotEqual(first, other)

    def test_a_killed_worker_loses_and_repeats_no_request(self):
        rows = list(requests(240))
        self.write(rows)
        self.addCleanup(self.write, requests(60))
        killed = []

        def kill_one():
            deadline = time.monotonic() + 90
            while time.monotonic() < deadline and not killed:
                time.sleep(0.3)
                workers = [actor for actor in list_actors(detail=True) if "Worker" in actor.class_name and actor.state == "ALIVE"]
                pids = [actor.pid for actor in workers if "MapBatches" in actor.class_name]
                if pids:
                    time.sleep(0.5)  # in the middle of its rows
                    os.kill(pids[0], signal.SIGKILL)
                    killed.append(pids[0])

        killer = threading.Thread(target=kill_one)
        killer.start()
        results = self.answer(2, temperature=0, ignore_eos=True, max_tokens=100)
        killer.join()
        self.assertEqual(len(killed), 1)
        self.assertEqual([result["custom_id"] for result in results], [row["custom_id"] for row in rows])
        self.assertFalse([result for result in results if "error" in result])

    def test_a_bad_request_has_an_error_and_the_others_their_text(self):
        self.write(["not JSON", {"body": {"prompt": "a"}}, {"custom_id": "b", "body": {}}, *requests(1),
                    {"custom_id": "c", "prompt": "a", "top_p": 3}, {"custom_id": "d", "prompt": "a", "unknown": 3}])  # fmt: skip
        self.addCleanup(self.write, requests(60))
        results = self.answer(1, temperature=0)
        self.assertEqual([result["custom_id"] for result in results], [None, None, "b", "r0", "c", "d"])
        self.assertEqual(["error" in result for result in results], [True, True, True, False, True, True])
        for result, word in zip(results, ("", "custom_id", "prompt or messages", "", "top", "unknown")):
            self.assertIn(word, result.get("error", ""))

    def test_parquet_in_and_out(self):
        columns = {"prompt": None, "messages": None}
        rows = [{"custom_id": row["custom_id"], **columns, **row["body"]} for row in requests(12)]
        source, target = (str(pathlib.Path(self.folder.name, name)) for name in ("in.parquet", "out"))
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), source)
        batch.write(batch.answer(batch.read(source, 1), DEMO, temperature=0), target)
        written = {row["custom_id"]: row for row in pyarrow.parquet.read_table(target).to_pylist()}
        expected = self.answer(1, temperature=0)[:12]
        for result in expected:
            row = written.pop(result["custom_id"])
            self.assertEqual(text_of(row), text_of(result))
        self.assertEqual(written, {})


if __name__ == "__main__":
    unittest.main()
