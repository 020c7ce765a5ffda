"""Measures masks of JSON Schemas on MaskBench, beside LLGuidance and xgrammar. Run: make bench-masks MASKBENCH=FOLDER

FOLDER has MaskBench's files {"schema": ..., "tests": [{"data": ..., "valid": ...}]}, as in github.com/guidance-ai/jsonschemabench.
Each engine reads all files in one process per vocabulary, by its Python package; a file in which it crashes or takes over a minute
is counted, and the next one is read by a new process. A file passes if each of its texts is judged as it should be; those of a
refused schema are not. Times are CPU time of the thread: of compiling, and for each token of each text until it is judged, of the
mask and of accepting the token, by the engine's functions for Python and less what reading the clock takes. Interruptions count
as CPU time: a file with a mask of over a millisecond is measured again, from compiling on, and the lesser time of each mask counts.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import select
import subprocess
import sys
import time
from typing import Any, Dict, List, Tuple

import numpy as np

from vocabularies import ROOT, VOCABULARIES

sys.path.insert(0, str(ROOT / "tools" / "python"))
SECONDS_PER_FILE = 60


class Minimind:
    def __init__(self, tokenizer: Any, end: int) -> None:
        from minimind_cpp import masks

        self.masks, self.vocabulary = masks, masks.Vocabulary.of(tokenizer, [end])

    def compile(self, schema: str) -> Any:
        return self.masks.Grammar(json_schema=schema)

    def start(self, grammar: Any) -> None:
        self.matcher = self.masks.Matcher(grammar, self.vocabulary)

    def mask(self) -> Any:
        return self.matcher.bits()

    def accept(self, token: int) -> bool:
        return self.matcher.accept(token) == 1

    def may_end(self) -> bool:
        return self.matcher.may_end


class LLGuidance:
    def __init__(self, tokenizer: Any, end: int) -> None:
        import llguidance
        import llguidance.numpy

        self.package = llguidance
        self.tokenizer = llguidance.LLTokenizer(tokenizer.to_str(), eos_token=end)
        self.bits = llguidance.numpy.allocate_token_bitmask(1, self.tokenizer.vocab_size)

    def compile(self, schema: str) -> Any:
        grammar = self.package.LLMatcher.grammar_from_json_schema(schema)
        self.check(self.package.LLMatcher(self.tokenizer, grammar, log_level=0))
        return grammar

    def check(self, matcher: Any) -> None:
        if matcher.is_error():
            raise ValueError(matcher.get_error())

    def start(self, grammar: Any) -> None:
        self.matcher = self.package.LLMatcher(self.tokenizer, grammar, log_level=0)

    def mask(self) -> Any:
        self.package.numpy.fill_next_token_bitmask(self.matcher, self.bits)
        return self.bits[0]

    def accept(self, token: int) -> bool:
        return self.matcher.consume_token(token)

    def may_end(self) -> bool:
        return self.matcher.is_accepting()


class XGrammar:
    def __init__(self, tokenizer: Any, end: int) -> None:
        import xgrammar
        from minimind_cpp import masks

        tokens = masks._bytes_of_tokens(json.loads(tokenizer.to_str()))
        info = xgrammar.TokenizerInfo(tokens, stop_token_ids=[end])
        self.package, self.end = xgrammar, end
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.bits = xgrammar.allocate_token_bitmask(1, info.vocab_size)

    def compile(self, schema: str) -> Any:
        return self.compiler.compile_json_schema(schema, strict_mode=False)

    def start(self, grammar: Any) -> None:
        self.matcher = self.package.GrammarMatcher(grammar)

    def mask(self) -> Any:
        self.matcher.fill_next_token_bitmask(self.bits)
        return self.bits[0].numpy()

    def accept(self, token: int) -> bool:
        return self.matcher.accept_token(token)

    def may_end(self) -> bool:
        return self.matcher.accept_token(self.end)


ENGINES = {"minimind": Minimind, "LLGuidance": LLGuidance, "xgrammar": XGrammar}


def time_of_clock() -> int:
    differences = [-time.thread_time_ns() + time.thread_time_ns() for _ in range(10_001)]
    return sorted(differences)[len(differences) // 2]


CLOCK = time_of_clock()


def accepts(engine: Any, grammar: Any, ids: List[int], masks: List[float]) -> bool:
    engine.start(grammar)
    for token in ids:
        start = time.thread_time_ns()
        bits = engine.mask()
        taken = engine.accept(token)
        masks.append(max(time.thread_time_ns() - start - CLOCK, 0) / 1e3)
        if taken != bool(bits[token // 32] >> token % 32 & 1):
            raise ValueError("the mask and accept differ")
        if not taken:
            return False
    return engine.may_end()


def measure(engine: Any, tokenizer: Any, file: Dict[str, Any]) -> Dict[str, Any]:
    schema = json.dumps(file["schema"], ensure_ascii=False)
    result: Dict[str, Any] = {"masks": [], "wrong": []}
    start = time.process_time_ns()
    try:
        grammar = engine.compile(schema)
    except Exception as error:
        return {**result, "wrong": len(file["tests"]) * ["unjudged"], "refused": str(error)[:200]}
    result["compile"] = (time.process_time_ns() - start) / 1e3
    for test in file["tests"]:
        ids = tokenizer.encode(json.dumps(test["data"], ensure_ascii=False), add_special_tokens=False).ids
        try:
            accepted = accepts(engine, grammar, ids, result["masks"])
        except Exception as error:
            result["failed"], accepted = str(error)[:200], False
        if accepted != test["valid"]:
            result["wrong"].append("accept" if accepted else "reject")
    return result


def measure_twice_if_slow(engine: Any, tokenizer: Any, file: Dict[str, Any]) -> Dict[str, Any]:
    result = measure(engine, tokenizer, file)
    if max(result["masks"], default=0) < 1000:
        return result
    again = measure(engine, tokenizer, file)["masks"]
    if len(again) == len(result["masks"]):
        result["masks"] = [min(times) for times in zip(result["masks"], again)]
    return result


def work(engine_name: str, vocabulary: str) -> None:
    """Reads names of files, and writes a line of JSON for each."""
    tokenizer, end = VOCABULARIES[vocabulary]()
    engine = ENGINES[engine_name](tokenizer, end)
    for line in sys.stdin:
        file = json.loads(pathlib.Path(line.rstrip("\n")).read_text())
        print(json.dumps(measure_twice_if_slow(engine, tokenizer, file)), flush=True)


class Worker:
    """A process of an engine, started again after a file in which it ends or takes too long."""

    def __init__(self, engine: str, vocabulary: str) -> None:
        self.command = [sys.executable, __file__, "--work", engine, vocabulary]
        self.process: Any = None

    def measure(self, file: pathlib.Path) -> Dict[str, Any]:
        if self.process is None:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            limit = 10 * SECONDS_PER_FILE  # with the vocabulary
        else:
            limit = SECONDS_PER_FILE
        print(file, file=self.process.stdin, flush=True)
        if select.select([self.process.stdout], [], [], limit)[0]:
            line = self.process.stdout.readline()
            if line:
                result: Dict[str, Any] = json.loads(line)
                return result
        self.process.kill()
        self.process.wait()
        self.process = None
        return {"masks": [], "wrong": [], "crashed": True}


def percentiles(values: List[float]) -> List[str]:
    if not values:
        return 4 * ["-"]
    chosen = [*np.percentile(values, [50, 99, 99.9], method="inverted_cdf"), max(values)]
    return [f"{value:,.1f}" if value < 100 else f"{value:,.0f}" for value in chosen]


def row(engine: str, vocabulary: str, results: List[Tuple[str, Dict[str, Any]]]) -> List[str]:
    of_each = [result for _, result in results]
    wrong = [set(result["wrong"]) for result in of_each]
    compiled = [result for result in of_each if "compile" in result]
    passes = sum(not result["wrong"] and "crashed" not in result for result in of_each)
    counts = [
        passes, sum("refused" in result for result in of_each), sum("crashed" in result for result in of_each),
        sum("accept" in of_file for of_file in wrong), sum("reject" in of_file for of_file in wrong),
    ]  # fmt: skip
    compile_times = [result["compile"] for result in compiled]
    masks = [time for result in of_each for time in result["masks"]]
    return [vocabulary, engine, *(f"{count:,}" for count in counts), *percentiles(compile_times), *percentiles(masks)]


HEAD = ["tokens", "engine", "passes", "refused", "crashed", "false accepts", "false rejects"]
HEAD += [f"{what} {part}" for what in ("compile", "mask") for part in ("p50", "p99", "p99.9", "max")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--engines", default=",".join(ENGINES), help="of " + ", ".join(ENGINES))
    parser.add_argument("--every", type=int, default=1, help="measure one of so many files")
    parser.add_argument("--vocabularies", type=int, default=len(VOCABULARIES), help="the first so many")
    parser.add_argument("--slowest", type=int, default=0, help="also name so many files by their slowest mask, and what is not passed")
    options = parser.parse_args()
    for engine in options.engines.split(","):
        if engine not in ENGINES:
            parser.error(f"--engines has {engine}, expected {', '.join(ENGINES)}")
    files = sorted(options.folder.rglob("*.json"))[:: options.every]
    if not files:
        parser.error(f"{options.folder}: has no .json files, expected those of MaskBench")
    print(f"{len(files):,} files; times in microseconds\n\n| {' | '.join(HEAD)} |\n|{len(HEAD) * '---|'}", flush=True)
    for vocabulary in list(VOCABULARIES)[: options.vocabularies]:
        for engine in options.engines.split(","):
            worker = Worker(engine, vocabulary)
            results = [(file.stem, worker.measure(file)) for file in files]
            print(f"| {' | '.join(row(engine, vocabulary, results))} |", flush=True)
            results.sort(key=lambda result: -max(result[1]["masks"], default=0))
            for name, result in results[: options.slowest]:
                print(f"{name}: {max(result['masks'], default=0):,.0f}", file=sys.stderr)
            for name, result in results if options.slowest else []:
                if result["wrong"] or "refused" in result or "failed" in result or "crashed" in result:
                    print(name, {key: value for key, value in result.items() if key != "masks"}, file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:])
    else:
        main()
