"""Measures minimind beside llama.cpp, ik_llama.cpp and PyTorch on the same weights: make bench-peers

Prints a Markdown table of tokens per second. The weights are those of --models, or random ones in the shapes of
MiniMind's models, of MiniMind-3 and MiniMind2-small unless --shapes names others. Each measurement is a process of its
own, in which every test is repeated after a short warm-up; in each round the engines take turns, and another one begins.
"""

import argparse
import datetime
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

from peer import CANNOT_LOAD, counts
from table import OURS, Measurements, faster, markdown

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SHAPES = ["3", "2-small", "2", "3-moe", "2-moe"]
FLOATS = ["f32", "f16", "bf16"]
TYPES = FLOATS + ["q8_0", "q4_0", "iq4_nl"]
IK_LLAMA_CPP = ["ik_llama.cpp"] if importlib.util.find_spec("ik_llama_cpp") else []
ENGINES = [OURS, "llama.cpp", *IK_LLAMA_CPP, "PyTorch"]


class CannotLoad(Exception):
    """A peer does not know a model."""


def run(*command: object) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode == CANNOT_LOAD:
        raise CannotLoad(done.stderr.strip().splitlines()[-1])
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\nfailed: {done.stderr.strip()[-2000:]}")
    return done.stdout


def random_models(folder: Path, shapes: list[str]) -> list[Path]:
    missing = [name for name in shapes if not (folder / name / "case.json").exists()]  # written last but one
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


class Engines:
    """Each measures every test once; `versions` tells of those that ran."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.versions: dict[str, str] = {}

    def minimind(self, gguf: Path) -> list[dict]:
        o = self.options
        depths = ",".join(str(depth) for depth in o.depths)
        told = run(o.program, "bench", "--json", "-q", "-m", gguf, "-t", o.threads, "-p", o.prompt, "-n", o.decode,
                   "-d", depths, "-r", o.repetitions)
        return json.loads(told)["results"]

    def peer(self, engine: str, program: str, *arguments: object) -> list[dict]:
        o = self.options
        depths = ",".join(str(depth) for depth in o.depths)
        told = json.loads(run(sys.executable, HERE / program, *arguments, "--threads", o.threads, "--prompt", o.prompt,
                              "--decode", o.decode, "--depths", depths, "--repetitions", o.repetitions))
        self.versions[engine] = told["version"]
        return told["results"]

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


def note(options: argparse.Namespace, machine: dict, versions: dict[str, str], not_loaded: list[str]) -> str:
    peers = {
        "llama.cpp": "llama.cpp as in llama-cpp-python {}, compiled for this machine, with flash attention",
        "ik_llama.cpp": "ik_llama.cpp as in PyPI's wheel of ik-llama-cpp-python {}, compiled for AVX2, weights repacked",
        "PyTorch": "PyTorch {}, eager, with a cache allocated beforehand, in the type or in f32, whichever is faster",
    }
    weights = "" if options.models else " Random weights in the shapes of MiniMind's models."
    return "\n".join([
        f"{machine['machine'] or 'Unnamed processor'}, {machine['cores']} cores; threads: {options.threads}; "
        f"{datetime.date.today()}. Tokens per second, medians of {options.rounds * options.repetitions} samples in "
        f"{options.rounds} rounds in which the engines take turns.{weights}",
        "; ".join([f"minimind with its {machine['kernels']} kernels"]
                  + [peers[engine].format(version) for engine, version in versions.items()]
                  + not_loaded)
        + ".",
    ])


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, nargs="+", help="checkpoints of any kind that minimind reads")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=SHAPES[:2], help="of random weights")
    parser.add_argument("--types", nargs="+", choices=TYPES, default=["f16", "q8_0", "q4_0"])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--threads", type=int, help="default: the physical cores")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--decode", type=int, default=128)
    parser.add_argument("--depths", type=counts, default=[0], help="such as 0,1024")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=2, help="in each round")
    parser.add_argument("--program", type=Path, default=ROOT / "minimind")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "bench-peers", help="for converted weights")
    return parser.parse_args()


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
    not_loaded: dict[str, None] = {}  # in the order in which they first came
    for turn in range(options.rounds):
        for (model, dtype), gguf in ggufs.items():
            for index in range(len(options.engines)):
                engine = options.engines[(turn + index) % len(options.engines)]
                if not can_run(engine, dtype):
                    continue
                print(f"round {turn + 1} of {options.rounds}: {model.name} {dtype} {engine}", file=sys.stderr)
                try:
                    results = engines.measure(engine, gguf, folders.get(model), dtype)
                except CannotLoad as error:
                    print(f"left out: {error}", file=sys.stderr)
                    not_loaded[f"{engine} does not load {model.name} {dtype}"] = None
                    continue
                measurements.add(model.name, dtype, engine, results)
    print(markdown(measurements, options.engines))
    print()
    print(note(options, machine, engines.versions, list(not_loaded)))


if __name__ == "__main__":
    main()
