"""Models to train: transformers' classes in the shapes of MiniMind, or the class of a MiniMind checkout itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Optional

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PretrainedConfig, PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

COMMON = {"vocab_size": 6400, "bos_token_id": 1, "eos_token_id": 2, "rope_theta": 1e6, "num_attention_heads": 8}
COMMON |= {"tie_word_embeddings": True, "max_position_embeddings": 32768}
SIZE_3 = {"hidden_size": 768, "num_hidden_layers": 8, "num_key_value_heads": 4, "head_dim": 96, "intermediate_size": 2432}
SIZE_2_SMALL = {"hidden_size": 512, "num_hidden_layers": 8, "num_key_value_heads": 2, "intermediate_size": 1408}
SIZE_TINY = {"hidden_size": 64, "num_hidden_layers": 2, "num_key_value_heads": 4, "head_dim": 8, "intermediate_size": 96}
SHAPES = {
    "3": (Qwen3ForCausalLM, Qwen3Config, SIZE_3 | {"rms_norm_eps": 1e-6}),
    "2-small": (LlamaForCausalLM, LlamaConfig, SIZE_2_SMALL | {"rms_norm_eps": 1e-5}),
    "tiny": (Qwen3ForCausalLM, Qwen3Config, SIZE_TINY | {"rms_norm_eps": 1e-6, "vocab_size": 96}),
}


def new_policy(shape: str, checkout: Optional[Path] = None) -> PreTrainedModel:
    """A model in float32 with random weights. `checkout`: MiniMind's source tree, whose class is used for 3 and tiny."""
    kind, config, settings = SHAPES[shape]
    if checkout is not None:
        if shape == "2-small":
            raise ValueError("2-small is not a shape of a current checkout, expected 3 or tiny")
        sys.path.insert(0, str(checkout))
        from model.model_minimind import MiniMindConfig as config, MiniMindForCausalLM as kind
    torch.manual_seed(0)
    return kind(config(**COMMON | settings)).float().eval()


def save_policy(policy: torch.nn.Module, folder: Path) -> Path:
    """Writes weights and config.json as minimind_cpp.Model opens them."""
    config: PretrainedConfig = policy.config
    torch.save(policy.state_dict(), folder / "pytorch_model.bin")
    config.to_json_file(folder / "config.json")
    return folder
