class MiniMindConfig(PretrainedConfig):
    model_type = "minimind"

    def __init__(self, hidden_size: int = 768, num_hidden_layers: int = 8, use_moe: bool = False, **kwargs):
        super().__init__(**kwargs)
        self.dropout = kwargs.get("dropout", 0.0)
        self.num_attention_heads = kwargs.get("num_attention_heads", 8)
        self.head_dim = kwargs.get("head_dim", hidden_size // self.num_attention_heads)
        self.intermediate_size = kwargs.get("intermediate_size", math.ceil(hidden_size * math.pi / 64) * 64)
        self.rope_theta = 1_000_000.0 if not use_moe else 1e4 * 2 ** 3
        self.rope_scaling = {"type": "yarn", 'factor': 16,
                             "beta_fast": 32} if kwargs.get("inference_rope_scaling", False) else None
        if use_moe:
            self.num_experts = 4


class Attention(nn.Module):  # a comment
    def __init__(self, config):
        self.q_norm = RMSNorm(self.head_dim, eps=config.rms_norm_eps); self.is_causal = True
