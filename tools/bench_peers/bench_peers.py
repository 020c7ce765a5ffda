"""Compares the speed of minimind, llama.cpp, ik_llama.cpp and PyTorch on the same weights: make bench-peers

Prints a Markdown table of tokens per second; --json writes the medians to a file, too. The weights are those of --models,
or random ones in the shapes of MiniMind's models: MiniMind-3 and MiniMind2-small, unless --shapes names others. Each
measurement is a separate process, in which every test is repeated after a short warm-up. The engines take turns, and
each round starts with the next engine. --parallel measures decoding of many texts at once, except with PyTorch; --busy
repeats every test beside so many processes that never wait.
"""

import argparse
import contextlib
import datetime
import importlib.util
import itertools
import json
import shlex
import subprocess
import sys
from pathlib import Path

from peer import CANNOT_LOAD, counts
from table import OURS, Measurements, beside_shared, faster, json_text, markdown, results, with_kept

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SHAPES = ["3", "2-small", "2", "3-moe", "2-moe"]
FLOATS = ["f32", "f16", "bf16"]
TYPES = FLOATS + ["q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k", "q6_k", "iq4_nl"]
IK_LLAMA_CPP = ["ik_llama.cpp"] if importlib.util.find_spec("ik_llama_cpp") else []
# compile_ik_llama_cpp.sh leaves this file.
IK_IS_NATIVE = (Path(sys.prefix) / "ik_llama.cpp" / "installed").exists()
ENGINES = [OURS, "llama.cpp", *IK_LLAMA_CPP, "PyTorch"]


class CannotLoad(Exception):
    """A peer does not support a model."""


def run(*command: object) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode == CANNOT_LOAD:
        raise CannotLoad(done.stderr.strip().splitlines()[-1])
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\nfailed: {done.stderr.strip()[-2000:]}")
    return done.stdout


@contextlib.contextmanager
def busy_processes(count: int):
    """Keeps so many processes busy, with the priority that all programs have."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def random_models(folder: Path, shapes: list[str]) -> list[Path]:
    missing = [name for name in shapes if not (folder / name / "case.json").exists()]  # written after the weights
    if missing:
        run(sys.executable, ROOT / "tools" / "reference" / "write_full_size.py", folder, *missing)
    return [folder / name for name in shapes]


class Weights:
    """A model converted for every engine."""

    def __init__(self, program: Path, model: Path, folder: Path):
        self.program, self.model, self.folder = program, model, folder
        self.name = model.name if model.is_dir() else model.stem

    def gguf(self, dtype: str) -> Path:
        path = self.folder / f"{self.name}-{dtype}.gguf"
        run(self.program, "convert", self.model, path, "--type", dtype, "--force", "-q")
        return path

    def hugging_face(self) -> Path:
        path = self.folder / f"{self.name}-hf"
        run(self.program, "convert", self.model, f"{path}/", "--type", "f32", "--force", "-q")
        return path


def parallel(options: argparse.Namespace) -> list[str]:
    return ["--parallel", ",".join(str(texts) for texts in options.parallel)] if options.parallel else []


class Engines:
    """Runs every test once with each engine; `versions` names the peers that ran."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.versions: dict[str, str] = {}

    def minimind(self, gguf: Path) -> list[dict]:
        o = self.options
        depths = ",".join(str(depth) for depth in o.depths)
        shared = ["--shared-prompt"] if o.shared_prompt else []
        printed = run(o.program, "bench", "--json", "-q", "-m", gguf, "-t", o.threads, "-p", o.prompt, "-n", o.decode,
                      "-d", depths, "-r", o.repetitions, *parallel(o), *shared)
        return json.loads(printed)["results"]

    def shared_tests(self) -> list[dict]:
        """Returns our tests of texts that share a prompt."""
        o = self.options
        return [{"test": "decode", "tokens": o.decode, "depth": depth, "texts": texts, "shared_prompt": True}
                for depth in o.depths for texts in o.parallel or [] if o.shared_prompt and depth >= 64 and texts > 1]

    def peer(self, engine: str, program: str, *arguments: object) -> list[dict]:
        o = self.options
        depths = ",".join(str(depth) for depth in o.depths)
        printed = run(sys.executable, HERE / program, *arguments, "--threads", o.threads, "--prompt", o.prompt,
                      "--decode", o.decode, "--depths", depths, "--repetitions", o.repetitions, *parallel(o))
        report = json.loads(printed)
        self.versions[engine] = report["version"]
        return beside_shared(report["results"], self.shared_tests())

    def measure(self, engine: str, gguf: Path, folder: Path, dtype: str) -> list[dict]:
        if engine == OURS:
            return self.minimind(gguf)
        if engine == "llama.cpp":
            return self.peer(engine, "llama_cpp_peer.py", gguf)
        if engine == "ik_llama.cpp":
            return self.peer(engine, "ik_llama_cpp_peer.py", gguf)
        return faster(*(self.peer(engine, "pytorch_peer.py", folder, "--dtype", each) for each in {dtype, "f32"}))


def can_run(engine: str, dtype: str) -> bool:
    return engine != "PyTorch" or dtype in FLOATS


