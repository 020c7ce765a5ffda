"""Trains the bundled poet: a tokenizer and a small MiniMind-3 that writes classical Chinese verse.

    python tools/demo/train.py --data FOLDER --work FOLDER [--out weights/demo]

FOLDER holds poems_train.jsonl.xz and poems_val.jsonl.xz. The work folder keeps a checkpoint and a log; the same command
continues an interrupted run. With --out, `export.py` writes the files of weights/demo at the end.
"""

import argparse
import ctypes
import json
import random
import time
from pathlib import Path

import torch
from tokenizers import Tokenizer

from export import export
from muon import optimizers
from poems import Poem, common_characters, read_poems, readable
from prompts import question
from task import BATCH, CONFIG, DECAY, MAX_POSITIONS, SEED, MiniMind, Row, rows_of, summed_loss, validation_loss
from tokenizer import save_tokenizer, train_tokenizer

THREADS = 2
PART = 32  # poems per backward pass, so that their activations stay in the cache
STEPS = 3200
MATRIX_RATE, OTHER_RATE = 0.02, 4e-3
WARMUP_STEPS = 100
PLAIN = 0.15  # share of plain text in every pass except the first, for `minimind generate`
LOG_EVERY, SAVE_EVERY, VALIDATE_EVERY = 50, 250, 500  # in steps; the last two are multiples of the first


def batches(poems: list[Poem], tokenizer: Tokenizer, step: int):
    """Yields batches of rows of similar length from `step` on, endlessly; each pass has new random questions and order."""
    a_pass = len(poems) // BATCH
    while True:
        number, skipped = divmod(step, a_pass)
        rng = random.Random(f"{SEED} {number}")
        rows = rows_of(poems, tokenizer, rng, PLAIN if number > 0 else 0.0)
        rng.shuffle(rows)
        rows.sort(key=lambda row: len(row.tokens))
        starts = [i * BATCH for i in range(a_pass)]
        rng.shuffle(starts)
        for start in starts[skipped:]:
            yield rows[start : start + BATCH]
        step = (number + 1) * a_pass


def rate(step: int) -> float:
    """Returns the fraction of the highest rate: warm-up, plateau, linear decay (Hägele et al. 2024, arXiv:2405.18392)."""
    return min(1.0, (step + 1) / WARMUP_STEPS, (STEPS - step) / (DECAY * STEPS))


def initial_model() -> MiniMind:
    torch.manual_seed(SEED)
    model = MiniMind(CONFIG)
    for name, weight in model.named_parameters():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            torch.nn.init.zeros_(weight)
        elif weight.dim() == 2:
            torch.nn.init.normal_(weight, std=0.02)
    return model


class Training:
    """The state of a training run, which can be saved and continued."""

    def __init__(self):
        self.model = initial_model()
        self.optimizers = optimizers(self.model, MATRIX_RATE, OTHER_RATE)
        self.highest_rates = [[group["lr"] for group in optimizer.param_groups] for optimizer in self.optimizers]
        self.done, self.tokens, self.seconds = 0, 0, 0.0

    def step(self, rows: list[Row]) -> float:
        """Trains on one batch. Returns the loss in nats per token."""
        started = time.time()
        for optimizer, rates in zip(self.optimizers, self.highest_rates):
            for group, highest in zip(optimizer.param_groups, rates):
                group["lr"] = highest * rate(self.done)
        targets = sum(len(row.tokens) - row.answer for row in rows)
        nats = 0.0
        for begin in range(0, len(rows), PART):
            loss = summed_loss(self.model, rows[begin : begin + PART]) / targets
            loss.backward()
            nats += loss.item()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.done += 1
        self.tokens += sum(len(row.tokens) for row in rows)
        self.seconds += time.time() - started
        return nats

    def save(self, path: Path) -> None:
        state = {"model": self.model.state_dict(), "optimizers": [o.state_dict() for o in self.optimizers]}
        torch.save(state | {"steps": self.done, "tokens": self.tokens, "seconds": self.seconds}, path.with_suffix(".tmp"))
        path.with_suffix(".tmp").replace(path)

    def load(self, path: Path) -> None:
        state = torch.load(path, weights_only=True)
        self.model.load_state_dict(state["model"])
        for optimizer, kept in zip(self.optimizers, state["optimizers"]):
            optimizer.load_state_dict(kept)
        self.done, self.tokens, self.seconds = state["steps"], state["tokens"], state["seconds"]


def train(work: Path, tokenizer: Tokenizer, poems: list[Poem], validation: list[Row]) -> None:
    training, saved = Training(), work / "poet.pth"
    if saved.exists():
        training.load(saved)
        print(f"{saved}: continuing after {training.done} steps", flush=True)
    feed, losses = batches(poems, tokenizer, training.done), []
    while training.done < STEPS:
        losses.append(training.step(next(feed)))
        last = training.done == STEPS
        if training.done % LOG_EVERY == 0 or last:
            entry = {"step": training.done, "tokens": training.tokens, "seconds": round(training.seconds)}
            entry["loss"], losses = sum(losses) / len(losses), []
            if training.done % VALIDATE_EVERY == 0 or last:
                entry["validation"] = validation_loss(training.model, validation)
            print(json.dumps(entry), flush=True)
            with open(work / "poet.log", "a", encoding="utf-8") as log:
                log.write(json.dumps(entry) + "\n")
        if training.done % SAVE_EVERY == 0 or last:
            training.save(saved)


def keep_freed_memory() -> None:
    """Lets glibc reuse large blocks instead of mapping new ones, which is much faster."""
    m_trim_threshold, m_mmap_max = -1, -4  # malloc.h
    mallopt = ctypes.CDLL(None).mallopt
    mallopt(m_mmap_max, 0)
    mallopt(m_trim_threshold, 2**31 - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the poems")
    parser.add_argument("--work", type=Path, required=True, help="folder for checkpoints")
    parser.add_argument("--out", type=Path, help="folder to export to at the end")
    parser.add_argument("--program", type=Path, default="./minimind", help="minimind, which writes the poems to measure")
    args = parser.parse_args()
    torch.set_num_threads(THREADS)
    keep_freed_memory()
    args.work.mkdir(parents=True, exist_ok=True)

    every = read_poems(args.data / "poems_train.jsonl.xz")
    poems = readable(every, common_characters(every))
    rng = random.Random(SEED)
    tokenizer = train_tokenizer([poem.text for poem in every] + [question(poem, rng) for poem in every])
    save_tokenizer(tokenizer, args.work, MAX_POSITIONS)
    validation = rows_of(read_poems(args.data / "poems_val.jsonl.xz"), tokenizer, random.Random(SEED))
    print(json.dumps({"poems": len(every), "trained": len(poems), "validation": len(validation)}), flush=True)
    train(args.work, tokenizer, poems, validation)
    if args.out:
        export(args.data, args.work, args.program.resolve(), args.out)


if __name__ == "__main__":
    main()
