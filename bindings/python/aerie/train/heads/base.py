"""What the trainer asks of a head, with the answers of a head that uses the target's LM head."""

import torch
from torch import nn

from ..model import Llama
from ..rows import Rows


class Head(nn.Module):
    def levels(self, target: Llama, rows: Rows) -> list[torch.Tensor]:
        """One tensor of states [B,n,D] per drafted token: index j of level i stands for t_{j+2+i}."""
        raise NotImplementedError

    def logits(self, target: Llama, state: torch.Tensor) -> torch.Tensor:
        """States [...,D] -> logits [...,V] over the target's vocabulary."""
        return target.logits(state)

    def scores(self, target: Llama, state: torch.Tensor) -> torch.Tensor:
        """Logits over the head's own vocabulary, which training compares with `teacher`'s."""
        return self.logits(target, state)

    def teacher(self, target: Llama, features: torch.Tensor) -> torch.Tensor:
        return target.logits(features)

    def drafted(self, index: torch.Tensor) -> torch.Tensor:
        """The target's tokens of indices into `scores`."""
        return index
