"""Checkpoints as MiniMind and Hugging Face save them: names, configs and files, to and from the twin."""

import json
import math
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from model import Config, MiniMind, Yarn

State = dict[str, Tensor]

V1_NAMES = {
    "model.embed_tokens.weight": "tok_embeddings.weight",
    "model.norm.weight": "norm.weight",
    "lm_head.weight": "output.weight",
}
V1_PARTS = {
    "self_attn": "attention",
    "q_proj": "wq",
    "k_proj": "wk",
    "v_proj": "wv",
    "o_proj": "wo",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp": "feed_forward",
    "gate_proj": "w1",
    "down_proj": "w2",
    "up_proj": "w3",
}
LM_CONFIG_NAMES = {  # the config of v1 and v2-early
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "hidden_dim": "intermediate_size",
    "norm_eps": "rms_norm_eps",
}


def names_old_way(family: str) -> bool:
    return family in ("v1", "v2-early")


def saved_name(family: str, config: Config, name: str) -> str:
    """Returns the name in a checkpoint of the family for a name of the twin."""
    if not names_old_way(family):
        return name
    if name in V1_NAMES:
        return V1_NAMES[name]
    parts = V1_PARTS if config.gated_mlp else V1_PARTS | {"up_proj": "w1"}  # without a gate: w2(act(w1(x)))
    name = name.removeprefix("model.").replace("shared_experts.0.", "shared_experts.")  # v1 has one, unnumbered
    return ".".join(parts.get(part, part) for part in name.split("."))


def feed_forward_size(family: str, hidden_size: int) -> int:
    """Returns MiniMind's default size, for configs without one."""
    wide = math.pi * hidden_size if family == "v3" else int(8 * hidden_size / 3)
    return math.ceil(wide / 64) * 64


def config_from(family: str, raw: dict, *, gated_mlp: bool = True, mlp_bias: bool = False) -> Config:
    """Returns the twin's config for MiniMind's own config of the family, or for a Hugging Face one."""
    raw = {LM_CONFIG_NAMES.get(key, key): value for key, value in raw.items()}
    hidden_size, heads = raw["hidden_size"], raw["num_attention_heads"]
    moe = raw.get("use_moe", False)
    yarn = Yarn() if raw.get("inference_rope_scaling") else None
    if yarn and raw["max_position_embeddings"] <= yarn.original_max_position_embeddings:
        yarn = None  # MiniMind scales only contexts longer than the original
    size = raw.get("intermediate_size") or feed_forward_size(family, hidden_size)
    shared = 0 if family == "v3" else int(raw.get("n_shared_experts") or 0)
    return Config(
        vocab_size=raw["vocab_size"],
        hidden_size=hidden_size,
        num_hidden_layers=raw["num_hidden_layers"],
        num_attention_heads=heads,
        num_key_value_heads=raw["num_key_value_heads"],
        head_dim=raw.get("head_dim") or hidden_size // heads,
        intermediate_size=raw.get("moe_intermediate_size", size) if moe else size,
        rms_norm_eps=raw["rms_norm_eps"],
        rope_theta=raw.get("rope_theta", 1e4 if family == "v1" else 1e6),
        rope_adjacent_pairs=names_old_way(family),
        yarn=yarn,
        qk_norm=family == "v3",
        tie_word_embeddings=raw.get("tie_word_embeddings", True),
        hidden_act=raw.get("hidden_act", "silu"),
        gated_mlp=gated_mlp,
        mlp_bias=mlp_bias,
        num_experts=raw["num_experts" if family == "v3" else "n_routed_experts"] if moe else 0,
        num_experts_per_tok=raw.get("num_experts_per_tok", 1),
        num_shared_experts=shared if moe else 0,
        norm_topk_prob=raw.get("norm_topk_prob", True),
        norm_single_expert=family == "v3",
    )


def read_tensors(checkpoint: Path) -> State:
    """Returns every tensor of a file, or of the checkpoint in a folder, as stored, without wrappers and prefixes."""
    files = [checkpoint]
    if checkpoint.is_dir():
        files = [checkpoint / name for name in ("model.pth", "pytorch_model.bin") if (checkpoint / name).exists()]
        files += sorted(checkpoint.glob("*.safetensors"))
    state: State = {}
    for path in files:
        state |= load_file(path) if path.suffix == ".safetensors" else torch.load(path, weights_only=True)
    if "optimizer" in state:  # a resume file
        state = state["model"]
    return {name.removeprefix("module.").removeprefix("_orig_mod."): tensor for name, tensor in state.items()}


def split_fused_experts(state: State) -> State:
    """Splits the two expert tensors per layer of transformers 5: gate_up_proj [E, 2F, d] and down_proj [E, d, F]."""
    split: State = {}
    for name, tensor in state.items():
        if name.endswith("experts.gate_up_proj"):
            for index, pair in enumerate(tensor):
                prefix = f"{name.removesuffix('gate_up_proj')}{index}."
                split[prefix + "gate_proj.weight"], split[prefix + "up_proj.weight"] = pair.chunk(2)
        elif name.endswith("experts.down_proj"):
            for index, down in enumerate(tensor):
                split[f"{name.removesuffix('down_proj')}{index}.down_proj.weight"] = down
        else:
            split[name] = tensor
    return split


def add_lora(state: State, lora: State) -> State:
    """Returns W + B A in float32."""
    result = {name: tensor.float() for name, tensor in state.items()}
    for name, a in lora.items():
        if name.endswith(".lora.A.weight"):
            module = name.removesuffix(".lora.A.weight")
            result[module + ".weight"] += lora[module + ".lora.B.weight"].float() @ a.float()
    return result


def twin_of(checkpoint: Path, case: dict) -> MiniMind:
    """Returns the twin of the checkpoint in a file or a case folder, in float32, with its LoRA merged."""
    family, state = case["family"], split_fused_experts(read_tensors(checkpoint))
    if "lora" in case:
        folder = checkpoint if checkpoint.is_dir() else checkpoint.parent
        state = add_lora(state, torch.load(folder / case["lora"], weights_only=True))
    gated = any(".gate_proj." in name or ".w3." in name for name in state)
    bias = any(name.endswith(".bias") for name in state)
    config = config_from(family, case["config"], gated_mlp=gated, mlp_bias=bias)
    model = MiniMind(config)
    state = {name: tensor for name, tensor in state.items() if not name.endswith(".mask")}  # v1's causal mask
    names = {saved_name(family, config, name): name for name in model.state_dict()}
    if config.tie_word_embeddings:  # saved once or twice
        embedding, head = (saved_name(family, config, n) for n in ("model.embed_tokens.weight", "lm_head.weight"))
        state.setdefault(head, state[embedding])
    unknown = sorted(set(state) - set(names))
    if unknown:
        raise ValueError(f"{checkpoint}: the twin has no tensor {unknown[0]}")
    model.load_state_dict({name: state[saved].float() for saved, name in names.items()})
    return model.eval()


def read_case(folder: Path) -> dict:
    return json.loads((folder / "case.json").read_text())
