"""Measures the time between tokens of `minimind serve` for many clients: python3 tools/bench_peers/token_gaps.py --help

The requests are those of serve_peers.py with short prompts. There, one token in twenty completes no character, so the time to the next
piece of text is that of two tokens. Here, answers state their token ids, and the time counts for each token of a piece. Prints the
medians of the mean, of the p99 and of their ratio, with the clients on the server's cores, and on a core of their own. Needs only Python.
"""

import argparse
import os
import random
import statistics
from pathlib import Path

import load
import serve_peers


def measure(options: argparse.Namespace, gguf: Path, server_cores: list[int], client_cores: list[int]) -> list[dict]:
    options.threads, options.clients = len(server_cores), [options.texts]
    os.sched_setaffinity(0, server_cores)  # the server inherits it
    server = serve_peers.Server(serve_peers.OURS, options, gguf)
    os.sched_setaffinity(0, client_cores)
    rng, found = random.Random(1), []
    try:
        for _ in range(options.rounds):
            clients = serve_peers.bodies(rng, 0, options.texts, 2, options.tokens)
            for client in clients:
                for body in client:
                    body["return_token_ids"] = True
            found.append(load.timing(load.run(server.port, "/v1/completions", clients)).report()["between_ms"])
    finally:
        server.stop()
    return found[1:]  # the first round warms up


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+", help="GGUF files with a tokenizer")
    parser.add_argument("--program", type=Path, default=serve_peers.ROOT / "minimind")
    parser.add_argument("--texts", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=96, help="of each answer")
    parser.add_argument("--rounds", type=int, default=6, help="the first is not counted")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if options.rounds < 2:
        parser.error(f"--rounds is {options.rounds}, expected 2 or more: the first is not counted")
    if len(cores) < 2:
        parser.error(f"{len(cores)} core is not enough, expected 2 or more: the clients get one")
    print("| model | clients | mean, ms | p99, ms | p99 / mean |\n|---|---|---|---|---|")
    for gguf in options.models:
        for place, servers, clients in (("on the server's cores", cores, cores), ("on a core of their own", cores[:-1], cores[-1:])):
            found = measure(options, gguf, servers, clients)
            mean, p99 = (statistics.median(each[name] for each in found) for name in ("mean", "p99"))
            ratio = statistics.median(each["p99"] / each["mean"] for each in found)
            print(f"| {gguf.stem} | {options.texts} {place} | {mean:.1f} | {p99:.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
