"""Compares `minimind serve` with llama.cpp's server on the same GGUF: python3 tools/bench_peers/serve_peers.py --help

Both servers run in turns, each round with the other one first, and get the same requests: streams of completions, sampled
with MiniMind's settings, of prompts that are lists of token ids. "short": each prompt differs and has 24 tokens. "prefix": 1,000
tokens that all prompts of a test share, and 24 that differ. Every client sends its requests one after the other. Prefixes are
new in each test, so that no server has them in its cache. A test is repeated if other programs were busy. Prints a Markdown table
and writes --json. Needs only Python, and llama.cpp's server: RESULTS.md tells how to build it.
"""

import argparse
import datetime
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import load
from peer import counts
from table import between

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OURS, LLAMA = "minimind", "llama.cpp"
FIRST_TOKEN_ID, VOCABULARY = 300, 6400  # without special tokens and single bytes
SHORT, PREFIX = 24, 1000
PREFIXES = {"short": 0, "prefix": PREFIX}
TICKS = os.sysconf("SC_CLK_TCK")
MOST_DISTURBED = 0.04  # of the processor time of a test, by other programs
LONGEST_WAIT = 60  # seconds, for other programs to end
SAMPLING = {"temperature": 0.85, "top_p": 0.95, "top_k": 50, "min_p": 0, "ignore_eos": True}
BEGIN, END = "<!-- serve_peers.py writes from here -->\n", "<!-- to here, serve_peers.py -->\n"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Server:
    """A running server, and the time from its start to its first answer."""

    def __init__(self, engine: str, options: argparse.Namespace, gguf: Path):
        self.port = free_port()
        threads, texts = str(options.threads), max(options.clients)
        if engine == OURS:
            command = [options.program, "serve", "-q", "-m", gguf, "--port", self.port, "-t", threads, "--parallel", texts]
        else:
            context = texts * (PREFIX + SHORT + options.tokens + 64)
            command = [options.llama_server, "-m", gguf, "--port", self.port, "-t", threads, "-np", texts, "-c", context,
                       "--no-ui"]
        begin = time.perf_counter()
        self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL,
                                        stderr=None if engine == OURS else subprocess.DEVNULL)  # llama.cpp logs every answer
        self.wait_for_first_answer()
        self.start_seconds = time.perf_counter() - begin

    def wait_for_first_answer(self) -> None:
        data = load.request("/v1/completions", {"prompt": [FIRST_TOKEN_ID], "max_tokens": 1})
        while self.process.poll() is None:
            try:
                with socket.create_connection(("127.0.0.1", self.port)) as connection:
                    connection.sendall(data)
                    if connection.recv(4096).startswith(b"HTTP/1.1 200"):
                        return
            except OSError:
                pass
            time.sleep(0.002)
        sys.exit(f"{' '.join(map(str, self.process.args))}: ended with status {self.process.returncode}")

    def memory(self) -> int:
        """Returns the peak of the resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return round(int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024 / 1e6)

    def cpu_seconds(self) -> float:
        """Returns the processor time that the server and its clients have used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / TICKS + time.process_time()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def busy_seconds() -> float:
    """Returns the processor time that all programs together have used."""
    user, nice, system, _idle, _wait, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / TICKS


def undisturbed(server: Server, clients: list[list[dict]]) -> list[list[load.Answer]]:
    """Sends the requests; again if other programs used the processor meanwhile."""
    end = time.perf_counter() + LONGEST_WAIT
    while True:
        begin, busy, own = time.perf_counter(), busy_seconds(), server.cpu_seconds()
        answers = load.run(server.port, "/v1/completions", clients)
        others = busy_seconds() - busy - (server.cpu_seconds() - own)
        if others < MOST_DISTURBED * (time.perf_counter() - begin) * (os.cpu_count() or 1):
            return answers
        if time.perf_counter() > end:
            print("other programs were busy for too long", file=sys.stderr)
            return answers
        for client in clients:  # no prefix may be in the cache
            for body in client:
                body["prompt"] = [FIRST_TOKEN_ID + (token + 1) % (VOCABULARY - FIRST_TOKEN_ID) for token in body["prompt"]]


