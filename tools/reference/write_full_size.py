"""Writes full-size checkpoints with random weights: python tools/reference/write_full_size.py OUT [NAME ...]

The shapes are those of MiniMind's releases. Each is a Hugging Face folder in float16 with `case.json` and `logits.npy`, like a
golden case. Without a name it writes all eight: 1.6 GB.
"""

import json
import sys
import zlib
from pathlib import Path

import numpy as np
import torch

from cases import V1_EXPERTS, V2_EXPERTS, V3_EXPERTS, Case, v1, v2, v3
from checkpoint import config_from, twin_of
from layouts import MINIMIND, write_layout
from model import MiniMind
from write_golden import sample_tokens, randomize, stored_state

PROMPT_TOKENS = 16
GREEDY_TOKENS = 8
GAIN = 1.0  # with a smaller gain the embedding dominates the layers and greedy decoding repeats its last token
SMALLEST_ROUTING_MARGIN = 5e-4  # eight layers of routing seldom have a larger margin

V1 = {"vocab_size": 6400, "hidden_dim": None, "max_seq_len": 8192}
V2 = {"vocab_size": 6400}
V3 = {"vocab_size": 6400, "hidden_size": 768, "num_hidden_layers": 8, "num_attention_heads": 8}
V3 |= {"num_key_value_heads": 4, "head_dim": 96, "intermediate_size": 2432}
BIN, SAFETENSORS = {"layout": "bin", "tied": "shared"}, {"layout": "safetensors", "tied": "once"}


def v2_shape(hidden_size: int, layers: int, feed_forward: int) -> dict:
    return V2 | {"hidden_size": hidden_size, "num_hidden_layers": layers, "intermediate_size": feed_forward}


FULL_SIZE = [
    Case("v1-small", "v1", v1(**V1, dim=512, n_layers=8), **BIN),
    Case("v1", "v1", v1(**V1, dim=768, n_layers=16), **BIN),
    Case("v1-moe", "v1", v1(**V1, **V1_EXPERTS, n_shared_experts=True, dim=512, n_layers=8), **BIN),
    Case("2-small", "v2", v2(**v2_shape(512, 8, 1408)), **BIN),
    Case("2-moe", "v2", v2(**v2_shape(640, 8, 1728), **V2_EXPERTS), **SAFETENSORS),
    Case("2", "v2", v2(**v2_shape(768, 16, 2048)), **SAFETENSORS),
    Case("3", "v3", v3(**V3), **SAFETENSORS),
    Case("3-moe", "v3", v3(**V3, **V3_EXPERTS | {"moe_intermediate_size": 2432}), **SAFETENSORS),
]
MILLIONS = {"v1-small": 26.88, "v1": 108.75, "v1-moe": 96.10, "2-small": 25.83}  # parameters, as stated by MiniMind
MILLIONS |= {"2-moe": 145.03, "2": 104.03, "3": 63.91, "3-moe": 198.42}


def write_full_size(case: Case, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    random = torch.Generator().manual_seed(zlib.crc32(case.name.encode()))
    model = MiniMind(config_from(case.family, case.config))
    randomize(model, random, GAIN)
    millions = sum(weight.numel() for weight in model.parameters()) / 1e6
    if abs(millions - MILLIONS[case.name]) > 0.0051:
        raise ValueError(f"{case.name}: has {millions:.2f} M parameters, expected {MILLIONS[case.name]} M")
    write_layout(case.layout, folder, stored_state(case, model), case.config | MINIMIND)
    del model
    described = {"family": case.family, "config": case.config}
    twin = twin_of(folder, described)
    tokens, logits = sample_tokens(twin, random, PROMPT_TOKENS, GREEDY_TOKENS, SMALLEST_ROUTING_MARGIN)
    (folder / "case.json").write_text(json.dumps(described | tokens) + "\n")
    np.save(folder / "logits.npy", logits)
    print(f"{case.name}: {millions:.2f} M parameters, logits' standard deviation {logits.std():.2f}", flush=True)


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    names = {case.name for case in FULL_SIZE}
    chosen = set(sys.argv[2:]) or names
    if chosen - names:
        sys.exit(f"unknown name {min(chosen - names)}, expected one of {', '.join(sorted(names))}")
    for case in FULL_SIZE:
        if case.name in chosen:
            write_full_size(case, Path(sys.argv[1]) / case.name)


if __name__ == "__main__":
    main()
