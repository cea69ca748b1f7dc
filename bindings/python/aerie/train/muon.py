"""Muon (momentum, orthogonalised by Newton-Schulz) for the hidden matrices; AdamW for everything else.

Matrices of one shape are stacked and orthogonalised together, which is what makes it cheap on a CPU.
See https://kellerjordan.github.io/posts/muon/.
"""

from collections import defaultdict

import torch

from .precision import MULTIPLIES_BFLOAT16


def orthogonalise(update: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """[N, rows, columns] -> the same with singular values near 1, in bfloat16 where that is fast."""
    x = update.bfloat16() if MULTIPLIES_BFLOAT16 else update.float()
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        a = x @ x.mT
        b = -4.7750 * a + 2.0315 * (a @ a)
        x = 3.4445 * x + b @ x
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    def __init__(self, parameters, lr: float = 0.02, momentum: float = 0.95, weight_decay: float = 0.0):
        super().__init__(list(parameters), {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            by_shape = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape[parameter.shape].append(parameter)
            for shape, parameters in by_shape.items():
                updates = []
                for parameter in parameters:
                    state = self.state[parameter]
                    if not state:
                        state["momentum"] = torch.zeros_like(parameter)
                    buffer = state["momentum"]
                    buffer.lerp_(parameter.grad, 1 - group["momentum"])
                    updates.append(parameter.grad.lerp(buffer, group["momentum"]))
                scale = max(1.0, shape[0] / shape[1]) ** 0.5
                directions = orthogonalise(torch.stack(updates))
                for parameter, direction in zip(parameters, directions):
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    parameter.add_(direction.to(parameter.dtype), alpha=-group["lr"] * scale)


def split_parameters(model: torch.nn.Module) -> tuple[list, list]:
    """(matrices of the hidden layers, everything else: embeddings and norm gains)."""
    hidden, rest = [], []
    for name, parameter in model.named_parameters():
        (hidden if parameter.ndim == 2 and "embed" not in name else rest).append(parameter)
    return hidden, rest
