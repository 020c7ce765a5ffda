"""Writes the values of a forward pass in PyTorch as `minimind trace` does: write_trace.py CASE OUT.safetensors [IDS]

CASE is a golden case, a folder with case.json; IDS are token ids such as 1,320,402 (default: those of the case).
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

import model as twin
from checkpoint import read_case, twin_of


def trace(model: twin.MiniMind, tokens: list[int]) -> dict[str, Tensor]:
    """Returns what forward hooks see: outputs of modules and some inputs, without the dimension of the batch."""
    values: dict[str, Tensor] = {}

    def keep(name: str, tensor: Tensor) -> None:
        values[name] = tensor.flatten(0, -2 if tensor.dim() < 4 else 1).clone()

    def add_hooks(name: str, module: torch.nn.Module) -> None:
        whole = not list(module.children()) or isinstance(module, (twin.Layer, twin.MixtureOfExperts))
        if whole:
            module.register_forward_hook(lambda module, inputs, output: keep(name, output))
        if name.endswith(("o_proj", "down_proj", "post_attention_layernorm")):
            module.register_forward_pre_hook(lambda module, inputs: keep(f"{name}.input", inputs[0]))

    for name, module in model.named_modules():
        add_hooks(name, module)
    with torch.inference_mode():
        model(torch.tensor([tokens]))
    return values


def trace_with_attention(model: twin.MiniMind, tokens: list[int]) -> dict[str, Tensor]:
    """Returns the same with what no module returns: RoPE, scores and weights of attention, the choice of experts."""
    found: list[Tensor] = []
    rotate, softmax = twin.rotate, Tensor.softmax

    def keep(value: Tensor) -> Tensor:
        found.append(value.squeeze(0).transpose(0, 1).clone())  # [tokens, heads, ...]
        return value

    def keep_softmax(x: Tensor, dim: int) -> Tensor:
        weights = softmax(x, dim)
        if x.dim() == 4:  # not the router's
            keep(x.masked_fill(x == -torch.inf, 0))
            keep(weights)
        return weights

    twin.rotate = lambda *arguments: keep(rotate(*arguments))
    Tensor.softmax = keep_softmax
    try:
        values = trace(model, tokens)
    finally:
        twin.rotate, Tensor.softmax = rotate, softmax
    names = ("q_rope", "k_rope", "scores", "weights")
    layers = [f"model.layers.{index}." for index in range(model.config.num_hidden_layers)]
    values |= zip([f"{layer}self_attn.{name}" for layer in layers for name in names], found, strict=True)
    for layer in layers if model.config.num_experts else []:
        values |= choice_of_experts(model.config, values[layer + "mlp.gate"], layer + "mlp.experts.")
    return values


def choice_of_experts(config: twin.Config, scores: Tensor, prefix: str) -> dict[str, Tensor]:
    weights, chosen = scores.softmax(-1).topk(config.num_experts_per_tok, -1)
    if config.norm_topk_prob and (config.num_experts_per_tok > 1 or config.norm_single_expert):
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
    return {f"{prefix}chosen": chosen.float(), f"{prefix}weights": weights}


def save(values: dict[str, Tensor], tokens: list[int], name: str, path: Path) -> None:
    """Saves a trace. An expert that no token chose has no values."""
    found = {name: value.contiguous() for name, value in values.items() if value.numel() > 0}
    save_file(found, path, {"tokens": ",".join(map(str, tokens)), "model": name})


def main(folder: Path, out: Path, ids: str = "") -> None:
    case = read_case(folder)
    tokens = [int(token) for token in ids.split(",")] if ids else case["tokens"]
    save(trace_with_attention(twin_of(folder, case), tokens), tokens, folder.name, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
