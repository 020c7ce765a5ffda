"""lm-evaluation-harness with minimind_cpp: python harness.py out/full_sft_768.pth --tasks piqa,arc_easy

MiniMindLM is a model class of lm_eval, for lm_eval.simple_evaluate(model=MiniMindLM(Model(...)), tasks=[...]). A text without a
context follows bos_token; a context is encoded as it is. So the sums are those of `minimind perplexity` and of lm_eval's
local-completions with `minimind serve`.
"""

from __future__ import annotations

import argparse
from typing import Any, List, Tuple

import lm_eval
import numpy as np
from lm_eval.api.model import TemplateLM
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window, make_table

from minimind_cpp import Model, SamplingParams


class MiniMindLM(TemplateLM):
    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model, self.tokenizer = model, model.tokenizer

    @property
    def eot_token_id(self) -> int:  # what a text without a context follows
        return self.tokenizer.encode_prompt("")[0]

    def tok_encode(self, string: str, **_: Any) -> List[int]:
        return self.tokenizer.encode(string, add_special_tokens=False)

    def _loglikelihood_tokens(self, requests: List[Any], **_: Any) -> List[Tuple[float, bool]]:
        """Of continuations, and whether they are greedy."""
        return [self.score(context, continuation) for _, context, continuation in requests]

    def score(self, context: List[int], continuation: List[int]) -> Tuple[float, bool]:
        ids = (context + continuation)[-self.model.context_length - 1 :]  # the last one is only scored
        logits = self.model.logits(ids[:-1])[-len(continuation) :].astype(np.float64)
        chosen = np.array(continuation[-len(logits) :])
        largest = logits.max(-1)
        log_sums = largest + np.log(np.exp(logits - largest[:, None]).sum(-1))
        total = (logits[np.arange(len(chosen)), chosen] - log_sums).sum()
        return float(total), bool((logits.argmax(-1) == chosen).all())

    def loglikelihood_rolling(self, requests: List[Any], disable_tqdm: bool = False) -> List[float]:
        """Of whole texts, in windows of the context length."""
        totals = []
        for (text,) in (request.args for request in requests):
            windows = get_rolling_token_windows(
                self.tok_encode(text), self.eot_token_id, max_seq_len=self.model.context_length, context_len=1
            )
            totals.append(sum(self.score(*make_disjoint_window(window))[0] for window in windows))
        return totals

    def generate_until(self, requests: List[Any], disable_tqdm: bool = False) -> List[str]:
        contexts, options = zip(*(request.args for request in requests))
        params = [
            SamplingParams(
                stop=each.get("until") or [],
                max_tokens=each.get("max_gen_toks", 256),
                temperature=each.get("temperature", 1.0) if each.get("do_sample") else 0,
            )
            for each in options
        ]
        return [written.text for written in self.model.generate_batch(map(self.tok_encode, contexts), params)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--tasks", required=True)
    parser.add_argument("--limit", type=float)
    parser.add_argument("--type", help="of the weights, such as q8_0")
    options = parser.parse_args()
    model = MiniMindLM(Model(options.model, type=options.type))
    print(make_table(lm_eval.simple_evaluate(model=model, tasks=options.tasks.split(","), limit=options.limit)))


if __name__ == "__main__":
    main()
