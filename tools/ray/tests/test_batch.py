"""Tests of batch.py with Ray's local cluster. Run: make test-ray"""

from __future__ import annotations

import io
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

import ray
from cluster import DEMO, HERE, ROOT, start_cluster

PROGRAM = os.environ.get("MINIMIND_PROGRAM", str(ROOT / "minimind"))
sys.path.insert(0, str(HERE.parent))
import batch  # noqa: E402

TITLES = ("山居", "秋夜", "春雨", "江雪", "松风", "月夜", "落花", "古寺")


def requests(count):
    """Of all kinds that `minimind batch` takes; every eleventh is wrong, and every seventh line is empty."""
    for i in range(count):
        message = {"role": "user", "content": f"写一首七言绝句，题目：{TITLES[i % len(TITLES)]}"}
        body = {"messages": [message]} if i % 3 else {"prompt": TITLES[i % len(TITLES)], "logprobs": 2}
        body |= {"max_tokens": 12 + i % 7, "n": 0 if i % 11 == 5 else 1 + i % 2, "model": "theirs", "user": "nobody"}
        url = "/v1/chat/completions" if "messages" in body else "/v1/completions"
        line = {"custom_id": f"r{i}", "method": "POST", "url": url, "body": body} if i % 2 else body
        yield "not JSON" if i == 10 else json.dumps(line, ensure_ascii=False)
        if i % 7 == 6:
            yield ""


class Batch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        start_cluster(4)
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.input = str(cls.path / "in.jsonl")
        pathlib.Path(cls.input).write_text("".join(line + "\n" for line in requests(60)))

    @classmethod
    def tearDownClass(cls):
        ray.shutdown()
        cls.folder.cleanup()

    def answer(self, workers, *options, rows=8):
        output, errors = io.BytesIO(), self.path / "errors"
        options = ["--model", DEMO, "--seed", "3", "--model-name", "any", *options]
        batch.write(batch.answer(self.input, options, workers=workers, threads=1, rows=rows), output, errors)
        return output.getvalue(), errors.read_bytes()

    def test_lines_are_those_of_minimind_batch_whatever_the_workers(self):
        output = self.path / "out.jsonl"
        command = [PROGRAM, "batch", self.input, "-q", "--seed", "3", "--model-name", "any", "-m", DEMO, "-o", output]
        subprocess.run(command, check=True, capture_output=True)
        expected = output.read_bytes(), pathlib.Path(f"{output}.errors").read_bytes()
        self.assertGreater(len(expected[1]), 5)
        for workers, rows in ((1, 100), (2, 8), (3, 7)):
            self.assertEqual(self.answer(workers, rows=rows), expected)

    def test_a_killed_worker_loses_and_repeats_no_request(self):
        expected = self.answer(2)
        killed = []

        def kill_one():
            deadline = time.monotonic() + 90
            while time.monotonic() < deadline and not killed:
                time.sleep(0.05)
                for folder in pathlib.Path("/proc").glob("[0-9]*"):
                    try:
                        name = (folder / "cmdline").read_bytes()
                    except OSError:
                        continue
                    if name.startswith(b"ray::answer_part"):
                        os.kill(int(folder.name), signal.SIGKILL)
                        killed.append(folder.name)
                        break

        killer = threading.Thread(target=kill_one)
        killer.start()
        self.assertEqual(self.answer(2), expected)
        killer.join()
        self.assertEqual(len(killed), 1)

    def test_a_wrong_option_is_the_message_of_the_program(self):
        with self.assertRaisesRegex(ray.exceptions.RayTaskError, "top-p is 3"):
            self.answer(1, "--top-p", "3")


if __name__ == "__main__":
    unittest.main()
