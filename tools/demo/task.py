"""What is trained and how it is scored: the shape of the model, token rows from poems, and the loss."""

import math
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "reference"))
from model import Config, MiniMind  # noqa: E402

from tokenizer import IM_END, VOCAB_SIZE  # noqa: E402

HIDDEN_SIZE = 128
CONFIG = Config(
    vocab_size=VOCAB_SIZE,
    hidden_size=HIDDEN_SIZE,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=32,
    intermediate_size=math.ceil(HIDDEN_SIZE * math.pi / 64) * 64,  # MiniMind-3's rule
)
MAX_POSITIONS = 32768  # what the architecture takes; the poems it saw are under 128 tokens
BATCH = 32  # poems
IGNORED = -100  # the target of padding


def encode(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
    return [encoding.ids for encoding in tokenizer.encode_batch([text + IM_END for text in texts])]


def padded(batch: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Inputs and next-token targets, [poems, longest - 1] each."""
    longest = max(map(len, batch))
    inputs = torch.tensor([ids[:-1] + [0] * (longest - len(ids)) for ids in batch])
    targets = torch.tensor([ids[1:] + [IGNORED] * (longest - len(ids)) for ids in batch])
    return inputs, targets


def loss_of(model: MiniMind, batch: list[list[int]], reduction: str = "mean") -> Tensor:
    inputs, targets = padded(batch)
    logits = model(inputs)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction=reduction)


@torch.inference_mode()
def validation_loss(model: MiniMind, samples: list[list[int]]) -> float:
    """Mean negative log-likelihood of a token, in nats."""
    samples = sorted(samples, key=len)
    chunks = [samples[i : i + BATCH] for i in range(0, len(samples), BATCH)]
    return sum(loss_of(model, chunk, "sum").item() for chunk in chunks) / sum(len(ids) - 1 for ids in samples)
