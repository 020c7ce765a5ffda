"""MiniMind's own trainers with rollouts of minimind_cpp: python rollout_engine.py trainer/train_grpo.py [its options]

Runs a trainer of a MiniMind checkout as it is: train_grpo.py, train_ppo.py or train_agent.py. Only its rollout engine is
another: RolloutEngine below has the interface of those in MiniMind's trainer/rollout_engine.py. To use it in a trainer of your
own, write `rollout_engine = RolloutEngine(model, tokenizer)`.
"""

from __future__ import annotations

import runpy
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, List

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from minimind_cpp import Model, SamplingParams


@dataclass
class RolloutResult:
    """B * num_generations completions of up to R tokens, those of a prompt one after another; padded on the right."""

    output_ids: Tensor  # [B * num_generations, P + R], prompts without padding on the left, completions
    completion_ids: Tensor  # [B * num_generations, R]
    per_token_logps: Tensor  # [B * num_generations, R], of the untouched logits
    completions: List[str]
    prompt_lens: Tensor  # [B * num_generations]
    completion_mask: Tensor  # [B * num_generations, R], 1 for each token of a completion


class RolloutEngine:
    """Samples as MiniMind's generate() does unless told otherwise: top_k 50, top_p 0.85."""

    def __init__(self, policy: torch.nn.Module, tokenizer: Any, top_k: int = 50, top_p: float = 0.85) -> None:
        self.tokenizer = tokenizer
        self.sampling = {"top_k": top_k, "top_p": top_p}
        policy = _unwrapped(policy)
        with tempfile.TemporaryDirectory() as folder:
            torch.save(policy.state_dict(), Path(folder, "pytorch_model.bin"))
            policy.config.to_json_file(Path(folder, "config.json"))
            tokenizer.save_pretrained(folder)
            self.model = Model(folder, type="f32")

    def rollout(
        self, prompt_ids: Tensor, attention_mask: Tensor, num_generations: int, max_new_tokens: int, temperature: float = 0.8
    ) -> RolloutResult:
        prompts = [ids[mask.bool()].int().cpu().numpy() for ids, mask in zip(prompt_ids, attention_mask)]
        params = SamplingParams(
            n=num_generations, logprobs=0, temperature=temperature, max_tokens=max_new_tokens,
            seed=int(torch.randint(2**62, ())), **self.sampling,
        )  # fmt: skip
        pairs = [(torch.from_numpy(prompts[text.index]), text) for text in self.model.generate_batch(prompts, params)]
        written = [torch.from_numpy(text.ids) for _, text in pairs]
        return RolloutResult(
            output_ids=self._padded([torch.cat(both) for both in zip((prompt for prompt, _ in pairs), written)], prompt_ids),
            completion_ids=self._padded(written, prompt_ids),
            per_token_logps=pad_sequence([torch.from_numpy(text.log_probabilities) for _, text in pairs], True)
            .float()
            .to(prompt_ids.device),
            completions=[self.tokenizer.decode(ids, skip_special_tokens=True) for ids in written],
            prompt_lens=torch.tensor([len(prompt) for prompt, _ in pairs], device=prompt_ids.device),
            completion_mask=pad_sequence([torch.ones_like(ids) for ids in written], True).to(prompt_ids),
        )

    def update_policy(self, model: torch.nn.Module) -> None:
        self.model.load_state_dict(_unwrapped(model).state_dict())

    def _padded(self, rows: List[Tensor], like: Tensor) -> Tensor:
        return pad_sequence(rows, True, self.tokenizer.pad_token_id).to(like)


def _unwrapped(model: torch.nn.Module) -> torch.nn.Module:
    """The model in DistributedDataParallel and torch.compile."""
    model = getattr(model, "module", model)
    return getattr(model, "_orig_mod", model)


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    trainer = Path(sys.argv[1]).resolve()
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(trainer.parents[1]))
    from trainer import rollout_engine

    rollout_engine.create_rollout_engine = lambda policy_model, tokenizer, **_: RolloutEngine(policy_model, tokenizer)
    runpy.run_path(str(trainer), run_name="__main__")


if __name__ == "__main__":
    main()