def bodies(rng: random.Random, prefix: int, clients: int, requests: int, tokens: int) -> list[list[dict]]:
    def ids(count: int) -> list[int]:
        return [rng.randrange(FIRST_TOKEN_ID, VOCABULARY) for _ in range(count)]

    shared = ids(prefix)
    return [
        [
            {"prompt": shared + ids(SHORT), "max_tokens": tokens, "stream": True, "stream_options": {"include_usage": True},
             "seed": rng.randrange(1 << 30), **SAMPLING}
            for _ in range(requests)
        ]
        for _ in range(clients)
    ]


def measure(server: Server, options: argparse.Namespace, turn: int) -> dict[str, dict]:
    """Returns the report of each test: "8 short" and so on."""
    rng = random.Random(turn)
    load.run(server.port, "/v1/completions", bodies(rng, 0, 2, 1, 16))
    reports = {}
    for kind in options.prompts:
        prefix = PREFIXES[kind]
        for clients in options.clients:
            requests = bodies(rng, prefix, clients, options.requests, options.tokens)
            answers = undisturbed(server, requests)
            reports[f"{clients} {kind}"] = load.timing(answers).report()
            if clients == 1 and kind == "short":
                reports[f"{clients} {kind}"]["decoded_per_second"] = round(decoding(answers[0], options.tokens), 1)
    return reports


def decoding(answers: list[load.Answer], tokens: int) -> float:
    """Returns the tokens per second after the first text of each answer, as `minimind bench` counts them."""
    speeds = []
    for answer in answers:
        times = [at for at, event in answer.events() if load.text_of(event)]
        speeds.append((tokens - 1) / (times[-1] - times[0]))
    return statistics.median(speeds)


