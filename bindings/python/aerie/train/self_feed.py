"""Training passes in which the head reads its own outputs, as it will while drafting (optional, not EAGLE-1/2).

In pass 1 all features are the target's. In pass s, row j reads the head's output of pass s-1 at row j-1 in place
of f_j, and attends to what a draft of that depth would see: rows up to j-s+1 of pass 1 (true features), then
one row of each later pass. The idea is HASS's (arXiv 2408.15766) and EAGLE-3's training-time test.
"""

import torch

from .head import EagleHead
from .model import rope_tables, rotate


def passes(head: EagleHead, embeddings: torch.Tensor, features: torch.Tensor, count: int) -> list[torch.Tensor]:
    """[B,T,H] twice -> `count` outputs [B,T,H]; the one of pass s is valid from row s-1 on."""
    layer, attention = head.layers[0], head.layers[0].self_attn
    b, t, hidden = features.shape
    positions = torch.arange(t)
    cos, sin = rope_tables(positions, head.config.head_dim, head.config.rope_theta)
    group = attention.heads // attention.kv_heads
    keys, values, outputs = [], [], []
    for s in range(count):
        x = head.fc(torch.cat((embeddings, features), dim=-1))
        q = attention.q_proj(x).view(b, t, attention.heads, attention.dim).transpose(1, 2)
        k = attention.k_proj(x).view(b, t, attention.kv_heads, attention.dim).transpose(1, 2)
        v = attention.v_proj(x).view(b, t, attention.kv_heads, attention.dim).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        keys.append(k.repeat_interleave(group, dim=1))
        values.append(v.repeat_interleave(group, dim=1))
        scale = attention.dim ** -0.5
        seen = positions[None, :] <= positions[:, None] - s
        scores = [(q @ keys[0].mT * scale).float().masked_fill(~seen, -1e9)]
        for age in range(s):  # the row `age` positions back, from pass s-age
            shifted = torch.roll(keys[s - age], age, dims=2)
            scores.append(((q * shifted).sum(-1, keepdim=True) * scale).float())
        weights = torch.cat(scores, dim=-1).softmax(-1).to(x.dtype)
        y = weights[..., :t] @ values[0]
        for age in range(s):
            y = y + weights[..., t + age:t + age + 1] * torch.roll(values[s - age], age, dims=2)
        x = x + attention.o_proj(y.transpose(1, 2).reshape(b, t, -1))
        x = x + layer.mlp(layer.post_attention_layernorm(x))
        outputs.append(x)
        features = torch.roll(x, 1, dims=1)
    return outputs
