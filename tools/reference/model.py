"""A readable PyTorch twin of MiniMind's forward pass, for every generation.

One full pass over a batch of token rows of equal length: no cache, no sampling, float32 by default.
The modules have the names of v2, v3, llama and qwen3; `checkpoint.py` maps them to the names of each family.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ACTIVATIONS = {
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "linear": lambda x: x,
}


@dataclass(frozen=True)
class Yarn:
    """Long-context frequencies. They change every position, also those of short texts."""

    factor: float = 16.0
    original_max_position_embeddings: int = 2048
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float = 1.0


@dataclass(frozen=True)
class Config:
    """Hyper-parameters under their Hugging Face names; the defaults are those of MiniMind-3."""

    vocab_size: int = 6400
    hidden_size: int = 768
    num_hidden_layers: int = 8
    num_attention_heads: int = 8
    num_key_value_heads: int = 4
    head_dim: int = 96
    intermediate_size: int = 2432  # of one expert in a MoE model
    rms_norm_eps: float = 1e-6
    rope_theta: float = 1e6
    rope_adjacent_pairs: bool = False  # v1 and v2-early pair (x0, x1), (x2, x3) ...; the others (x0, xd/2) ...
    yarn: Yarn | None = None
    qk_norm: bool = True
    tie_word_embeddings: bool = True
    hidden_act: str = "silu"
    gated_mlp: bool = True  # False: down(act(up(x))), two matrices per layer
    mlp_bias: bool = False
    num_experts: int = 0  # 0: dense
    num_experts_per_tok: int = 1
    num_shared_experts: int = 0
    norm_topk_prob: bool = True
    norm_single_expert: bool = True  # False in v1 and v2: the weight of a single expert (top-1) stays the softmax value


class RMSNorm(nn.Module):
    def __init__(self, size: int, eps: float):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


def rope_frequencies(config: Config) -> Tensor:
    """Returns the radians per position of each of the head_dim / 2 rotated planes, in float32."""
    dim, theta = config.head_dim, config.rope_theta
    frequencies = 1.0 / theta ** (torch.arange(0, dim, 2).float() / dim)
    if config.yarn is None:
        return frequencies
    yarn = config.yarn

    def plane_of(rotations: float) -> float:
        """Returns the index of the plane with this number of rotations over the original context."""
        return dim * math.log(yarn.original_max_position_embeddings / (rotations * 2 * math.pi)) / (2 * math.log(theta))

    low = max(math.floor(plane_of(yarn.beta_fast)), 0)
    high = min(math.ceil(plane_of(yarn.beta_slow)), dim // 2 - 1)
    ramp = ((torch.arange(dim // 2).float() - low) / max(high - low, 0.001)).clamp(0, 1)
    return frequencies * (1 - ramp + ramp / yarn.factor)


def rope_tables(config: Config, length: int) -> tuple[Tensor, Tensor]:
    """Returns cos and sin, each [length, head_dim / 2]."""
    angles = torch.outer(torch.arange(length).float(), rope_frequencies(config))
    scale = config.yarn.attention_factor if config.yarn else 1.0
    return angles.cos() * scale, angles.sin() * scale


def rotate(x: Tensor, cos: Tensor, sin: Tensor, adjacent_pairs: bool) -> Tensor:
    """Rotates each plane of x [..., length, head_dim] by its angle."""
    if adjacent_pairs:
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


class Attention(nn.Module):
    """Causal grouped-query attention; q_norm and k_norm act on each head before the rotation."""

    def __init__(self, config: Config):
        super().__init__()
        c = self.config = config
        self.q_proj = nn.Linear(c.hidden_size, c.num_attention_heads * c.head_dim, bias=False)
        self.k_proj = nn.Linear(c.hidden_size, c.num_key_value_heads * c.head_dim, bias=False)
        self.v_proj = nn.Linear(c.hidden_size, c.num_key_value_heads * c.head_dim, bias=False)
        self.o_proj = nn.Linear(c.num_attention_heads * c.head_dim, c.hidden_size, bias=False)
        if c.qk_norm:
            self.q_norm = RMSNorm(c.head_dim, c.rms_norm_eps)
            self.k_norm = RMSNorm(c.head_dim, c.rms_norm_eps)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        c = self.config
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, c.num_attention_heads, c.head_dim)
        k = self.k_proj(x).view(batch, length, c.num_key_value_heads, c.head_dim)
        v = self.v_proj(x).view(batch, length, c.num_key_value_heads, c.head_dim)
        if c.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))  # [batch, heads, length, head_dim]
        q = rotate(q, cos, sin, c.rope_adjacent_pairs)
        k = rotate(k, cos, sin, c.rope_adjacent_pairs)
        group = c.num_attention_heads // c.num_key_value_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(c.head_dim)
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -math.inf).softmax(-1)
        return self.o_proj((weights @ v).transpose(1, 2).reshape(batch, length, -1))


class FeedForward(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        c = config
        self.activation = ACTIVATIONS[c.hidden_act]
        self.gate_proj = nn.Linear(c.hidden_size, c.intermediate_size, bias=c.mlp_bias) if c.gated_mlp else None
        self.up_proj = nn.Linear(c.hidden_size, c.intermediate_size, bias=c.mlp_bias)
        self.down_proj = nn.Linear(c.intermediate_size, c.hidden_size, bias=c.mlp_bias)

    def forward(self, x: Tensor) -> Tensor:
        if self.gate_proj is None:
            return self.down_proj(self.activation(self.up_proj(x)))
        return self.down_proj(self.activation(self.gate_proj(x)) * self.up_proj(x))


class MixtureOfExperts(nn.Module):
    """Softmax over all experts, then the best k of them; shared experts add their output unweighted."""

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.gate = nn.Linear(config.hidden_size, config.num_experts, bias=False)
        self.experts = nn.ModuleList(FeedForward(config) for _ in range(config.num_experts))
        self.shared_experts = nn.ModuleList(FeedForward(config) for _ in range(config.num_shared_experts))

    def forward(self, x: Tensor) -> Tensor:
        c = self.config
        weights, chosen = self.gate(x).softmax(-1).topk(c.num_experts_per_tok, -1)
        if c.norm_topk_prob and (c.num_experts_per_tok > 1 or c.norm_single_expert):
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        y = torch.zeros_like(x)
        for index, expert in enumerate(self.experts):
            weight = (weights * (chosen == index)).sum(-1)
            rows = (chosen == index).any(-1)
            y[rows] += weight[rows].unsqueeze(-1) * expert(x[rows])
        return y + sum(expert(x) for expert in self.shared_experts)


class Layer(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.self_attn = Attention(config)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MixtureOfExperts(config) if config.num_experts else FeedForward(config)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, tokens: Tensor) -> Tensor:
        cos, sin = rope_tables(self.config, tokens.shape[1])
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x)


class MiniMind(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.model = Body(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        """Returns the logits [batch, length, vocab_size] of tokens [batch, length]."""
        return self.lm_head(self.model(tokens))

    @torch.inference_mode()
    def greedy(self, prompt: list[int], count: int) -> list[int]:
        """Returns the next `count` tokens, each with the largest logit; continues after end-of-text."""
        tokens = list(prompt)
        for _ in range(count):
            tokens.append(int(self(torch.tensor([tokens]))[0, -1].argmax()))
        return tokens[len(prompt) :]
