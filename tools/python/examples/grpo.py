"""GRPO with minimind_cpp's rollouts next to those of PyTorch: python grpo.py --shape 3 --prompt 256 --tokens 256 --compare

Each step samples a group of completions for one prompt, rewards a completion by its share of even token ids, and makes one
step of the optimizer. The new weights go to minimind_cpp by load_state_dict. With --compare, PyTorch's generate() samples a
group of the same size, too, and the time of both is printed: a rollout is the completions with the log-probability of each
token under the policy. All completions then have --tokens tokens, so that both do the same work. The log-probabilities of
minimind_cpp are always compared with PyTorch's of the same tokens.

--minimind CHECKOUT trains the class of MiniMind's source tree with its own generate(); otherwise the class is that of
transformers to which MiniMind exports its models.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List

import torch
from torch import Tensor

from minimind_cpp import Completion, Model, SamplingParams
from policies import SHAPES, new_policy, save_policy

SAMPLING = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}  # from the policy itself


@dataclass
class Step:
    reward: float
    difference: float  # largest, of the log-probabilities by minimind_cpp and by PyTorch
    load_seconds: float  # new weights to minimind_cpp
    rollout_seconds: float
    pytorch_seconds: float  # NaN unless compared


def log_probabilities(policy: torch.nn.Module, ids: Tensor, prompt_size: int) -> Tensor:
    """Of the tokens after the prompt, [texts, tokens], for ids [texts, prompt and tokens]."""
    logits = policy(input_ids=ids).logits[:, prompt_size - 1 : -1]
    return logits.log_softmax(-1).gather(-1, ids[:, prompt_size:, None])[..., 0]


def pytorch_rollout(policy: torch.nn.Module, prompt: Tensor, group: int, tokens: int) -> Tensor:
    """Log-probabilities of completions by PyTorch's generate(), which has a cache of keys and values."""
    ids = prompt.repeat(group, 1)
    with torch.no_grad():
        written = policy.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, do_sample=True, eos_token_id=None,
            **SAMPLING,
        )  # fmt: skip
        return log_probabilities(policy, written, len(prompt))


def pad(completions: List[Completion], prompt: Tensor) -> "tuple[Tensor, Tensor]":
    """Ids [texts, prompt and longest completion], and 1 for each token of a completion, else 0."""
    longest = max(len(completion.ids) for completion in completions)
    ids = torch.zeros(len(completions), longest, dtype=torch.long)
    mask = torch.zeros(len(completions), longest)
    for row, completion in enumerate(completions):
        ids[row, : len(completion.ids)] = torch.from_numpy(completion.ids)
        mask[row, : len(completion.ids)] = 1
    return torch.cat((prompt.repeat(len(completions), 1), ids), 1), mask


def train(
    policy: torch.nn.Module, model: Model, prompt: Tensor, *, steps: int, group: int, tokens: int, compare: bool, rate: float
) -> Iterator[Step]:
    optimizer = torch.optim.AdamW(policy.parameters(), lr=rate)
    for step in range(steps):
        start = time.perf_counter()
        model.load_state_dict(policy.state_dict())
        loaded = time.perf_counter()
        params = SamplingParams(n=group, logprobs=0, max_tokens=tokens, seed=step * group, ignore_eos=compare, **SAMPLING)
        completions = model.generate_batch([prompt.numpy()], params)
        rolled_out = time.perf_counter()
        if compare:
            pytorch_rollout(policy, prompt, group, tokens)
        pytorch_seconds = time.perf_counter() - rolled_out if compare else float("nan")

        ids, mask = pad(completions, prompt)
        rewards = torch.tensor([float((completion.ids % 2 == 0).mean()) for completion in completions])
        advantages = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
        old = torch.zeros_like(mask)
        for row, completion in enumerate(completions):
            old[row, : len(completion.ids)] = torch.from_numpy(completion.log_probabilities)
        new = log_probabilities(policy, ids, len(prompt))
        ratio = (new - old).exp()
        gain = torch.minimum(ratio * advantages[:, None], ratio.clamp(0.8, 1.2) * advantages[:, None])
        loss = -((gain * mask).sum(1) / mask.sum(1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        difference = float(((new - old).abs() * mask).detach().max())
        yield Step(float(rewards.mean()), difference, loaded - start, rolled_out - loaded, pytorch_seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="3")
    parser.add_argument("--minimind", type=Path, metavar="CHECKOUT")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--prompt", type=int, default=64, help="tokens of the prompt")
    parser.add_argument("--tokens", type=int, default=128, help="most tokens of a completion")
    parser.add_argument("--rate", type=float, default=1e-4, help="of learning")
    parser.add_argument("--compare", action="store_true")
    options = parser.parse_args()
    policy = new_policy(options.shape, options.minimind)
    prompt = torch.randint(3, policy.config.vocab_size, (options.prompt,))
    with tempfile.TemporaryDirectory() as folder:
        model = Model(save_policy(policy, Path(folder)), type="f32", parallel=options.group)
    print("step  reward  difference  load s  rollout s  PyTorch s  times sooner")
    steps = train(
        policy, model, prompt, steps=options.steps, group=options.group, tokens=options.tokens, compare=options.compare,
        rate=options.rate,
    )  # fmt: skip
    for index, step in enumerate(steps, 1):
        times = step.pytorch_seconds / (step.load_seconds + step.rollout_seconds)
        print(
            f"{index:4}  {step.reward:6.3f}  {step.difference:10.1e}  {step.load_seconds:6.3f}  {step.rollout_seconds:9.3f}  "
            f"{step.pytorch_seconds:9.3f}  {times:12.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
