"""The training task: the shape of the model, token rows from samples, and the loss."""

import random
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "reference"))
from model import Config, MiniMind  # noqa: E402

from poems import Poem  # noqa: E402
from prompts import IM_END, chat_text, plain_sample, sample  # noqa: E402
from tokenizer import VOCAB_SIZE  # noqa: E402

SEED = 1
BATCH = 96  # poems per step
DECAY = 0.35  # share of the steps at the end in which the constant learning rate falls linearly to 0
MAX_POSITIONS = 32768  # limit of the architecture; the samples have fewer than 150 tokens
ROW_MULTIPLE = 8  # padded rows have a multiple of this length; another value may change the rounding
LOGITS_ROWS = 512  # tokens per block of logits, so that a block stays in the cache

CONFIG = Config(
    vocab_size=VOCAB_SIZE,
    hidden_size=256,
    num_hidden_layers=6,
    num_attention_heads=6,
    num_key_value_heads=2,
    head_dim=32,
    intermediate_size=416,
)


@dataclass(frozen=True)
class Row:
    """A sample: tokens, of which those from position `answer` on are learned."""

    tokens: list[int]
    answer: int


def rows_of(poems: list[Poem], tokenizer: Tokenizer, rng: random.Random, plain: float = 0.0) -> list[Row]:
    """Returns a new random sample of each poem: an answer to a question, or for a share `plain` of them plain text."""
    given, answers = [], []
    for poem in poems:
        if plain and rng.random() < plain:
            before, answer = plain_sample(poem, rng)
        else:
            question, answer = sample(poem, rng)
            before = chat_text(question)
        given.append(before)
        answers.append(answer + IM_END)
    pairs = zip(tokenizer.encode_batch(given), tokenizer.encode_batch(answers))
    return [Row(before.ids + answer.ids, max(1, len(before.ids))) for before, answer in pairs]


def padded(rows: list[Row]) -> tuple[Tensor, Tensor, Tensor]:
    """Returns inputs [rows, length], the flat positions that predict a token of an answer, and the predicted tokens."""
    length = -(-(max(len(row.tokens) for row in rows) - 1) // ROW_MULTIPLE) * ROW_MULTIPLE
    inputs = torch.tensor([row.tokens[:-1] + [0] * (length + 1 - len(row.tokens)) for row in rows])
    predicting = [i * length + p - 1 for i, row in enumerate(rows) for p in range(row.answer, len(row.tokens))]
    targets = [token for row in rows for token in row.tokens[row.answer :]]
    return inputs, torch.tensor(predicting), torch.tensor(targets)


class SummedLoss(torch.autograd.Function):
    """Cross entropy of x [N, hidden] against targets [N] through the embedding [vocab, hidden], summed.

    The gradient is computed in the same pass, block by block: logits of a whole batch would pass through memory four times.
    """

    @staticmethod
    def forward(context, x: Tensor, embedding: Tensor, targets: Tensor) -> Tensor:
        total = x.new_zeros(())
        x_gradient, embedding_gradient = torch.empty_like(x), torch.zeros_like(embedding)
        for begin in range(0, len(x), LOGITS_ROWS):
            end = min(begin + LOGITS_ROWS, len(x))
            weights = (x[begin:end] @ embedding.T).softmax(-1)
            total -= weights.gather(-1, targets[begin:end, None]).log().sum()
            weights[torch.arange(end - begin), targets[begin:end]] -= 1
            torch.mm(weights, embedding, out=x_gradient[begin:end])
            embedding_gradient.addmm_(weights.T, x[begin:end])
        context.save_for_backward(x_gradient, embedding_gradient)
        return total

    @staticmethod
    def backward(context, gradient: Tensor):
        x_gradient, embedding_gradient = context.saved_tensors
        return gradient * x_gradient, gradient * embedding_gradient, None


def summed_loss(model: MiniMind, rows: list[Row]) -> Tensor:
    """Returns the negative log-likelihood of the answers, in nats."""
    inputs, predicting, targets = padded(rows)
    x = model.model(inputs).flatten(0, 1)[predicting]
    return SummedLoss.apply(x, model.lm_head.weight, targets)


@torch.no_grad()
def validation_loss(model: MiniMind, rows: list[Row], batch: int = 32) -> float:
    """Returns the mean negative log-likelihood per token of the answers, in nats."""
    rows = sorted(rows, key=lambda row: len(row.tokens))
    nats = sum(summed_loss(model, rows[start : start + batch]).item() for start in range(0, len(rows), batch))
    return nats / sum(len(row.tokens) - row.answer for row in rows)
