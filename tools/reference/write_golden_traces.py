"""Writes tests/golden_traces: python tools/reference/write_golden_traces.py

Traces of golden cases, of their first tokens, and traces of a twin in which one thing was changed on purpose.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch.nn.functional as F

from checkpoint import read_case, twin_of
from model import MiniMind
from write_trace import save, trace_with_attention

ROOT = Path(__file__).resolve().parents[2]
TOKENS = 6
RIGHT = ["v1-moe", "v2-early-dense", "v2-moe", "v3-dense", "v3-moe", "v3-plain-gelu-bias"]


def change_eps(model: MiniMind) -> None:
    for layer in model.model.layers:
        layer.input_layernorm.eps = 1e-5


def change_rope_layout(model: MiniMind) -> None:
    for layer in model.model.layers:
        attention = layer.self_attn
        attention.config = replace(attention.config, rope_adjacent_pairs=not attention.config.rope_adjacent_pairs)


def normalize_all_heads_at_once(model: MiniMind) -> None:
    for layer in model.model.layers:
        norm = layer.self_attn.q_norm
        norm.forward = lambda x, norm=norm: norm.weight * F.rms_norm(x, x.shape[-2:], eps=norm.eps)


def swap_experts(model: MiniMind) -> None:
    for layer in model.model.layers:
        experts = layer.mlp.experts
        experts[1], experts[3] = experts[3], experts[1]


def transpose_o_proj(model: MiniMind) -> None:
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight.data = layer.self_attn.o_proj.weight.data.T.contiguous()


def change_activation(model: MiniMind) -> None:
    for layer in model.model.layers:
        layer.mlp.activation = F.gelu


CHANGES: dict[str, tuple[str, Callable[[MiniMind], None]]] = {
    "eps": ("v3-dense", change_eps),
    "rope-layout": ("v3-dense", change_rope_layout),
    "q-norm": ("v3-dense", normalize_all_heads_at_once),
    "experts-order": ("v3-moe", swap_experts),
    "transposed": ("v3-dense", transpose_o_proj),
    "activation": ("v3-dense", change_activation),
}


def write(case_name: str, change: Callable[[MiniMind], None] | None, name: str) -> None:
    folder = ROOT / "tests" / "golden" / case_name
    case = read_case(folder)
    model, tokens = twin_of(folder, case), case["tokens"][:TOKENS]
    if change:
        change(model)
    values = trace_with_attention(model, tokens)
    if change:  # what follows the first layer differs, too
        first = ("model.embed", "model.layers.0")
        values = {point: value for point, value in values.items() if point.startswith(first)}
    save(values, tokens, case_name, ROOT / "tests" / "golden_traces" / f"{name}.safetensors")


if __name__ == "__main__":
    for right in RIGHT:
        write(right, None, right)
    for change_name, (case_name, change) in CHANGES.items():
        write(case_name, change, f"changed-{change_name}")
