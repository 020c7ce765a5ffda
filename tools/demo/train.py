"""Trains the bundled demo: a tokenizer and a small MiniMind-3 that writes classical Chinese verse.

    python tools/demo/train.py --data FOLDER --work FOLDER [--out weights/demo]

FOLDER holds poems_train.jsonl.xz and poems_val.jsonl.xz. A checkpoint is kept in the work folder as it goes;
`export.py` turns it into the files of weights/demo, and runs at the end when --out is given.
"""

import argparse
import ctypes
import json
import math
import random
import time
from pathlib import Path

import torch

from export import export
from poems import load_poems
from task import BATCH, CONFIG, MAX_POSITIONS, MiniMind, encode, loss_of, validation_loss
from tokenizer import save_tokenizer, train_tokenizer

SEED = 1
STEPS = 17200  # two and a half passes over the poems
PEAK_LEARNING_RATE = 2e-3
FINAL_LEARNING_RATE = 1e-4
WARMUP_STEPS = 200
WEIGHT_DECAY = 0.1


def batches(samples: list[list[int]], rng: random.Random):
    """Endless batches of poems of nearly one length, in an order drawn anew at each pass."""
    while True:
        order = sorted(range(len(samples)), key=lambda i: (len(samples[i]), rng.random()))
        starts = list(range(0, len(order) - BATCH + 1, BATCH))
        rng.shuffle(starts)
        for start in starts:
            yield [samples[i] for i in order[start : start + BATCH]]


def learning_rate(step: int) -> float:
    if step < WARMUP_STEPS:
        return PEAK_LEARNING_RATE * (step + 1) / WARMUP_STEPS
    progress = (step - WARMUP_STEPS) / (STEPS - WARMUP_STEPS)
    return FINAL_LEARNING_RATE + (PEAK_LEARNING_RATE - FINAL_LEARNING_RATE) * (1 + math.cos(math.pi * progress)) / 2


def initial_model() -> MiniMind:
    torch.manual_seed(SEED)
    model = MiniMind(CONFIG)
    for name, weight in model.named_parameters():
        if weight.dim() == 2:
            writes_residual = name.endswith(("o_proj.weight", "down_proj.weight"))
            torch.nn.init.normal_(weight, std=0.02 / math.sqrt(2 * CONFIG.num_hidden_layers if writes_residual else 1))
    return model


def save(work: Path, model: MiniMind, report: dict) -> None:
    torch.save({"model": model.state_dict(), "report": report}, work / "checkpoint.tmp")
    (work / "checkpoint.tmp").replace(work / "checkpoint.pth")


def train(work: Path, train_ids: list[list[int]], validation_ids: list[list[int]]) -> None:
    model = initial_model()
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() != 2]
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=PEAK_LEARNING_RATE, betas=(0.9, 0.95), fused=True)
    feed = batches(train_ids, random.Random(SEED))
    started, seen, recent = time.time(), 0, 0.0
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        batch = next(feed)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_of(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seen += sum(map(len, batch)) - len(batch)
        recent += loss.item()
        done = step + 1
        if done % 100 == 0:
            speed = seen / (time.time() - started)
            print(f"step {done}/{STEPS} loss {recent / 100:.4f} {speed:.0f} tokens/s", flush=True)
            recent = 0.0
        if done % 1000 == 0 or done == STEPS:
            validation = validation_loss(model, validation_ids)
            print(f"step {done}/{STEPS} validation loss {validation:.4f}", flush=True)
            minutes = (time.time() - started) / 60
            save(work, model, {"steps": done, "planned_steps": STEPS, "tokens": seen, "minutes": round(minutes)})


def keep_freed_memory() -> None:
    """Lets glibc reuse the logits' large blocks instead of mapping them afresh: nearly twice the speed."""
    m_trim_threshold, m_mmap_max = -1, -4  # malloc.h
    mallopt = ctypes.CDLL(None).mallopt
    mallopt(m_mmap_max, 0)
    mallopt(m_trim_threshold, 2**31 - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the poems")
    parser.add_argument("--work", type=Path, required=True, help="folder for checkpoints")
    parser.add_argument("--out", type=Path, help="export there at the end")
    args = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    args.work.mkdir(parents=True, exist_ok=True)

    texts = load_poems(args.data / "poems_train.jsonl.xz")
    validation_texts = load_poems(args.data / "poems_val.jsonl.xz")
    tokenizer = train_tokenizer(texts)
    save_tokenizer(tokenizer, args.work, MAX_POSITIONS)
    train_ids, validation_ids = encode(tokenizer, texts), encode(tokenizer, validation_texts)
    tokens = sum(map(len, train_ids))
    print(json.dumps({"poems": len(texts), "tokens": tokens, "validation_poems": len(validation_texts)}), flush=True)
    train(args.work, train_ids, validation_ids)
    if args.out:
        export(args.data, args.work, args.out)


if __name__ == "__main__":
    main()