def caption(options: argparse.Namespace, machine: dict, versions: dict[str, str], not_loaded: list[str]) -> str:
    peers = {
        "llama.cpp": "llama.cpp as in llama-cpp-python {}, compiled for this machine, with flash attention",
        "ik_llama.cpp": "ik_llama.cpp as in ik-llama-cpp-python {}, " + (
            "compiled for this machine by clang 19" if IK_IS_NATIVE else "PyPI's wheel compiled for AVX2"
        ) + ", weights repacked",
        "PyTorch": "PyTorch {}, eager, with a preallocated cache, in the type or in f32, whichever is faster",
    }
    weights = "" if options.models else " Random weights in the shapes of MiniMind's models."
    return "\n".join([
        f"{machine['machine'] or 'Unnamed processor'}, {machine['cores']} cores; threads: {options.threads}; "
        f"{datetime.date.today()}. Tokens per second, medians of {options.rounds * options.repetitions} samples in "
        f"{options.rounds} rounds, engines in turns.{weights}",
        "; ".join([f"minimind with its {machine['kernels']} kernels"]
                  + [peers[engine].format(version) for engine, version in versions.items()]
                  + not_loaded)
        + ".",
    ])


def report_json(options: argparse.Namespace, machine: dict, engines: Engines, not_loaded: list[str],
                measurements: Measurements) -> dict:
    """Returns what --json writes, in the form of results.json."""
    return {
        "machine": machine["machine"],
        "cores": machine["cores"],
        "threads": options.threads,
        "kernels": machine["kernels"],
        "date": str(datetime.date.today()),
        "unit": "tokens per second",
        "samples": options.rounds * options.repetitions,
        "rounds": options.rounds,
        "commands": [f"make bench-peers BENCH_PEERS={shlex.quote(shlex.join(sys.argv[1:]))}"],
        "versions": engines.versions,
        "not_loaded": not_loaded,
        "results": results(measurements),
    }


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, nargs="+", help="checkpoints in any format that minimind reads")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=SHAPES[:2], help="shapes of the random weights")
    parser.add_argument("--types", nargs="+", choices=TYPES, default=["f16", "q8_0", "q4_0"])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--threads", type=int, help="default: the physical cores")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--decode", type=int, default=128)
    parser.add_argument("--depths", type=counts, default=[0], help="tokens in the KV cache before decoding, e.g. 0,1024")
    parser.add_argument("--parallel", type=counts, help="numbers of texts to decode at once, e.g. 1,8,32; no prompts")
    parser.add_argument("--shared-prompt", action="store_true",
                        help="with --parallel and --depths from 64 on: minimind also with one prompt for all texts")
    parser.add_argument("--busy", type=counts, default=[0], help="numbers of busy processes beside it, e.g. 0,1,2,4")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=2, help="repetitions per round")
    parser.add_argument("--program", type=Path, default=ROOT / "minimind")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "bench-peers", help="folder for converted weights")
    parser.add_argument("--json", type=Path, help="also write the medians to this file")
    parser.add_argument("--keep", action="store_true", help="keep the other tests that the file of --json has")
    options = parser.parse_args()
    if options.parallel:
        options.prompt = 0
        options.engines = [engine for engine in options.engines if engine != "PyTorch"]
    return options


def main() -> None:
    options = parse_arguments()
    options.work.mkdir(parents=True, exist_ok=True)
    machine = json.loads(run(options.program, "bench", "--json", "-q", "-p", 1, "-n", 0, "-r", 1))
    options.threads = options.threads or machine["cores"]
    models = options.models or random_models(options.work, options.shapes)
    weights = [Weights(options.program, model, options.work) for model in models]
    ggufs = {(model, dtype): model.gguf(dtype) for model in weights for dtype in options.types}
    folders = {model: model.hugging_face() for model in weights if "PyTorch" in options.engines}

    engines, measurements = Engines(options), Measurements()
    not_loaded: dict[str, None] = {}  # in the order of the first attempts
    for turn in range(options.rounds):
        for ((model, dtype), gguf), busy, index in itertools.product(ggufs.items(), options.busy, range(len(options.engines))):
            engine = options.engines[(turn + index) % len(options.engines)]
            if not can_run(engine, dtype):
                continue
            print(f"round {turn + 1} of {options.rounds}: {model.name} {dtype} {engine}", file=sys.stderr)
            try:
                with busy_processes(busy):
                    measured = engines.measure(engine, gguf, folders.get(model), dtype)
            except CannotLoad as error:
                print(f"skipped: {error}", file=sys.stderr)
                not_loaded[f"{engine} does not load {model.name} {dtype}"] = None
                continue
            measurements.add(model.name, dtype, engine, [result | {"busy": busy} for result in measured])
    print(markdown(measurements, options.engines))
    print()
    print(caption(options, machine, engines.versions, list(not_loaded)))
    if options.json:
        report = report_json(options, machine, engines, list(not_loaded), measurements)
        if options.keep and options.json.exists():
            report = with_kept(report, json.loads(options.json.read_text()))
        options.json.write_text(json_text(report))


if __name__ == "__main__":
    main()
