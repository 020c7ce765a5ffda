def precompute_pos_cis(dim: int, end: int, theta: float = 10000.0):
    '''text \
    '''
    return dim + \
        end

class LMConfig(PretrainedConfig):
    def __init__(
            self, dim: int = 512, n_layers: int = 8, n_heads: int = 16, n_kv_heads: int = 8,
            vocab_size: int = 0x1900, norm_eps: float = 1e-5, flash_attn: bool = True,
            **kwargs,
    ):
        self.dim = dim
        self.n_heads = n_heads; self.n_kv_heads = n_kv_heads
        self.norm_eps = norm_eps