def bench(options: argparse.Namespace, gguf: Path) -> float:
    printed = subprocess.run([options.program, "bench", "--json", "-q", "-m", gguf, "-t", str(options.threads), "-p", "0", "-n",
                              str(options.tokens), "-d", str(SHORT), "-r", "3"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return statistics.median(json.loads(printed)["results"][0]["tokens_per_second"]["samples"])


def median_of(reports: list[dict]) -> dict:
    """Returns a report with the median of each number."""
    first = reports[0]
    return {
        key: median_of([report[key] for report in reports]) if isinstance(first[key], dict)
        else round(statistics.median(report[key] for report in reports), 3)
        for key in first
    }


def measure_model(options: argparse.Namespace, gguf: Path) -> dict:
    engines = [OURS, LLAMA]
    samples: dict[str, list[dict]] = {engine: [] for engine in engines}
    speeds = []
    for turn in range(options.rounds):
        for engine in engines if turn % 2 == 0 else engines[::-1]:
            print(f"round {turn + 1} of {options.rounds}: {gguf.stem} {engine}", file=sys.stderr)
            server = Server(engine, options, gguf)
            try:
                tests = measure(server, options, turn)
                samples[engine].append({"start_seconds": server.start_seconds, "memory_mb": server.memory(), "tests": tests})
            finally:
                server.stop()
            if engine == OURS and 1 in options.clients and "short" in options.prompts:
                speeds.append(bench(options, gguf))
    result = {engine: median_of(its) for engine, its in samples.items()}
    if speeds:
        result["bench_tokens_per_second"] = round(statistics.median(speeds), 1)
    return result


def table(report: dict) -> str:
    """Returns the Markdown table of all models."""
    lines = [
        "| model | clients, prompts | tokens/s | | ratio | first token p50 / p99, ms | | between pieces mean / p99, ms | |",
        "|---|---|---|---|---|---|---|---|---|",
        "| | | minimind | llama.cpp | | minimind | llama.cpp | minimind | llama.cpp |",
    ]
    for model, result in report["models"].items():
        for test, ours in result[OURS]["tests"].items():
            theirs = result[LLAMA]["tests"][test]
            speeds = [each["tokens_per_second"] for each in (ours, theirs)]
            first = [f"{each['first_ms']['p50']:,.1f} / {each['first_ms']['p99']:,.1f}" for each in (ours, theirs)]
            gaps = [f"{each['between_ms']['mean']:.1f} / {each['between_ms']['p99']:.1f}" for each in (ours, theirs)]
            lines.append(f"| {model} | {test} | {speeds[0]:,.0f} | {speeds[1]:,.0f} | **{speeds[0] / speeds[1]:.2f}** | "
                         f"{first[0]} | {first[1]} | {gaps[0]} | {gaps[1]} |")
    lines += ["", "| model | start to first answer, s | | peak memory, MB | | one client / `bench` |", "|---|---|---|---|---|---|",
              "| | minimind | llama.cpp | minimind | llama.cpp | minimind |"]
    for model, result in report["models"].items():
        ours, theirs = result[OURS], result[LLAMA]
        ratio = ""
        if speed := result.get("bench_tokens_per_second"):
            decoded = ours["tests"]["1 short"]["decoded_per_second"]
            ratio = f"{decoded:,.0f} / {speed:,.0f} = **{decoded / speed:.2f}**"
        lines.append(f"| {model} | {ours['start_seconds']:.2f} | {theirs['start_seconds']:.2f} | {ours['memory_mb']:,.0f} | "
                     f"{theirs['memory_mb']:,.0f} | {ratio} |")
    return "\n".join(lines)


def counted(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")


def section(report: dict) -> str:
    machine = report["machine"]
    rounds = "One round" if report["rounds"] == 1 else f"Medians of {report['rounds']} rounds, servers in turns"
    return "\n".join([
        table(report), "",
        f"{machine['machine'] or 'Unnamed processor'}, {machine['cores']} cores, {report['threads']} threads, {report['date']}; "
        f"minimind's {machine['kernels']} kernels. Each answer has {report['tokens']} tokens, each client sends "
        f"{counted(report['requests'], 'request')}. {rounds}. The clients run on the same cores. "
        f"Random weights in the shapes of MiniMind's models.", ""])


def updated(page: str, report: dict) -> str:
    return between(page, BEGIN, section(report), END)


def with_tests(earlier: dict, result: dict) -> dict:
    """Returns the result of a model with what an earlier one has of tests that it lacks."""
    both = earlier | result
    for engine in (OURS, LLAMA):
        old, new = earlier.get(engine, result[engine]), result[engine]
        both[engine] = new | {"tests": old["tests"] | new["tests"], "memory_mb": max(old["memory_mb"], new["memory_mb"])}
    return both


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="*", help="GGUF files with a tokenizer")
    parser.add_argument("--llama-server", type=Path, help="llama.cpp's server")
    parser.add_argument("--program", type=Path, default=ROOT / "minimind")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--clients", type=counts, default=[1, 4, 8, 16])
    parser.add_argument("--prompts", nargs="+", choices=PREFIXES, default=list(PREFIXES))
    parser.add_argument("--requests", type=int, default=2, help="of each client in a test")
    parser.add_argument("--tokens", type=int, default=96, help="of each answer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the medians to this file; other models and tests in it are kept")
    parser.add_argument("--page", type=Path, help="replace the tables between the markers of this page; without models, from --json")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    report = json.loads(options.json.read_text()) if options.json and options.json.exists() else {"models": {}}
    if options.models:
        if not options.llama_server:
            sys.exit("--llama-server is missing")
        printed = subprocess.run([options.program, "bench", "--json", "-q", "-p", "1", "-n", "0", "-r", "1"],
                                 stdout=subprocess.PIPE, text=True, check=True).stdout
        machine = {key: value for key, value in json.loads(printed).items() if key in ("machine", "cores", "kernels")}
        report |= {"machine": machine, "threads": options.threads, "date": str(datetime.date.today()), "tokens": options.tokens,
                   "requests": options.requests, "rounds": options.rounds}
        for gguf in options.models:
            models = report["models"]
            models[gguf.stem] = with_tests(models.get(gguf.stem, {}), measure_model(options, gguf))
        if options.json:
            options.json.write_text(json.dumps(report, indent=1) + "\n")
    print(section(report))
    if options.page:
        options.page.write_text(updated(options.page.read_text(), report))


if __name__ == "__main__":
    main()
