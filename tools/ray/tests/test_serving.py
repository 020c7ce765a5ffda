"""Tests of serving.py with Ray's local cluster. Run: make test-ray"""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import signal
import sys
import threading
import time
import unittest

import ray
from cluster import DEMO, HERE, ROOT, start_cluster
from ray import serve

PROGRAM = os.environ.get("MINIMIND_PROGRAM", str(ROOT / "minimind"))
PORT = 18000
sys.path.insert(0, str(HERE.parent))
import serving  # noqa: E402


def request(method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=120)
    data = json.dumps(body) if body is not None else None
    connection.request(method, path, data, {"Content-Type": "application/json"} if data else {})
    return connection.getresponse()


def completion(**fields):
    return request("POST", "/v1/completions", {"prompt": "春天", "max_tokens": 12, "temperature": 0, **fields})


def text_of(answer):
    return json.loads(answer.read())["choices"][0]["text"]


class Serve(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        start_cluster(8, include_dashboard=False)
        serve.start(http_options={"host": "127.0.0.1", "port": PORT})

    @classmethod
    def tearDownClass(cls):
        serve.shutdown()
        ray.shutdown()

    def deploy(self, replicas=1, **arguments):
        arguments = {"model": DEMO, "program": PROGRAM, "replicas": str(replicas), **arguments}
        serve.run(serving.app(arguments))

    def test_texts_are_the_same_for_any_number_of_replicas(self):
        texts = []
        for replicas in (1, 2, 3):
            self.deploy(replicas)
            texts += [text_of(completion()) for _ in range(2 * replicas)]
        self.assertEqual(len(set(texts)), 1)
        self.assertEqual(json.loads(request("GET", "/v1/models").read())["data"][0]["object"], "model")
        self.assertEqual(request("GET", "/health").status, 200)

    def test_errors_pass_through(self):
        self.deploy()
        answer = completion(top_p=3)
        self.assertEqual(answer.status, 400)
        self.assertIn("top_p", json.loads(answer.read())["error"]["message"])
        self.assertEqual(request("GET", "/nowhere").status, 404)
        for end in ("", "/"):
            self.assertEqual(request("POST", "/update_weights_from_disk" + end, {"model_path": DEMO}).status, 403)

    def test_streams_arrive_as_they_are_written(self):
        self.deploy()
        answer = completion(stream=True, max_tokens=400, ignore_eos=True)
        self.assertTrue(answer.getheader("Content-Type").startswith("text/event-stream"))
        arrivals = []
        while line := answer.readline():
            if line.startswith(b"data: {"):
                arrivals.append(time.monotonic())
        self.assertGreater(len(arrivals), 20)
        first, last = arrivals[0], arrivals[-1]
        self.assertGreater(sum(first < arrival < last - 0.2 * (last - first) for arrival in arrivals), len(arrivals) / 4)

    def test_a_full_queue_is_429(self):
        self.deploy(options="--parallel 1 --queue 1")
        statuses = []
        threads = [
            threading.Thread(target=lambda: statuses.append(completion(max_tokens=600, ignore_eos=True).status))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(set(statuses)), [200, 429])

    def test_a_client_that_leaves_ends_its_text(self):
        self.deploy(options="--parallel 1 --queue 1")
        answer = completion(stream=True, max_tokens=30000, ignore_eos=True)
        answer.readline()
        answer.close()
        start = time.monotonic()
        self.assertEqual(completion().status, 200)  # is not behind the other
        self.assertLess(time.monotonic() - start, 10)

    def test_an_update_fails_no_request(self):
        self.deploy(2)
        statuses, stop = [], threading.Event()
        self.addCleanup(stop.set)

        def ask():
            while not stop.is_set():
                answer = completion(max_tokens=60, stream=True, ignore_eos=True)
                text = answer.read()
                statuses.append((answer.status, text.rstrip().endswith(b"data: [DONE]")))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        self.deploy(2, options="--type q8_0")
        updated, deadline = len(statuses), time.monotonic() + 60
        while len(statuses) <= updated + 8:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(set(statuses), {(200, True)})

    def test_a_dead_server_is_replaced(self):
        self.deploy(1)
        servers = [
            int(entry) for entry in os.listdir("/proc") if entry.isdigit() and PROGRAM.encode() in command_of(entry)
            and b"serve" in command_of(entry)
        ]  # fmt: skip
        os.kill(servers[-1], signal.SIGKILL)
        deadline = time.monotonic() + 60
        while completion().status != 200:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.5)


def command_of(pid):
    try:
        return pathlib.Path("/proc", pid, "cmdline").read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    unittest.main()
