"""Writes the golden cases: python tools/reference/write_golden.py [OUT] (default: tests/golden).

A case is a checkpoint with random weights, `logits.npy` (float32, [tokens, vocab], computed in float32 from the
stored weights) and `case.json` {family, config, tokens, prompt_len, greedy[, lora]}. The weights have a large variance, so
that logits differ by units. Prompts are sampled until no greedy choice and no choice of experts is close to a tie.
"""

import json
import math
import shutil
import sys
import zlib
from pathlib import Path

import numpy as np
import torch

from cases import CASES, Case
from checkpoint import State, config_from, saved_name, twin_of
from layouts import MINIMIND, hugging_face_config, write_layout
from model import MiniMind, MixtureOfExperts

PROMPT_TOKENS = 12
GREEDY_TOKENS = 8
EMBEDDING_STD = 0.05  # small, so that the epsilon of the first norm changes the logits
LOGIT_STD = 3.0
SMALLEST_GREEDY_MARGIN = 0.05  # between the largest and the second logit
SMALLEST_ROUTING_MARGIN = 0.005  # in probability, between the last chosen expert and the next
DISTINCT_GREEDY_TOKENS = 4
MOST_PROMPTS = 500


def randomize(model: MiniMind, random: torch.Generator, gain: float = 1.5) -> None:
    """Sets random weights: a linear map multiplies the scale of its input by the gain; the last norm sets LOGIT_STD."""
    final_gain = LOGIT_STD / (EMBEDDING_STD * math.sqrt(model.config.hidden_size))
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape, generator=random)
        if name in ("model.embed_tokens.weight", "lm_head.weight"):
            weight.data = EMBEDDING_STD * noise
        elif name == "model.norm.weight":
            weight.data = final_gain * (1 + 0.1 * noise)
        elif name.endswith("norm.weight"):
            weight.data = 1.2 + 0.3 * noise
        elif name.endswith(".bias"):
            weight.data = 0.5 * noise
        else:
            weight.data = gain / math.sqrt(weight.shape[1]) * noise
    if model.config.tie_word_embeddings:
        model.lm_head.weight = model.model.embed_tokens.weight


def stored_state(case: Case, model: MiniMind) -> State:
    """Returns the state dict with the family's names and in the case's type."""
    state = {saved_name(case.family, model.config, n): t.to(case.dtype).clone() for n, t in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        embedding, head = (
            saved_name(case.family, model.config, n) for n in ("model.embed_tokens.weight", "lm_head.weight")
        )
        if case.tied == "once" or case.hugging_face:
            del state[head]
        elif case.tied == "shared":
            state[head] = state[embedding]
    if case.causal_mask_buffer:
        for layer in range(model.config.num_hidden_layers):
            state[f"layers.{layer}.attention.mask"] = torch.full((1, 1, 16, 16), -math.inf, dtype=case.dtype).triu(1)
    return state


def random_lora(case: Case, model: MiniMind, random: torch.Generator, rank: int = 4) -> State:
    lora: State = {}
    for layer in range(model.config.num_hidden_layers):
        for module in case.lora_modules:
            name = f"model.layers.{layer}.{module}"
            rows, columns = model.get_submodule(name).weight.shape
            a = torch.randn(rank, columns, generator=random) / math.sqrt(columns)
            b = torch.randn(rows, rank, generator=random) / math.sqrt(rank)
            lora |= {f"{name}.lora.A.weight": a.to(case.lora_dtype), f"{name}.lora.B.weight": b.to(case.lora_dtype)}
    return lora


def routing_margin(model: MiniMind, tokens: torch.Tensor) -> float:
    """Returns the smallest margin of the choice of experts over all layers and tokens, in probability."""
    margins = [math.inf]

    def observe(router, inputs, logits):
        ranked = logits.softmax(-1).sort(-1, descending=True).values
        chosen = model.config.num_experts_per_tok
        margins.append((ranked[..., chosen - 1] - ranked[..., chosen]).min().item())

    moes = [module for module in model.modules() if isinstance(module, MixtureOfExperts)]
    hooks = [moe.gate.register_forward_hook(observe) for moe in moes]
    model(tokens)
    for hook in hooks:
        hook.remove()
    return min(margins)


@torch.inference_mode()
def sample_tokens(
    model: MiniMind, random: torch.Generator, prompt_len: int, count: int, smallest_routing_margin: float
) -> tuple[dict, np.ndarray]:
    """Returns the token fields of case.json and the logits, for a prompt whose greedy continuation has no near tie."""
    for _ in range(MOST_PROMPTS):
        prompt = torch.randint(model.config.vocab_size, (prompt_len,), generator=random).tolist()
        greedy = model.greedy(prompt, count)
        tokens = torch.tensor([prompt + greedy])
        logits = model(tokens)[0]
        best = logits[prompt_len - 1 : -1].topk(2).values
        margin = (best[:, 0] - best[:, 1]).min()
        clear = margin > SMALLEST_GREEDY_MARGIN and routing_margin(model, tokens) > smallest_routing_margin
        if clear and len(set(greedy)) >= DISTINCT_GREEDY_TOKENS:
            return {"tokens": prompt + greedy, "prompt_len": prompt_len, "greedy": greedy}, logits.numpy()
    raise RuntimeError(f"none of {MOST_PROMPTS} prompts has clear choices")


def write_case(case: Case, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    random = torch.Generator().manual_seed(zlib.crc32(case.name.encode()))
    model = MiniMind(config_from(case.family, case.config, gated_mlp=case.gated_mlp, mlp_bias=case.mlp_bias))
    randomize(model, random)
    config = hugging_face_config(case.config, case.hugging_face) if case.hugging_face else case.config | MINIMIND
    write_layout(case.layout, folder, stored_state(case, model), config)
    described = {"family": case.family, "config": case.config}
    if case.lora_modules:
        torch.save(random_lora(case, model, random), folder / "lora.pth")
        described["lora"] = "lora.pth"
    twin = twin_of(folder, described)
    tokens, logits = sample_tokens(twin, random, PROMPT_TOKENS, GREEDY_TOKENS, SMALLEST_ROUTING_MARGIN)
    (folder / "case.json").write_text(json.dumps(described | tokens) + "\n")
    np.save(folder / "logits.npy", logits)
    print(f"{case.name}: logits {logits.shape}, standard deviation {logits.std():.2f}")


def main() -> None:
    root = Path(__file__).resolve().parent.parent.parent
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else root / "tests" / "golden"
    torch.set_num_threads(1)
    for case in CASES:
        write_case(case, out / case.name)


if __name__ == "__main__":
    main()
