"""The shared parts of the programs that measure a peer: arguments, tests, and results in the form of `minimind bench --json`.

All engines are timed in the same way. Needs only Python.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from typing import NoReturn, Protocol

WARM_UP = {"prompt": 32, "decode": 2}  # untimed tokens before each measurement, as many as minimind bench runs
CANNOT_LOAD = 3  # exit status if the engine does not support the model


class Engine(Protocol):
    """A model with a KV cache."""

    vocab_size: int

    def rewind(self, position: int) -> None:
        """Truncates the cache to the first `position` tokens."""

    def run(self, tokens: list[int]) -> object:
        """Runs the tokens after those in the cache and computes the logits of the last."""


class ManyTexts(Engine, Protocol):
    """A model with a KV cache for each of several texts, all of the same length. run() continues the first text."""

    def open(self, positions: int, texts: int) -> None:
        """Makes empty caches of so many positions for so many texts."""

    def copy_first(self) -> None:
        """Copies the cache of the first text to the others."""

    def batch(self, tokens: list[int], position: int) -> object:
        """Returns a batch of one token for each text, at that position."""

    def decode(self, batch: object) -> None:
        """Runs the batch and computes the logits of all its tokens."""


def fill(batch: object, tokens: list[int], position: int) -> object:
    """Fills the arrays of a llama_batch with one token for each text, all with logits, and returns it."""
    batch.n_tokens = len(tokens)
    for text, token in enumerate(tokens):
        batch.token[text], batch.pos[text], batch.logits[text] = token, position, 1
        batch.n_seq_id[text], batch.seq_id[text][0] = 1, text
    return batch


def counts(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def arguments(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--decode", type=int, default=128)
    parser.add_argument("--depths", type=counts, default=[0])
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--parallel", type=counts, help="decode so many texts at once, and nothing else")
    return parser


def cannot_load(path: str, engine: str) -> NoReturn:
    print(f"{path}: {engine} cannot load it", file=sys.stderr)
    sys.exit(CANNOT_LOAD)


def longest_context(options: argparse.Namespace) -> int:
    return max(options.prompt, max(options.depths) + options.decode)


def timed(work: Callable[[], object], tokens: int) -> float:
    """Returns tokens per second."""
    start = time.perf_counter()
    work()
    return tokens / (time.perf_counter() - start)


def measure(engine: Engine, options: argparse.Namespace) -> list[dict]:
    rng = random.Random(1)
    tokens = [rng.randrange(engine.vocab_size) for _ in range(longest_context(options))]

    def prompt(count: int) -> Callable[[], object]:
        return lambda: engine.run(tokens[:count])

    def decode(depth: int, count: int) -> Callable[[], None]:
        singles = [[token] for token in tokens[depth : depth + count]]

        def run() -> None:
            for single in singles:
                engine.run(single)

        return run

    tests = [("prompt", options.prompt, 0)] + [("decode", options.decode, depth) for depth in options.depths]
    samples: dict[tuple, list[float]] = {test: [] for test in tests}
    for _ in range(options.repetitions):
        for test in tests:
            kind, count, depth = test
            engine.rewind(0)
            if depth:
                engine.run(tokens[:depth])
            warm_up = min(count, WARM_UP[kind])
            (prompt(warm_up) if kind == "prompt" else decode(depth, warm_up))()
            engine.rewind(depth)
            samples[test].append(timed(prompt(count) if kind == "prompt" else decode(depth, count), count))
    return [
        {"test": kind, "tokens": count, "depth": depth, "tokens_per_second": {"samples": samples[kind, count, depth]}}
        for kind, count, depth in tests
    ]


def measure_many(engine: ManyTexts, options: argparse.Namespace) -> list[dict]:
    """Measures decoding of several texts at once. Each has caches and batches of its own, made before the measurement."""
    rng = random.Random(1)
    longest = longest_context(options) + max(options.parallel)
    tokens = [rng.randrange(engine.vocab_size) for _ in range(longest)]
    results = []
    for depth in options.depths:
        for texts in options.parallel:
            end = depth + options.decode
            engine.open(end, texts)
            engine.run(tokens[:depth])
            engine.copy_first()
            # Other tokens for each text, which other experts process.
            batches = [engine.batch(tokens[position : position + texts], position) for position in range(depth, end)]

            def decode(count: int) -> None:
                for batch in batches[:count]:
                    engine.decode(batch)

            samples = []
            for _ in range(options.repetitions):
                decode(WARM_UP["decode"])
                engine.rewind(depth)
                samples.append(timed(lambda: decode(options.decode), texts * options.decode))
                engine.rewind(depth)
            results.append({"test": "decode", "tokens": options.decode, "depth": depth, "texts": texts,
                            "tokens_per_second": {"samples": samples}})
    return results


def report(version: str, engine: Engine, options: argparse.Namespace) -> None:
    results = measure_many(engine, options) if options.parallel else measure(engine, options)
    print(json.dumps({"version": version, "results": results}))
