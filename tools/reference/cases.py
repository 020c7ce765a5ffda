"""The golden cases: one small checkpoint for each kind of file content and configuration."""

from dataclasses import dataclass, field

import torch


@dataclass(frozen=True)
class Case:
    name: str
    family: str  # v1, v2-early, v2 or v3: names, RoPE and routing
    config: dict  # as MiniMind's own code of that generation spells it
    layout: str = "pth"  # a format of layouts.py
    dtype: torch.dtype = torch.float16
    tied: str = "copy"  # a tied lm_head: a "copy" as MiniMind saves it, "shared" storage, or only the embedding "once"
    lora_modules: tuple[str, ...] = ()
    lora_dtype: torch.dtype = torch.float32
    gated_mlp: bool = True
    mlp_bias: bool = False
    causal_mask_buffer: bool = False  # some published v1 files have one per layer
    hugging_face: dict = field(default_factory=dict)  # config.json of a llama, qwen3 or qwen3_moe folder


def v1(**changes) -> dict:
    """A .pth does not store the number of heads. minimind assumes 16 and 8 for v1, so these cases use them."""
    base = {"dim": 64, "n_layers": 2, "n_heads": 16, "n_kv_heads": 8, "vocab_size": 96, "hidden_dim": 24}
    base |= {"multiple_of": 64, "norm_eps": 1e-5, "max_seq_len": 512, "use_moe": False}
    return base | changes


def v2_early(**changes) -> dict:
    return v1(dim=32, n_heads=8, n_kv_heads=2, rope_theta=1e6) | changes


def v2(**changes) -> dict:
    base = {"vocab_size": 96, "hidden_size": 32, "intermediate_size": 24, "num_hidden_layers": 2}
    base |= {"num_attention_heads": 8, "num_key_value_heads": 2, "max_position_embeddings": 32768}
    base |= {"hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 1e6, "inference_rope_scaling": False}
    return base | {"use_moe": False, "bos_token_id": 1, "eos_token_id": 2} | changes


def v3(**changes) -> dict:
    base = {"vocab_size": 96, "hidden_size": 32, "intermediate_size": 24, "num_hidden_layers": 2}
    base |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 32768}
    base |= {"hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 1e6, "inference_rope_scaling": False}
    return base | {"tie_word_embeddings": True, "use_moe": False, "bos_token_id": 1, "eos_token_id": 2} | changes


V1_EXPERTS = {"use_moe": True, "num_experts_per_tok": 2, "n_routed_experts": 4, "norm_topk_prob": True}
V2_EXPERTS = V1_EXPERTS | {"n_shared_experts": 1, "scoring_func": "softmax"}
V3_EXPERTS = {"use_moe": True, "num_experts": 4, "num_experts_per_tok": 1, "moe_intermediate_size": 24}
V3_EXPERTS |= {"norm_topk_prob": True}
YARN = {"inference_rope_scaling": True, "rope_scaling": {"type": "yarn", "factor": 16, "beta_fast": 32, "beta_slow": 1}}
YARN["rope_scaling"] |= {"original_max_position_embeddings": 2048, "attention_factor": 1.0}
ATTENTION_LORA = ("self_attn.q_proj", "self_attn.o_proj")  # the square projections, as MiniMind picks them
ALL_LORA = (*ATTENTION_LORA, "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")

LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "rope_theta": 1e6, "torch_dtype": "float16"}
QWEN3 = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "rope_theta": 1e6, "torch_dtype": "float16"}
QWEN3_MOE = QWEN3 | {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"]}
QWEN3_MOE |= {"decoder_sparse_step": 1, "mlp_only_layers": []}
QWEN3_MOE_5 = {key: value for key, value in QWEN3_MOE.items() if key not in ("rope_theta", "torch_dtype")}
QWEN3_MOE_5 |= {"rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}, "dtype": "float16"}

FIVE_EXPERTS = {"hidden_size": 48, "num_hidden_layers": 1, "num_attention_heads": 6, "intermediate_size": 75}
FIVE_EXPERTS |= {"use_moe": True, "n_routed_experts": 5, "num_experts_per_tok": 3, "n_shared_experts": 2}
FIVE_EXPERTS |= {"norm_topk_prob": False, "scoring_func": "softmax"}
ODD = {"hidden_size": 36, "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 10, "intermediate_size": 53}
BIN = {"layout": "bin", "tied": "shared"}
PLAIN = BIN | {"gated_mlp": False}

CASES = [
    Case("v1-dense", "v1", v1()),
    Case("v1-moe", "v1", v1(**V1_EXPERTS, n_shared_experts=True, dim=32), causal_mask_buffer=True),
    Case("v2-early-dense", "v2-early", v2_early()),
    Case("v2-dense", "v2", v2(), tied="shared"),
    Case("v2-moe", "v2", v2(**V2_EXPERTS)),
    Case("v2-moe-5-experts", "v2", v2(**FIVE_EXPERTS), layout="bin", tied="once"),
    Case("v2-yarn", "v2", v2(**YARN, hidden_size=48)),
    Case("v2-lora", "v2", v2(), lora_modules=ATTENTION_LORA),
    Case("v3-dense", "v3", v3()),
    Case("v3-moe", "v3", v3(**V3_EXPERTS)),
    Case("v3-bf16", "v3", v3(), dtype=torch.bfloat16, tied="once"),
    Case("v3-fp32", "v3", v3(), dtype=torch.float32),
    Case("v3-yarn", "v3", v3(**YARN, head_dim=16)),
    Case("v3-lora", "v3", v3(), lora_modules=ALL_LORA, lora_dtype=torch.float16),
    Case("v3-untied", "v3", v3(tie_word_embeddings=False), **BIN),
    Case("v3-odd", "v3", v3(**ODD), **BIN),
    Case("v3-legacy-pth", "v3", v3(), layout="legacy-pth"),
    Case("v3-resume", "v3", v3(), layout="resume-pth"),
    Case("v3-ddp-prefix", "v3", v3(), layout="ddp-pth"),
    Case("v3-compile-prefix", "v3", v3(), layout="compile-pth"),
    Case("hf-llama", "v2", v2(), layout="safetensors", hugging_face=LLAMA),
    Case("hf-qwen3-sharded", "v3", v3(), layout="sharded", hugging_face=QWEN3),
    Case("hf-qwen3-moe", "v3", v3(**V3_EXPERTS | {"num_experts_per_tok": 2}), "safetensors", hugging_face=QWEN3_MOE),
    Case("hf-qwen3-moe-fused", "v3", v3(**V3_EXPERTS | {"norm_topk_prob": False}), "fused", hugging_face=QWEN3_MOE_5),
    Case("v3-glu-relu", "v3", v3(hidden_act="relu"), **BIN),
    Case("v3-glu-gelu", "v3", v3(hidden_act="gelu"), **BIN),
    Case("v3-glu-gelu-tanh", "v3", v3(hidden_act="gelu_pytorch_tanh"), **BIN),
    Case("v3-glu-sigmoid", "v3", v3(hidden_act="sigmoid"), **BIN),
    Case("v3-glu-linear", "v3", v3(hidden_act="linear"), **BIN),
    Case("v3-plain-relu", "v3", v3(hidden_act="relu"), **PLAIN),
    Case("v3-plain-gelu-bias", "v3", v3(hidden_act="gelu", mlp_bias=True), mlp_bias=True, **PLAIN),
    Case("v1-plain-relu", "v1", v1(dim=32, n_heads=4, n_kv_heads=2, hidden_act="relu"), **PLAIN),
]
