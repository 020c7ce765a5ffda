"""Measures how long `minimind serve` lets others wait under full load: python3 tools/bench_peers/serve_delays.py --help

"health": the time of GET /health on a new connection, while as many clients as the server runs at once stream texts, and while
long prompts come in, too. "freed": the time from a client's disconnect until no text of its own runs, by /metrics, in the middle
of its answer and in the middle of its prompt, alone and next to other clients. Prints a Markdown table. Needs only Python.
"""

import argparse
import multiprocessing
import random
import re
import socket
import time
from pathlib import Path

import load
import serve_peers
from table import between

PARALLEL = 16
PROMPT = 6000  # tokens of a long prompt
INTERVAL = 0.02  # seconds between requests of /health
BEGIN, END = "<!-- serve_delays.py writes from here -->\n", "<!-- to here, serve_delays.py -->\n"


def ask(port: int, path: str) -> tuple[float, bytes]:
    """Returns the seconds that GET takes on a new connection, and its answer."""
    begin = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while piece := connection.recv(1 << 16):
            answer += piece
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"the server answers {answer[:100]!r} to {path}")
    return time.perf_counter() - begin, answer


def running(port: int) -> int:
    return int(re.search(rb"^minimind_texts_running (\d+)", ask(port, "/metrics")[1], re.M)[1])


def wait_for(port: int, texts: int) -> None:
    while running(port) != texts:
        time.sleep(0.001)


def body(rng: random.Random, prompt: int, tokens: int) -> dict:
    ids = [rng.randrange(serve_peers.FIRST_TOKEN_ID, serve_peers.VOCABULARY) for _ in range(prompt)]
    return {"prompt": ids, "max_tokens": tokens, "stream": True, "stream_options": {"include_usage": True},
            **serve_peers.SAMPLING}


class Load:
    """Clients in a process of their own, which stream without an end."""

    def __init__(self, port: int, clients: int, prompt: int = 24, tokens: int = 20000):
        bodies = [[body(random.Random(index), prompt, tokens) for _ in range(100)] for index in range(clients)]
        self.process = multiprocessing.Process(target=load.run, args=(port, "/v1/completions", bodies), daemon=True)
        self.process.start()

    def stop(self) -> None:
        self.process.kill()
        self.process.join()


def health(port: int, seconds: float) -> list[float]:
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        times.append(ask(port, "/health")[0])
        time.sleep(INTERVAL)
    return times


def freed(port: int, others: int, prompt: int, tokens: int, rng: random.Random) -> float:
    """Returns the seconds until the place of a client is free that disconnects at some moment."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(load.request("/v1/completions", body(rng, prompt, tokens)))
    wait_for(port, others + 1)
    time.sleep(rng.uniform(0.02, 0.12))
    if running(port) != others + 1:
        raise RuntimeError("the text has ended before its client disconnects; the model is too fast for this prompt")
    begin = time.perf_counter()
    connection.close()
    wait_for(port, others)
    return time.perf_counter() - begin


def summary(times: list[float]) -> dict[str, float]:
    found = {**load.percentiles(times), "worst": max(times)}
    return {name: round(1e3 * value, 2) for name, value in found.items()}


def measure(options: argparse.Namespace, gguf: Path) -> dict[str, dict]:
    options.clients, options.tokens = [PARALLEL], 64
    server = serve_peers.Server(serve_peers.OURS, options, gguf)
    rng = random.Random(1)
    found = {}
    try:
        for name, prompts in ((f"health, {PARALLEL} streams", 0), (f"health, {PARALLEL - 4} streams and 4 long prompts", 4)):
            loads = [Load(server.port, PARALLEL - prompts)] + [Load(server.port, 1, PROMPT, 4) for _ in range(prompts)]
            time.sleep(0.5)
            found[name] = summary(health(server.port, options.seconds))
            for each in loads:
                each.stop()
            wait_for(server.port, 0)
        for others in (0, 8):
            others_load = Load(server.port, others) if others else None
            wait_for(server.port, others)
            for name, prompt, tokens in (("decoding", 24, 20000), ("in the prompt", PROMPT, 4)):
                times = [freed(server.port, others, prompt, tokens, rng) for _ in range(options.disconnects)]
                found[f"freed, {name}" + (f", next to {others}" if others else "")] = summary(times)
            if others_load:
                others_load.stop()
    finally:
        server.stop()
    return found


def table(report: dict) -> str:
    lines = ["| model | wait | p50, ms | p99, ms | longest, ms |", "|---|---|---|---|---|"]
    for model, waits in report["models"].items():
        lines += [f"| {model} | {name} | {times['p50']:.1f} | {times['p99']:.1f} | {times['worst']:.1f} |"
                  for name, times in waits.items()]
    return "\n".join(lines)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+", help="GGUF files with a tokenizer")
    parser.add_argument("--program", type=Path, default=serve_peers.ROOT / "minimind")
    parser.add_argument("--threads", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement of /health")
    parser.add_argument("--disconnects", type=int, default=40)
    parser.add_argument("--page", type=Path, help="replace the table between the markers of this page")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    report = {"models": {}}
    for gguf in options.models:
        report["models"][gguf.stem] = measure(options, gguf)
    print(table(report))
    if options.page:
        options.page.write_text(between(options.page.read_text(), BEGIN, table(report) + "\n", END))


if __name__ == "__main__":
    main()
