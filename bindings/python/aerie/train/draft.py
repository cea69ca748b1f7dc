"""Drafters over the PyTorch twin, for the evaluator: the EAGLE head, and the target as its own drafter.

Both know the whole committed text beforehand (`prepare`), so the rows of committed tokens are computed once;
`begin` goes to the newest committed token and `expand` adds rows of the draft tree.
B sequences, K frontier nodes, H hidden size, L tokens of a sequence; r [B] is the index of the newest token.
"""

import torch

from .head import EagleHead
from .kv import TreeCache
from .model import Llama


def visible_rows(count: torch.Tensor, total: int, ancestors: torch.Tensor) -> torch.Tensor:
    """Mask [B,1,K,total+A]: the first `count` [B] committed rows, and the tree rows in `ancestors` [B,K,A]."""
    prefix = torch.arange(total)[None, None, :] < count[:, None, None]
    return torch.cat((prefix.expand(-1, ancestors.shape[1], -1), ancestors), dim=-1)[:, None]


class HeadDrafter:
    def __init__(self, target: Llama, head: EagleHead):
        self.target, self.head = target, head

    def prepare(self, tokens: torch.Tensor, features: torch.Tensor) -> None:
        """tokens [B,L], features [B,L,H]. Row j pairs f_j with t_{j+1}."""
        self.cache = TreeCache()
        self.hidden = self.head(self.target.embed_tokens(tokens[:, 1:]), features[:, :-1], cache=self.cache)
        self.cache.keep()

    def begin(self, r: torch.Tensor) -> torch.Tensor:
        """Hidden state [B,H] whose logits are those of the first drafted token: row r-1."""
        self.cache.reset()
        self.r = r
        return self.hidden[torch.arange(len(r)), r - 1]

    def expand(self, tokens, parent_hidden, depth: int, ancestors) -> torch.Tensor:
        """Frontier nodes at `depth` (1 = below the newest token): tokens [B,K] -> hidden [B,K,H]."""
        positions = (self.r + depth - 1)[:, None].expand(tokens.shape)
        mask = visible_rows(self.r, self.cache.prefix, ancestors)
        return self.head(self.target.embed_tokens(tokens), parent_hidden, positions, mask, self.cache)


class TargetDrafter:
    """The best drafter of its kind there is: what a tree could reach at most without shared noise."""

    def __init__(self, target: Llama):
        self.target = target

    def prepare(self, tokens: torch.Tensor, features: torch.Tensor) -> None:
        self.caches = [TreeCache() for _ in self.target.layers]
        self.hidden = self.target.features(tokens, caches=self.caches)
        for cache in self.caches:
            cache.keep()

    def begin(self, r: torch.Tensor) -> torch.Tensor:
        for cache in self.caches:
            cache.reset()
        self.r = r
        return self.hidden[torch.arange(len(r)), r]

    def expand(self, tokens, parent_hidden, depth: int, ancestors) -> torch.Tensor:
        positions = (self.r + depth)[:, None].expand(tokens.shape)
        mask = visible_rows(self.r + 1, self.caches[0].prefix, ancestors)
        return self.target.features(tokens, positions, mask, self.caches)
