"""Shows that greedy text equals PyTorch's: python greedy.py out/full_sft_768.pth --text 秦始皇的功绩包括

MODEL is a checkpoint of any generation of MiniMind, dense or with experts: a .pth, .bin or .safetensors file, or a folder.
PyTorch runs the model of tools/reference in float32 and computes every token from the whole text before it. Its
hyper-parameters are those of a case.json or config.json next to MODEL; otherwise those of the tensors and MiniMind's defaults.

The exit status is 1 if a token differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import List, Tuple

sys.path.append(str(Path(__file__).resolve().parents[2] / "reference"))
from checkpoint import names_old_way, read_tensors, twin_of  # noqa: E402

from minimind_cpp import Model, SamplingParams  # noqa: E402


def inferred_config(path: Path, model: Model) -> dict:
    """MiniMind's config of a checkpoint that has none, by its shapes and the defaults of its generation."""
    old, experts = names_old_way(model.family), model.experts
    first = "feed_forward" if old else "mlp"
    state = read_tensors(path)
    sizes = [
        tensor.shape[0]
        for name, tensor in state.items()
        if f".0.{first}." in name and name.endswith(("w3.weight", "up_proj.weight")) and "shared" not in name
    ]
    return {
        "vocab_size": model.vocab_size, "hidden_size": model.hidden_size, "num_hidden_layers": model.layers,
        "num_attention_heads": model.heads, "num_key_value_heads": model.kv_heads, "head_dim": model.head_dim,
        "intermediate_size": sizes[0], "use_moe": experts > 0, "num_experts": experts, "n_routed_experts": experts,
        "num_experts_per_tok": 1 if model.family == "v3" else 2, "rms_norm_eps": 1e-6 if model.family == "v3" else 1e-5,
        "n_shared_experts": int(any("shared_experts" in name for name in state)),
    }  # fmt: skip


def case_of(path: Path) -> dict:
    """A reference case next to the checkpoint: its family, config and LoRA file; empty if there is none."""
    file = (path if path.is_dir() else path.parent) / "case.json"
    return json.loads(file.read_text()) if file.exists() else {}


def greedy_tokens(path: Path, ids: List[int], text: str, count: int) -> Tuple[List[int], List[int]]:
    """The next `count` tokens by minimind_cpp and by PyTorch, which do not end at the end of the text."""
    case = case_of(path)
    model = Model(
        path,
        lora=[str(path.with_name(case["lora"]))] if "lora" in case else (),
        rope_scaling="yarn" if case.get("config", {}).get("inference_rope_scaling") else None,
    )
    if not case:
        config = (path if path.is_dir() else path.parent) / "config.json"
        case = {"family": model.family}
        case["config"] = json.loads(config.read_text()) if config.exists() else inferred_config(path, model)
    if not ids:
        ids = model.tokenizer.encode_prompt(text) if text else case["tokens"][: case["prompt_len"]]
    ours = model.generate(ids, SamplingParams(temperature=0, max_tokens=count, ignore_eos=True))
    return ours.ids.tolist(), twin_of(path, case).greedy(ids, count)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL")
    prompt = parser.add_mutually_exclusive_group()
    prompt.add_argument("--text", default="", help="the prompt")
    prompt.add_argument("--ids", default="", help="its ids, such as 1,320,402; without a prompt those of case.json")
    parser.add_argument("--tokens", type=int, default=40)
    options = parser.parse_args()
    ids = [int(token) for token in options.ids.split(",") if token]
    ours, pytorch = greedy_tokens(options.model, ids, options.text, options.tokens)
    print("minimind_cpp", *ours)
    print("PyTorch     ", *pytorch)
    print("equal" if ours == pytorch else "different", len(ours), "tokens")
    return int(ours != pytorch)


if __name__ == "__main__":
    sys.exit(main())
