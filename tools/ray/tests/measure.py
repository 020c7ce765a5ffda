"""Measures what Ray costs on one machine: python measure.py [--model M] [--rows 600] [--program minimind]

Prints the time of a request and of each further token of a stream, asked of a `minimind serve` and of the same through Ray Serve,
in turns; then tokens per second of `minimind batch` and of batch.py with one worker, both with as many threads as there are cores
and without the time to start.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import ray
from cluster import DEMO, HERE, ROOT, start_cluster
from ray import serve

sys.path.insert(0, str(HERE.parent))
import batch  # noqa: E402
import serving  # noqa: E402

TOKENS = 200


def seconds(port: int, tokens: int) -> float:
    body = {"prompt": "春天", "max_tokens": tokens, "temperature": 0, "stream": True, "ignore_eos": True}
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    connection.getresponse().read()
    return time.perf_counter() - start


def measure_serving(options: argparse.Namespace, threads: int) -> None:
    command = [options.program, "serve", "-q", "-m", options.model, "--port", "18001", "-t", str(threads)]
    direct = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    start_ray(threads)
    serve.start(http_options={"host": "127.0.0.1", "port": 18002})
    serve.run(serving.app({"model": options.model, "program": options.program, "threads": str(threads)}))
    times = {(port, tokens): [] for port in (18001, 18002) for tokens in (1, TOKENS)}
    for round_ in range(21):
        for (port, tokens), found in times.items():
            found.append(seconds(port, tokens))
    one, many = ({port: statistics.median(times[port, tokens][1:]) for port in (18001, 18002)} for tokens in (1, TOKENS))
    for name, port in (("minimind serve", 18001), ("Ray Serve", 18002)):
        token = (many[port] - one[port]) / (TOKENS - 1)
        print(f"{name:<15} request {1e3 * one[port]:7.2f} ms   token {1e6 * token:8.1f} us")
    direct.terminate()
    serve.shutdown()
    ray.shutdown()


def write_requests(path: str, count: int) -> None:
    titles = "山居 秋夜 春雨 江雪 松风 月夜 落花 古寺".split()
    with open(path, "w") as file:
        for i in range(count):
            body = {"prompt": f"{titles[i % 8]}{i}", "max_tokens": 100, "ignore_eos": True, "seed": i}
            file.write(json.dumps({"custom_id": f"r{i}", "method": "POST", "url": "/v1/completions", "body": body}) + "\n")


def measure_batch(options: argparse.Namespace, threads: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        one, all_, output = (str(pathlib.Path(folder, name)) for name in ("one.jsonl", "all.jsonl", "out.jsonl"))
        write_requests(one, 1)
        write_requests(all_, options.rows)

        def by_program(source: str) -> float:
            pathlib.Path(output).unlink(missing_ok=True)
            command = [options.program, "batch", source, "-q", "-m", options.model, "-o", output, "-t", str(threads)]
            command += ["--tokenizer", options.tokenizer] if options.tokenizer else []
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            return time.perf_counter() - start

        def by_ray(source: str) -> float:
            start = time.perf_counter()
            arguments = ["--model", options.model, *(["--tokenizer", options.tokenizer] if options.tokenizer else [])]
            results = batch.answer(source, arguments, workers=1, threads=threads, rows=options.rows)
            assert not any(errors for _, errors in results)
            return time.perf_counter() - start

        for _ in range(options.rounds):
            tokens = 100 * (options.rows - 1)
            program = tokens / (by_program(all_) - by_program(one))
            start_ray(threads)
            startup = by_ray(one)
            ours = tokens / (by_ray(all_) - startup)
            print(f"minimind batch {program:8.0f} tokens/s   batch.py {ours:8.0f} tokens/s   ratio {ours / program:.2f}   "
                  f"to start Ray's workers {startup:.1f} s", flush=True)  # fmt: skip
            ray.shutdown()


def start_ray(threads: int) -> None:
    start_cluster(threads, include_dashboard=False, logging_level="warning")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=DEMO)
    parser.add_argument("--tokenizer")
    parser.add_argument("--program", default=str(ROOT / "minimind"))
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=("serving", "batch"))
    options = parser.parse_args()
    os.environ.setdefault("RAY_worker_niceness", "0")
    threads = len(os.sched_getaffinity(0))
    if options.only != "batch":
        measure_serving(options, threads)
    if options.only != "serving":
        measure_batch(options, threads)


if __name__ == "__main__":
    main()
