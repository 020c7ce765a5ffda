"""A program whose types test_types.py checks. It is never run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from minimind_cpp import Chat, Completion, Model, SamplingParams, Session, Stream, Tokenizer, run
from minimind_cpp.masks import Grammar, LogitsProcessor, Matcher, Vocabulary
from minimind_cpp.trl import Rollouts, use_serve


class Answer:
    """As a class of Pydantic."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {"type": "object"}


def roll_out(model: Model, prompt: list[int]) -> npt.NDArray[np.float64]:
    params = SamplingParams(n=8, logprobs=0, temperature=1, top_p=1, top_k=0, stop=["a"], stop_token_ids=[2])
    group: list[Completion] = model.generate_batch([prompt, np.array(prompt)], params)
    of_each: list[Completion] = model.generate_batch(["a", prompt], [params, SamplingParams(json_schema=Answer)])
    print(group[0].ids.shape, of_each[0].finish_reason)
    for completion in model.iterate_batch(["a", "b"]):
        model.load_state_dict({"a": np.zeros(3, np.float32)}, keep_texts=completion.index > 0)
    assert group[0].log_probabilities is not None
    return group[0].log_probabilities


def ban_odd(ids: npt.NDArray[np.int32], logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    logits[1::2] = -np.inf
    return logits


def write_even(model: Model) -> str:
    return model.generate("a", SamplingParams(logits_processor=ban_odd)).text


async def show(model: Model, messages: list[dict[str, str]]) -> None:
    async for delta in model.stream(Chat(messages)):
        print(delta.get("content", ""))


def mask() -> npt.NDArray[np.bool_]:
    vocabulary, grammar = Vocabulary([b"a", b"b", b""], end_tokens=[2]), Grammar(json_schema=Answer, closed=True)
    matcher, processor = Matcher(grammar, vocabulary), LogitsProcessor(grammar, vocabulary, 4)
    bits: npt.NDArray[np.uint32] = matcher.bits(3)
    print(processor, bits, matcher.accept([0, 1]), matcher.tokens_to_end, matcher.may_end, vocabulary.size, grammar.notes)
    return matcher.mask()


def train(folder: Path) -> Rollouts:
    use_serve(str(folder))
    print(run("batch", folder / "in.jsonl", "-o", "out.jsonl"))
    return Rollouts(threads=1)


def main() -> None:
    messages = [{"role": "user", "content": "你好"}]
    with Model(Path("model.pth"), lora=["a.pth:0.5"], type="q8_0", threads=2) as model:
        stream: Stream[str] = model.stream("a", SamplingParams(max_tokens=5, grammar="root ::= .*"))
        text: str = "".join(stream) + stream.completion.text + model.generate("a").text
        message = model.chat(messages, tools=[{"type": "function"}]).message
        assert message is not None
        print(text, message["content"], roll_out(model, [1, 2]))
        session: Session = model.session()
        print(session.run([1, 2]), model.generate([1, 2, 3], session=session))
        logits: npt.NDArray[np.float32] = model.logits([1, 2])
        scores: npt.NDArray[np.float64] = model.score("abc")
        both: list[npt.NDArray[np.float64]] = model.score(["a", "b"]) + model.score([[1, 2], [3]]) + model.score(("a", "b"))
        model.batch(Path("in.jsonl"), "out.jsonl", "--model-name", "any")
        values: npt.NDArray[np.float32] = model.trace("abc", points="layers.*.mlp.*", layers=[0])["model.layers.0.mlp.gate_proj"]
        print(logits, scores, both, values)
        tokenizer: Tokenizer = model.tokenizer
        ids: list[int] = tokenizer.encode("a")
        text = tokenizer.apply_chat_template(messages, tokenize=False)
        prompt: list[int] = tokenizer.apply_chat_template(messages)
        print(tokenizer.batch_decode([ids]), tokenizer.eos_token_id, len(tokenizer), text, prompt, tokenizer.decode(np.array(ids)))
        model.load_state_dict({"a": np.zeros(3, np.float32)})
        model.reload("b.pth")
