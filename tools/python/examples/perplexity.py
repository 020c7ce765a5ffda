"""Perplexity of MiniMind's training data: python perplexity.py out/full_sft_768.pth dataset/sft_mini_512.jsonl

Scores what MiniMind's datasets of v2 and v3 train on, as `minimind perplexity --jsonl` does: of {"text": ...} all tokens with
bos_token and eos_token around them, of {"conversations": [...]} the turns of the assistant. Random changes are not applied.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np

from minimind_cpp import Model

END_OF = {"<|im_start|>": "<|im_end|>", "<s>": "</s>"}  # eos_token of MiniMind's bos_token


class Dataset:
    """Token ids of lines, and which of them are scored."""

    def __init__(self, model: Model) -> None:
        if model.family in ("v1", "v2-early"):
            raise ValueError(f"{model!r}: expected a model of v2 or v3, whose datasets this example reads")
        self.tokenizer = model.tokenizer
        bos = self.tokenizer.decode(self.tokenizer.encode_prompt(""))
        self.bos, self.eos = self.tokenizer.encode(bos), self.tokenizer.encode(END_OF[bos])
        self.opening = self.tokenizer.encode(f"{bos}assistant\n")
        self.closing = self.tokenizer.encode(f"{END_OF[bos]}\n")

    def read(self, line: str) -> Tuple[List[int], List[bool]]:
        sample = json.loads(line)
        if "conversations" in sample:
            return self.conversation(sample["conversations"])
        ids = self.bos + self.tokenizer.encode(sample["text"], add_special_tokens=False) + self.eos
        padding = self.tokenizer.encode("<|endoftext|>")
        return ids, [index > 0 and [token] != padding for index, token in enumerate(ids)]

    def conversation(self, messages: List[Dict[str, Any]]) -> Tuple[List[int], List[bool]]:
        tools = None
        for message in messages:
            for name in ("tools", "tool_calls"):
                if isinstance(message.get(name), str):
                    message[name] = json.loads(message[name])
            tools = message.get("tools") or tools
        ids = self.tokenizer.apply_chat_template(messages, tools=tools)
        scored, start = [False] * len(ids), 0
        while start < len(ids):
            if ids[start : start + len(self.opening)] != self.opening:
                start += 1
                continue
            start += len(self.opening)
            end = start
            while end < len(ids) and ids[end : end + len(self.closing)] != self.closing:
                end += 1
            end = min(end + len(self.closing), len(ids))
            scored[start:end] = [True] * (end - start)
            start = end
        return ids, scored


def perplexity(model: Model, lines: Iterator[str]) -> Tuple[int, float]:
    """The tokens scored and their mean negative log-probability; exp of it is the perplexity."""
    dataset, tokens, nats = Dataset(model), 0, 0.0
    for line in lines:
        ids, scored = dataset.read(line)
        nats -= float(model.score(ids)[np.array(scored)].sum())
        tokens += sum(scored)
    return tokens, nats / tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("--tokenizer")
    options = parser.parse_args()
    with options.data.open(encoding="utf-8") as lines:
        tokens, nats = perplexity(Model(options.model, tokenizer=options.tokenizer), lines)
    print(f"{tokens} tokens, {nats:.6f} nats per token, perplexity {math.exp(nats):.4f}")


if __name__ == "__main__":
    main()
