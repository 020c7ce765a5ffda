"""A program whose types test_types.py checks. It is never run."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

import numpy as np
import numpy.typing as npt

from minimind_cpp import Completion, Model, Tokenizer


def continue_text(model: Model, prompt: str, shown: bool) -> str:
    if shown:
        pieces: Iterator[str] = model.generate(prompt, stream=True, max_tokens=5)
        return "".join(pieces)
    print(model.generate(prompt, stream=shown))
    text: str = model.generate(prompt, max_tokens=5)
    return text


def roll_out(model: Model, prompt: list[int]) -> npt.NDArray[np.float64]:
    completion: Completion = model.rollout(prompt, n=8, logprobs=True, temperature=1, top_p=1, top_k=0)[0]
    groups: list[list[Completion]] = model.rollout([prompt, prompt], n=2)
    of_array: list[Completion] = model.rollout(np.array(prompt), n=2)
    of_arrays: list[list[Completion]] = model.rollout([np.array(prompt), np.array(prompt)], n=2)
    print(groups[0][0].ids.shape, of_array[0].finish_reason, len(of_arrays))
    assert completion.log_probabilities is not None
    return completion.log_probabilities


def main() -> None:
    messages = [{"role": "user", "content": "你好"}]
    with Model(Path("model.pth"), lora=["a.pth:0.5"], type="q8_0", threads=2) as model:
        print(continue_text(model, "a", True), roll_out(model, [1, 2]))
        print(model.chat(messages, tools=[{"type": "function"}])["content"])
        for delta in model.chat(messages, stream=True):
            print(delta.get("content", ""))
        logits: npt.NDArray[np.float32] = model.logits([1, 2])
        scores: npt.NDArray[np.float64] = model.score("abc")
        print(logits, scores, model.generate_batch(["a", "b"], max_tokens=3)[0])
        for result in model.batch([{"prompt": "a"}]):
            print(result["text"])
        tokenizer: Tokenizer = model.tokenizer
        ids: list[int] = tokenizer.encode("a")
        text: str = tokenizer.apply_chat_template(messages, tokenize=False)
        prompt: list[int] = tokenizer.apply_chat_template(messages)
        print(tokenizer.decode(ids), text, prompt, tokenizer.decode(np.array(ids)))
        model.load_state_dict({"a": np.zeros(3, np.float32)})
        model.reload("b.pth")
