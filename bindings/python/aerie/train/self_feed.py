"""Training passes in which a head reads its own outputs, as it will while drafting: EAGLE-3's training-time test and
HASS (arXiv 2408.15766); for the EAGLE-1/2 head an option.

In pass 1 all features are the target's. In pass s, row j reads the head's output of pass s-1 at row j-1 in place
of f_j, and attends to what a draft of that depth would see: rows up to j-s+1 of pass 1 (true features), then
one row of each later pass.
"""

import torch

from .model import Attention, rope_tables, rotate


class PassAttention:
    """The attention of one layer, called once per pass; remembers the keys and values of the passes before."""

    def __init__(self, attention: Attention, cos: torch.Tensor, sin: torch.Tensor):
        self.attention, self.cos, self.sin = attention, cos, sin
        self.keys, self.values = [], []

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """x [B,T,inputs] -> [B,T,H]"""
        attention, s = self.attention, len(self.keys)
        b, t, _ = x.shape
        group = attention.heads // attention.kv_heads
        q = attention.q_proj(x).view(b, t, attention.heads, attention.dim).transpose(1, 2)
        k = attention.k_proj(x).view(b, t, attention.kv_heads, attention.dim).transpose(1, 2)
        v = attention.v_proj(x).view(b, t, attention.kv_heads, attention.dim).transpose(1, 2)
        q, k = rotate(q, self.cos, self.sin), rotate(k, self.cos, self.sin)
        self.keys.append(k.repeat_interleave(group, dim=1))
        self.values.append(v.repeat_interleave(group, dim=1))
        scale = attention.dim ** -0.5
        positions = torch.arange(t)
        seen = positions[None, :] <= positions[:, None] - s
        scores = [(q @ self.keys[0].mT * scale).float().masked_fill(~seen, -1e9)]
        for age in range(s):  # the row `age` positions back, from pass s-age
            shifted = torch.roll(self.keys[s - age], age, dims=2)
            scores.append(((q * shifted).sum(-1, keepdim=True) * scale).float())
        weights = torch.cat(scores, dim=-1).softmax(-1).to(x.dtype)
        y = weights[..., :t] @ self.values[0]
        for age in range(s):
            y = y + weights[..., t + age:t + age + 1] * torch.roll(self.values[s - age], age, dims=2)
        return attention.o_proj(y.transpose(1, 2).reshape(b, t, -1))


def passes(head, embeddings: torch.Tensor, features: torch.Tensor, count: int) -> list[torch.Tensor]:
    """EAGLE-1/2 head, [B,T,H] twice -> `count` outputs [B,T,H]; the one of pass s is valid from row s-1 on."""
    layer, outputs = head.layers[0], []
    cos, sin = rope_tables(torch.arange(features.shape[1]), head.config.head_dim, head.config.rope_theta)
    attention = PassAttention(layer.self_attn, cos, sin)
    for _ in range(count):
        x = head.fc(torch.cat((embeddings, features), dim=-1))
        x = x + attention(x)
        x = x + layer.mlp(layer.post_attention_layernorm(x))
        outputs.append(x)
        features = torch.roll(x, 1, dims=1)
    return outputs
