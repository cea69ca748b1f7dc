"""Drafters over the PyTorch twin, for the evaluator: one per kind of head, and a whole model.

All know the whole committed text beforehand (`prepare`), so the rows of committed tokens are computed once; `begin`
goes to the newest committed token and `expand` goes one level down the draft tree. Both return states whose `logits`
are those of the next token. B sequences, K frontier nodes, D state size, L tokens of a sequence; r [B] is the
index of the newest token.
"""

import torch

from .heads.eagle import EagleHead
from .heads.eagle3 import Eagle3Head
from .heads.hydra import HydraHead
from .kv import TreeCache
from .model import Llama
from .rows import Rows


def visible_rows(count: torch.Tensor, total: int, ancestors: torch.Tensor) -> torch.Tensor:
    """Mask [B,1,K,total+A]: the first `count` [B] committed rows, and the tree rows in `ancestors` [B,K,A]."""
    prefix = torch.arange(total)[None, None, :] < count[:, None, None]
    return torch.cat((prefix.expand(-1, ancestors.shape[1], -1), ancestors), dim=-1)[:, None]


class Drafter:
    levels = 100  # how deep it can draft

    def __init__(self, target: Llama, head):
        self.target, self.head = target, head

    def logits(self, state: torch.Tensor) -> torch.Tensor:
        return self.head.logits(self.target, state)


class HeadDrafter(Drafter):
    """EAGLE-1/2 and EAGLE-3: the head's output at a node is the feature of the node's children."""

    def prepare(self, rows: Rows) -> None:
        """Row j pairs f_j (EAGLE-3: the fused taps) with t_{j+1}."""
        self.cache = TreeCache()
        self.hidden = self.head(rows.embeddings[:, 1:], self.head.read(rows)[:, :-1], cache=self.cache)
        self.cache.keep()

    def begin(self, r: torch.Tensor) -> torch.Tensor:
        """Hidden state [B,H] of row r-1."""
        self.cache.reset()
        self.r = r
        return self.hidden[torch.arange(len(r)), r - 1]

    def expand(self, tokens, parent_hidden, depth: int, ancestors) -> torch.Tensor:
        """Frontier nodes at `depth` (1 = below the newest token): tokens [B,K] -> hidden [B,K,H]."""
        positions = (self.r + depth - 1)[:, None].expand(tokens.shape)
        mask = visible_rows(self.r, self.cache.prefix, ancestors)
        return self.head(self.target.embed_tokens(tokens), parent_hidden, positions, mask, self.cache)


class UnshiftedDrafter(HeadDrafter):
    """EAGLE's ablation in which row j reads f_j and t_j: for chains, where a node has one child."""

    def prepare(self, rows: Rows) -> None:
        self.tokens, self.cache = rows.tokens, TreeCache()
        self.hidden = self.head(rows.embeddings[:, :-1], rows.features[:, :-1], cache=self.cache)
        self.cache.keep()

    def begin(self, r: torch.Tensor) -> torch.Tensor:
        self.last = self.tokens.gather(1, r[:, None])
        return super().begin(r)

    def expand(self, tokens, parent_hidden, depth: int, ancestors) -> torch.Tensor:
        above, self.last = self.last, tokens
        return super().expand(above, parent_hidden, depth, ancestors)


class OnePassDrafter(Drafter):
    """Medusa and FastEagle: all levels at once, the same children under every node of a level."""

    def prepare(self, rows: Rows) -> None:
        self.states = self.head.levels(self.target, rows)
        self.levels = len(self.states)

    def begin(self, r: torch.Tensor) -> torch.Tensor:
        self.r = r
        return self.states[0][torch.arange(len(r)), r - 1]

    def expand(self, tokens, parent_state, depth: int, ancestors) -> torch.Tensor:
        state = self.states[depth][torch.arange(len(tokens)), self.r - 1]
        return state[:, None].expand(-1, tokens.shape[1], -1)


class HydraDrafter(Drafter):
    """The state of a node is the input of the head below it: the feature and all embeddings on the path."""

    def __init__(self, target: Llama, head: HydraHead):
        super().__init__(target, head)
        self.levels = len(head.hydra_mlp)

    def prepare(self, rows: Rows) -> None:
        self.inputs = torch.cat((rows.features[:, :-1], rows.embeddings[:, 1:]), dim=-1)

    def begin(self, r: torch.Tensor) -> torch.Tensor:
        return self.inputs[torch.arange(len(r)), r - 1]

    def expand(self, tokens, parent_state, depth: int, ancestors) -> torch.Tensor:
        return torch.cat((parent_state, self.target.embed_tokens(tokens)), dim=-1)

    def logits(self, state: torch.Tensor) -> torch.Tensor:
        index = state.shape[-1] // self.head.hidden - 2
        return self.target.logits(self.head.hydra_mlp[index](state))


class ModelDrafter:
    """A whole model as drafter: a small one, or the target itself, which is what a tree could reach at most."""

    levels = 100

    def __init__(self, model: Llama):
        self.model = model

    def prepare(self, rows: Rows) -> None:
        self.caches = [TreeCache() for _ in self.model.layers]
        self.hidden = self.model.features(rows.tokens, caches=self.caches)
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
        return self.model.features(tokens, positions, mask, self.caches)

    def logits(self, state: torch.Tensor) -> torch.Tensor:
        return self.model.logits(state)


def drafter(target: Llama, head):
    """The drafter of a head, or of a model."""
    if isinstance(head, Llama):
        return ModelDrafter(head)
    if isinstance(head, HydraHead):
        return HydraDrafter(target, head)
    if isinstance(head, EagleHead) and head.inputs == "unshifted":
        return UnshiftedDrafter(target, head)
    return HeadDrafter(target, head) if isinstance(head, (EagleHead, Eagle3Head)) else OnePassDrafter(target, head)
