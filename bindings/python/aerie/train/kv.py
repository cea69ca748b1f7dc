"""Key/value caches for the PyTorch twin: one object per layer, asked to `extend` itself in each pass."""

import torch


class GrowingCache:
    """Appends in place to a buffer of fixed capacity: plain decoding."""

    def __init__(self, capacity: int):
        self.capacity, self.length = capacity, 0
        self.k = self.v = None

    def extend(self, k: torch.Tensor, v: torch.Tensor):
        b, heads, t, d = k.shape
        if self.k is None:
            self.k, self.v = k.new_empty(b, heads, self.capacity, d), v.new_empty(b, heads, self.capacity, d)
        end = self.length + t
        self.k[:, :, self.length:end], self.v[:, :, self.length:end] = k, v
        self.length = end
        return self.k[:, :, :end], self.v[:, :, :end]


class TreeCache:
    """Rows of committed tokens, kept, followed by rows of the current draft tree, dropped by `reset`."""

    def __init__(self):
        self.k = self.v = None
        self.prefix = 0

    def extend(self, k: torch.Tensor, v: torch.Tensor):
        if self.k is None:
            self.k, self.v = k, v
        else:
            self.k, self.v = torch.cat((self.k, k), dim=2), torch.cat((self.v, v), dim=2)
        return self.k, self.v

    def keep(self) -> None:
        """What is in the cache now is the prefix."""
        self.prefix = self.k.shape[2]

    def reset(self) -> None:
        self.k, self.v = self.k[:, :, :self.prefix], self.v[:, :, :self.prefix]
