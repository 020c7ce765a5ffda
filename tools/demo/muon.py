"""The optimizers: Muon for the matrices inside the layers, AdamW for the embedding and the norms.

Muon (Keller Jordan and others, 2024, https://kellerjordan.github.io/posts/muon/) moves a matrix along its momentum, whose
singular values five Newton-Schulz steps bring to about 1. PyTorch's own Muon takes these steps in bfloat16, which CPUs without
bfloat16 emulate in software. This one uses float32 and handles all matrices of one shape at once.
"""

import math

import torch
from torch import Tensor

MOMENTUM = 0.95
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # from that page: the quintic whose iterates converge to about 1
STEPS = 5


def orthogonalized(updates: Tensor) -> Tensor:
    """Returns the updates [n, rows, columns] with singular values near 1."""
    a, b, c = NEWTON_SCHULZ
    wide = updates if updates.size(1) <= updates.size(2) else updates.mT
    x = wide / (wide.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(STEPS):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return x if wide is updates else x.mT


class Muon(torch.optim.Optimizer):
    def __init__(self, matrices: list[Tensor], lr: float):
        shapes = sorted({tuple(matrix.shape) for matrix in matrices})
        groups = [{"params": [m for m in matrices if tuple(m.shape) == shape]} for shape in shapes]
        super().__init__(groups, {"lr": lr})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            matrices = group["params"]
            gradients = torch.stack([matrix.grad for matrix in matrices])
            state = self.state[matrices[0]]
            momentum = state.setdefault("momentum", torch.zeros_like(gradients)).lerp_(gradients, 1 - MOMENTUM)
            updates = orthogonalized(gradients.lerp(momentum, MOMENTUM))  # Nesterov's
            rows, columns = matrices[0].shape
            for matrix, update in zip(matrices, updates):
                matrix.add_(update, alpha=-group["lr"] * math.sqrt(max(1, rows / columns)))


def optimizers(model: torch.nn.Module, matrix_rate: float, other_rate: float) -> list[torch.optim.Optimizer]:
    inner = [p for name, p in model.named_parameters() if p.dim() == 2 and ".layers." in name]
    others = [p for name, p in model.named_parameters() if not (p.dim() == 2 and ".layers." in name)]
    return [Muon(inner, matrix_rate), torch.optim.AdamW(others, lr=other_rate, betas=(0.9, 0.95), weight_decay=0.0)]
