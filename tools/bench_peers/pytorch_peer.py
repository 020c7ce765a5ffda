"""Measures PyTorch: python pytorch_peer.py FOLDER --dtype f16 --threads N ...

FOLDER is written by `minimind convert MODEL FOLDER/`. The modules are those of the twin in tools/reference. Three things
make it faster than the twin: a preallocated cache, fused attention and norms, and logits of the last token only. It runs
in eager mode, as MiniMind does.
"""

import json
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

sys.path.append(str(Path(__file__).resolve().parent.parent / "reference"))
from checkpoint import read_tensors, twin_of  # noqa: E402
from model import Attention, MiniMind, RMSNorm, rope_tables, rotate  # noqa: E402

from peer import arguments, longest_context, report  # noqa: E402

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def load(folder: Path) -> MiniMind:
    config = json.loads((folder / "config.json").read_text())
    config["use_moe"] = config.get("use_moe", config["model_type"] == "qwen3_moe")
    has_q_norm = any(name.endswith("q_norm.weight") for name in read_tensors(folder))
    return twin_of(folder, {"family": "v3" if has_q_norm else "v2", "config": config})


def norm(module: RMSNorm, x: Tensor) -> Tensor:
    return F.rms_norm(x, x.shape[-1:], module.weight, module.eps)


class PyTorch:
    def __init__(self, model: MiniMind, dtype: torch.dtype, positions: int):
        config = model.config
        self.model = model.to(dtype)
        self.vocab_size = config.vocab_size
        self.cos, self.sin = (table.to(dtype) for table in rope_tables(config, positions))
        shape = (config.num_hidden_layers, 2, 1, config.num_key_value_heads, positions, config.head_dim)
        self.cache = torch.zeros(shape, dtype=dtype)
        self.position = 0

    def rewind(self, position: int) -> None:
        self.position = position

    @torch.inference_mode()
    def run(self, tokens: list[int]) -> Tensor:
        """Returns the logits of the last token, [1, vocab_size]."""
        if len(tokens) > 1 and self.position > 0:
            raise ValueError("only the first batch may hold several tokens")
        body = self.model.model
        x = body.embed_tokens(torch.tensor([tokens]))
        for layer, cache in zip(body.layers, self.cache):
            x = x + self.attend(layer.self_attn, norm(layer.input_layernorm, x), cache)
            x = x + layer.mlp(norm(layer.post_attention_layernorm, x))
        self.position += len(tokens)
        return self.model.lm_head(norm(body.norm, x[:, -1]))

    def attend(self, attention: Attention, x: Tensor, cache: Tensor) -> Tensor:
        c = attention.config
        _, length, _ = x.shape
        begin, end = self.position, self.position + length
        q = attention.q_proj(x).view(1, length, c.num_attention_heads, c.head_dim)
        k = attention.k_proj(x).view(1, length, c.num_key_value_heads, c.head_dim)
        v = attention.v_proj(x).view(1, length, c.num_key_value_heads, c.head_dim)
        if c.qk_norm:
            q, k = norm(attention.q_norm, q), norm(attention.k_norm, k)
        cos, sin = self.cos[begin:end], self.sin[begin:end]
        q = rotate(q.transpose(1, 2), cos, sin, c.rope_adjacent_pairs)
        cache[0, :, :, begin:end] = rotate(k.transpose(1, 2), cos, sin, c.rope_adjacent_pairs)
        cache[1, :, :, begin:end] = v.transpose(1, 2)
        keys, values = cache[0, :, :, :end], cache[1, :, :, :end]
        out = F.scaled_dot_product_attention(q, keys, values, is_causal=length > 1, enable_gqa=True)
        return attention.o_proj(out.transpose(1, 2).reshape(1, length, -1))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--dtype", choices=DTYPES, required=True)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    engine = PyTorch(load(Path(options.model)), DTYPES[options.dtype], longest_context(options))
    report(torch.__version__, engine, options)


if __name__ == "__main__":
    main()
