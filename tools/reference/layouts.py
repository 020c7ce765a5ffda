"""Writes a state dict in each format of MiniMind checkpoints, with the same bytes every time."""

import json
from pathlib import Path
from unittest import mock

import torch
from safetensors.torch import save_file

from checkpoint import State

MINIMIND = {"model_type": "minimind", "architectures": ["MiniMindForCausalLM"], "torch_dtype": "float16"}


def write_layout(layout: str, folder: Path, state: State, config: dict) -> None:
    """Writes the checkpoint, in a folder with its config; a .pth cannot store one."""
    if layout.endswith("pth"):
        write_pth(layout, folder / "model.pth", state)
        return
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    if layout == "bin":
        torch.save(state, folder / "pytorch_model.bin")
    elif layout == "sharded":
        write_shards(folder, state)
    else:
        state = fuse_experts(state) if layout == "fused" else state
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})


def write_pth(layout: str, path: Path, state: State) -> None:
    if layout == "legacy-pth":
        save_legacy(state, path)
    elif layout == "resume-pth":
        torch.save(resume_file(state), path)
    else:
        prefix = {"pth": "", "ddp-pth": "module.", "compile-pth": "_orig_mod."}[layout]
        torch.save({prefix + name: tensor for name, tensor in state.items()}, path)


def save_legacy(state: State, path: Path) -> None:
    """The format before PyTorch 1.6. It names storages by address; consecutive numbers make it repeatable."""
    numbers: dict[int, int] = {}
    number = property(lambda storage: numbers.setdefault(storage.data_ptr(), len(numbers)))
    with mock.patch.object(torch.UntypedStorage, "_cdata", number):
        torch.save(state, path, _use_new_zipfile_serialization=False)


def resume_file(state: State) -> dict:
    """Returns a resume file of MiniMind's trainers: the state next to an optimizer with separate tensors."""
    moments = {"step": torch.tensor(3.0), "exp_avg": torch.ones(4, 4), "exp_avg_sq": torch.ones(4, 4)}
    group = {"lr": 1e-4, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01, "amsgrad": False, "params": [0]}
    optimizer = {"state": {0: moments}, "param_groups": [group]}
    return {"model": state, "optimizer": optimizer, "epoch": 1, "step": 10, "world_size": 1, "wandb_id": None}


def write_shards(folder: Path, state: State) -> None:
    """Writes two files, each with half of the tensors, and the index of tensors by file."""
    names = list(state)
    halves = [names[: len(names) // 2], names[len(names) // 2 :]]
    weight_map = {}
    for number, half in enumerate(halves, 1):
        file = f"model-{number:05}-of-{len(halves):05}.safetensors"
        save_file({name: state[name] for name in half}, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(half, file)
    size = sum(tensor.nbytes for tensor in state.values())
    index = {"metadata": {"total_size": size}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def fuse_experts(state: State) -> State:
    """Joins single experts into the layout of transformers 5: gate_up_proj [E, 2F, d] and down_proj [E, d, F]."""
    fused = {name: tensor for name, tensor in state.items() if ".experts." not in name}
    layers = {name.split(".experts.")[0] for name in state if ".experts." in name}
    for layer in sorted(layers):
        count = sum(name.startswith(f"{layer}.experts.") for name in state) // 3
        gate, up, down = (
            torch.stack([state[f"{layer}.experts.{index}.{matrix}_proj.weight"] for index in range(count)])
            for matrix in ("gate", "up", "down")
        )
        fused[f"{layer}.experts.gate_up_proj"] = torch.cat((gate, up), 1)
        fused[f"{layer}.experts.down_proj"] = down
    return fused


def hugging_face_config(config: dict, model_type: dict) -> dict:
    """Returns a MiniMind v2 or v3 config in transformers' form for llama, qwen3 or qwen3_moe."""
    kept = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    kept += ("num_key_value_heads", "max_position_embeddings", "rms_norm_eps", "hidden_act", "bos_token_id")
    kept += ("eos_token_id",)
    result = {key: config[key] for key in kept}
    result["head_dim"] = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
    result |= {"tie_word_embeddings": config.get("tie_word_embeddings", True), "attention_bias": False}
    if config["use_moe"]:
        experts = ("num_experts", "num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob")
        result |= {key: config[key] for key in experts}
    return result | model_type
