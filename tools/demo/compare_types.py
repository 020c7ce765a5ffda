"""Compares block types on the demo model: python tools/demo/compare_types.py --data FOLDER

FOLDER is that of train.py. Prints for each type with blocks of 32 values: bits per value, mean KL divergence from the float16
weights, and top-1 agreement, over poems kept out of training. Needs the packages of tools/reference/requirements.txt and
gguf==0.19.0. NumPy and PyTorch compute everything; `minimind perplexity --against` measures minimind itself.
"""

import argparse
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from gguf import GGMLQuantizationType
from gguf.quants import IQ4_NL, dequantize, quantize
from tokenizers import Tokenizer
from torch import Tensor

from poems import read_poems
from task import BATCH, CONFIG, SEED, MiniMind, padded, rows_of

DEMO = Path(__file__).resolve().parent.parent.parent / "weights" / "demo"
EMBEDDING = "model.embed_tokens.weight"
EVEN_CODES = torch.arange(-8.0, 8.0)  # of q4_0
NON_LINEAR_CODES = torch.tensor(IQ4_NL.kvalues).float()

Quantize = Callable[[Tensor], Tensor]  # a matrix -> its values after quantisation
Weigh = Callable[[Tensor], Tensor]  # values -> the weights of their squared errors


def as_gguf_does(name: str) -> Quantize:
    kind = GGMLQuantizationType[name]

    def quantized(matrix: Tensor) -> Tensor:
        return torch.from_numpy(np.array(dequantize(quantize(matrix.numpy(), kind), kind)))

    return quantized


def nearest(scaled: Tensor, codes: Tensor) -> Tensor:
    return codes[torch.bucketize(scaled, (codes[1:] + codes[:-1]) / 2)]


def divided(a: Tensor, b: Tensor) -> Tensor:
    return torch.where(b == 0, torch.zeros(()), a / b)


def searched(codes: Tensor, tries: list[float], weigh: Weigh) -> Quantize:
    """Each try scales the value of largest magnitude to the tried code, chooses codes, and then their best scale."""

    def quantized(matrix: Tensor) -> Tensor:
        x = matrix.reshape(-1, 32)
        weights = weigh(x)
        extreme = x.gather(1, x.abs().argmax(1, keepdim=True))
        most, best = torch.zeros_like(extreme), torch.zeros_like(extreme)
        for tried in tries:
            q = nearest(divided(x * tried, extreme), codes)
            products, squares = ((weights * term).sum(1, keepdim=True) for term in (x * q, q * q))
            scale = divided(products, squares)
            better = scale * products > most
            most, best = torch.where(better, scale * products, most), torch.where(better, scale, best)
        best = best.half().float()
        return (best * nearest(divided(x, best), codes)).reshape(matrix.shape)

    return quantized


def unweighted(x: Tensor) -> Tensor:
    return torch.ones_like(x)


TRIES = [-136, -127, -118, -109, 96, 104, 112, 120]  # those of weights/tensor/choose_codes.cpp
MANY_TRIES = [sign * tried for sign in (-1, 1) for tried in range(80, 151)]
EVEN_TRIES = [sign * tried for sign in (-1, 1) for tried in (6.8, 7.4, 8.0, 8.6)]
TYPES: list[tuple[str, float, Quantize]] = [
    ("q8_0", 8.5, as_gguf_does("Q8_0")),
    ("q5_0", 5.5, as_gguf_does("Q5_0")),
    ("q4_1", 5.0, as_gguf_does("Q4_1")),
    ("q4_0", 4.5, as_gguf_does("Q4_0")),
    ("q4_0, eight tries", 4.5, searched(EVEN_CODES, EVEN_TRIES, unweighted)),
    ("iq4_nl, largest is -127", 4.5, searched(NON_LINEAR_CODES, [-127], unweighted)),
    ("iq4_nl, eight tries", 4.5, searched(NON_LINEAR_CODES, TRIES, unweighted)),
    ("iq4_nl, errors weighted by |x|", 4.5, searched(NON_LINEAR_CODES, TRIES, torch.abs)),
    ("iq4_nl, errors weighted by x^2", 4.5, searched(NON_LINEAR_CODES, TRIES, torch.square)),
    ("iq4_nl, 142 tries", 4.5, searched(NON_LINEAR_CODES, MANY_TRIES, unweighted)),
]


def quantized_state(state: dict[str, Tensor], quantize_matrix: Quantize, excluded: str = "") -> dict[str, Tensor]:
    result = {n: quantize_matrix(w) if w.ndim == 2 and n not in (excluded, "lm_head.weight") else w for n, w in state.items()}
    return result | {"lm_head.weight": result[EMBEDDING]}


@torch.inference_mode()
def log_probabilities(model: MiniMind, state: dict[str, Tensor], batches: list[tuple[Tensor, Tensor, Tensor]]) -> list[Tensor]:
    model.load_state_dict(state)
    return [model(inputs).flatten(0, 1)[predicting].log_softmax(-1) for inputs, predicting, _ in batches]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the poems")
    parser.add_argument("--poems", type=int, default=250, help="number of poems; each takes 1.4 MB (default: 250)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = Tokenizer.from_file(str(DEMO / "tokenizer.json"))
    rows = rows_of(read_poems(args.data / "poems_val.jsonl.xz")[: args.poems], tokenizer, random.Random(SEED))
    rows.sort(key=lambda row: len(row.tokens))
    batches = [padded(rows[i : i + BATCH]) for i in range(0, len(rows), BATCH)]
    state = {name: w.float() for name, w in torch.load(DEMO / "model.pth", weights_only=True).items()}
    model = MiniMind(CONFIG).eval()
    exact = log_probabilities(model, state, batches)
    count = sum(map(len, exact))
    print(f"{len(rows)} poems, {count} tokens\n{'type':33} bits  mean KL  top-1 agreement")

    def compare(name: str, bits: float, state: dict[str, Tensor]) -> None:
        pairs = list(zip(exact, log_probabilities(model, state, batches)))
        divergence = sum((p.exp() * (p - q)).sum().item() for p, q in pairs) / count
        same = sum((p.argmax(-1) == q.argmax(-1)).sum().item() for p, q in pairs) / count
        print(f"{name:33} {bits:4.1f}  {divergence:.5f}  {same:.1%}", flush=True)

    for name, bits, quantize_matrix in TYPES:
        compare(name, bits, quantized_state(state, quantize_matrix))
    matrices = sum(w.numel() for name, w in state.items() if w.ndim == 2 and name != "lm_head.weight")
    share = state[EMBEDDING].numel() / matrices  # half of this small model, 8 % of MiniMind-3
    with_fine_embedding = state | {EMBEDDING: as_gguf_does("Q8_0")(state[EMBEDDING])}
    for name, bits, quantize_matrix in TYPES:
        if name in ("q4_0", "iq4_nl, eight tries"):
            quantized = quantized_state(with_fine_embedding, quantize_matrix, excluded=EMBEDDING)
            compare(name + ", embedding q8_0", bits + share * (8.5 - bits), quantized)


if __name__ == "__main__":
    main()
