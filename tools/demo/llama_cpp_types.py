"""Quantises the demo with llama.cpp's own programs and measures the files: what `minimind convert` is to be compared with.

    python tools/demo/llama_cpp_types.py --programs FOLDER --data DATA --out tools/demo/llama_cpp_types.json

FOLDER has llama.cpp's llama-imatrix and llama-quantize; tools/demo/README.md tells how to compile them. DATA is that of
train.py. Each type is written with and without an importance matrix, computed from poems of the training data, each after its
question. `minimind perplexity` compares each file with the demo itself on poems kept out of training, and `minimind generate` is timed
with it. Needs only Python.
"""

import argparse
import json
import random
import subprocess
import tempfile
from pathlib import Path

from measure_types import DEMO, PROGRAM, file_numbers, quality, speed, write_scored_poems
from poems import read_poems
from prompts import IM_END, chat_text, sample

TYPES = ("Q4_0", "IQ4_XS", "IQ4_NL", "Q4_K_S", "Q4_K_M", "Q5_0", "Q5_K_S", "Q5_K_M", "Q6_K", "Q8_0")
SEED = 1


def write_calibration(path: Path, data: Path, count: int) -> None:
    """Writes the text of an importance matrix: answers after all wordings of questions, as in training."""
    rng = random.Random(SEED)
    poems = rng.sample(read_poems(data / "poems_train.jsonl.xz"), count)
    samples = (sample(poem, rng) for poem in poems)
    path.write_text("".join(f"{chat_text(question)}{answer}{IM_END}\n" for question, answer in samples), encoding="utf-8")


def run(*command: object) -> None:
    result = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: exit status {result.returncode}\n{result.stdout[-2000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, required=True, help="folder of llama-imatrix and llama-quantize")
    parser.add_argument("--data", type=Path, required=True, help="folder of the poems")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--program", type=Path, default=PROGRAM)
    parser.add_argument("--model", type=Path, default=DEMO)
    parser.add_argument("--count", type=int, default=300, help="number of poems kept out (default: 300)")
    parser.add_argument("--calibration", type=int, default=2000, help="number of poems to calibrate with (default: 2000)")
    parser.add_argument("--context", type=int, default=512, help="tokens of a piece of the calibration text (default: 512)")
    parser.add_argument("--matrix", type=Path, help="importance matrix of an earlier call, which --keep left in its folder")
    parser.add_argument("--runs", type=int, default=5, help="number of measurements of each speed here (default: 5)")
    parser.add_argument("--keep", type=Path, help="write the files into this folder and keep them")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        source, matrix = folder / "demo-f16.gguf", options.matrix or folder / "imatrix.gguf"
        texts, calibration = folder / "poems.jsonl", folder / "calibration.txt"
        write_scored_poems(texts, read_poems(options.data / "poems_val.jsonl.xz")[: options.count])
        run(options.program, "convert", "-q", "--force", "--type", "f16", options.model, source)
        if not options.matrix:
            write_calibration(calibration, options.data, options.calibration)
            run(options.programs / "llama-imatrix", "-m", source, "-f", calibration, "-o", matrix, "-c", options.context,
                "--parse-special", "--no-ppl", "-t", 2)
        rows = []
        for kind in TYPES:
            for importance in (False, True):
                path = folder / f"demo-{kind}{'-imatrix' if importance else ''}.gguf"
                given = ["--imatrix", matrix] if importance else []
                run(options.programs / "llama-quantize", *given, source, path, kind, 2)
                measured = quality(options.program, path, options.model, texts)
                speeds = [speed(options.program, path, options.model) for _ in range(options.runs)]
                row = {"type": kind, "importance_matrix": importance} | file_numbers(path, measured, speeds)
                rows.append(row)
                print(f"{kind:8}{'importance matrix' if importance else '':18} {row['bytes'] / 1e6:.2f} MB  KL {row['mean_kl']:.5f}",
                      flush=True)
        options.out.write_text(json.dumps({"poems": options.count, "tokens": measured["tokens"], "files": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
