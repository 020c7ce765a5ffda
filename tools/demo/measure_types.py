"""Prints the table of TYPES.md, the cost of each type: python tools/demo/measure_types.py --data DATA

DATA is that of train.py: files are calibrated on poems of its training data and measured on those kept out. With --out, also writes the numbers as JSON, from which types_chart.py draws.

Converts the demo to each type. `minimind perplexity` compares it with the demo itself, on poems kept out of training, each
after its question. The speed is that of greedy generation, the median of runs in turns. Needs only Python.
"""

import argparse
import json
import random
import statistics
import subprocess
import tempfile
from pathlib import Path

from poems import Poem, read_poems
from prompts import chat_text, plain_question, scored_line

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "minimind"
DEMO = ROOT / "weights" / "demo" / "model.pth"
# Options of `convert`.
TYPES = {
    "f32": ["--type", "f32"],
    "f16": ["--type", "f16"],
    "bf16": ["--type", "bf16"],
    "q8_0": ["--type", "q8_0"],
    "q6_k": ["--type", "q6_k"],
    "q5_1": ["--type", "q5_1"],
    "q5_k": ["--type", "q5_k"],
    "q5_0": ["--type", "q5_0"],
    "iq4_nl, embedding q8_0": ["--type", "iq4_nl", "--embedding-type", "q8_0"],
    "q4_1": ["--type", "q4_1"],
    "q4_k": ["--type", "q4_k"],
    "iq4_nl": ["--type", "iq4_nl"],
    "q4_0": ["--type", "q4_0"],
    "iq4_nl, calibrated": ["--type", "iq4_nl", "--calibrate"],
    "2.67 MB, calibrated": ["--size", "2.67MB", "--calibrate"],
    "3.2 MB, calibrated": ["--size", "3.2MB", "--calibrate"],
    "3.5 MB, calibrated": ["--size", "3.5MB", "--calibrate"],
    "4.0 MB, calibrated": ["--size", "4.0MB", "--calibrate"],
}
CALIBRATION_POEMS, SEED = 2000, 1
PROMPT = chat_text("写一首五言律诗，题目：秋夜")
TOKENS = 1000  # generated per run


def run(*command: object) -> str:
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def convert(program: Path, model: Path, folder: Path, calibration: Path, dtype: str) -> Path:
    converted = folder / f"demo-{dtype}.gguf"
    text = [calibration] if "--calibrate" in TYPES[dtype] else []
    run(program, "convert", "-q", model, converted, *TYPES[dtype], *text)
    return converted


def quality(program: Path, converted: Path, model: Path, texts: Path) -> dict:
    tokenizer = model.parent / "tokenizer.json"
    return json.loads(run(program, "perplexity", "-q", "--json", "-m", converted, "--tokenizer", tokenizer,
                          "--against", model, "--jsonl", "-f", texts))


def write_scored_poems(path: Path, poems: list[Poem]) -> None:
    path.write_text("".join(scored_line(plain_question(poem), poem) for poem in poems))


def file_numbers(converted: Path, measured: dict, speeds: list[float]) -> dict:
    """Returns what a JSON file of types_chart.py has of a file."""
    divergence = {name: measured["against"][name] for name in ("mean_kl", "mean_kl_95", "kl_99th_percentile", "top1_agreement")}
    return {"bytes": converted.stat().st_size, "perplexity": measured["perplexity"], **divergence,
            "tokens_per_second": statistics.median(speeds) if speeds else None}


def speed(program: Path, converted: Path, model: Path) -> float:
    tokenizer = model.parent / "tokenizer.json"
    generated = run(program, "generate", "-q", "--json", "-m", converted, "--tokenizer", tokenizer, "--greedy",
                    "--ignore-eos", "-n", TOKENS, "-p", PROMPT)
    return json.loads(generated)["timings"]["decode_tokens_per_second"]


def row(dtype: str, size: int, measured: dict, speeds: list[float]) -> str:
    against = measured["against"]
    return (f"| {dtype} | {size / 1e6:.2f} MB | {measured['perplexity']:.3f} | {against['mean_kl']:.2g} "
            f"| {against['kl_99th_percentile']:.2g} | {100 * against['top1_agreement']:.2f} % "
            f"| {statistics.median(speeds):.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the poems")
    parser.add_argument("--program", type=Path, default=PROGRAM)
    parser.add_argument("--model", type=Path, default=DEMO)
    parser.add_argument("--count", type=int, default=1000, help="number of poems")
    parser.add_argument("--runs", type=int, default=5, help="number of measurements of each speed")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts, calibration = folder / "poems.jsonl", folder / "calibration.jsonl"
        write_scored_poems(texts, read_poems(options.data / "poems_val.jsonl.xz")[: options.count])
        trained = read_poems(options.data / "poems_train.jsonl.xz")
        write_scored_poems(calibration, random.Random(SEED).sample(trained, CALIBRATION_POEMS))
        models = {dtype: convert(options.program, options.model, folder, calibration, dtype) for dtype in TYPES}
        measured = {dtype: quality(options.program, models[dtype], options.model, texts) for dtype in TYPES}
        speeds = {dtype: [] for dtype in TYPES}
        for _ in range(options.runs):
            for dtype in TYPES:
                speeds[dtype].append(speed(options.program, models[dtype], options.model))

        tokens = measured["f16"]["tokens"]
        print(f"Perplexity and KL divergence (nats per token, from the stored weights) on {options.count} poems kept out of "
              f"training, {tokens} tokens; generated tokens per second, the median of {options.runs} runs.\n")
        print("| type | file | perplexity | mean KL | 99th percentile | same top-1 token | tokens/s |")
        print("|---|---|---|---|---|---|---|")
        for dtype in TYPES:
            print(row(dtype, models[dtype].stat().st_size, measured[dtype], speeds[dtype]))
        if options.out:
            files = [{"type": dtype, "calibrated": "--calibrate" in TYPES[dtype]}
                     | file_numbers(models[dtype], measured[dtype], speeds[dtype]) for dtype in TYPES]
            options.out.write_text(json.dumps({"poems": options.count, "tokens": tokens, "files": files}, indent=1) + "\n")


if __name__ == "__main__":
    main()
