"""DFlash (arXiv 2602.06036): a block of masks behind the newest token, filled in one pass by layers that see both ways.

What the layers know of the text are keys and values of c_j = hidden_norm(fc(taps_j)), the target's features of token j; the
newest token has none yet: its embedding opens the block, R rows in all, and row l stands for the token l behind it. Layers
are Qwen3's (norms of q and k); embedding and LM head are the target's. The file is z-lab's.
"""

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from ..model import Attention, DecoderLayer, Llama, LlamaConfig, RMSNorm, rope_tables, rotate
from ..rows import Rows
from . import files
from .base import Head
from .scaled import ScaledLinear

CHUNK = 32  # anchors at a time where all are wanted


@dataclass
class DFlashConfig:
    num_hidden_layers: int = 3
    block_size: int = 8
    mask_token_id: int = 0
    target_layer_ids: list[int] = field(default_factory=lambda: [1, 7, 12])  # outputs: the inputs of 2, 8, 13
    num_target_layers: int | None = 16  # None: nobody knows any more
    hidden_size: int = 192
    intermediate_size: int = 512
    num_attention_heads: int = 3
    num_key_value_heads: int = 1
    head_dim: int = 64
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    vocab_size: int = 4096
    max_position_embeddings: int = 512


class BlockAttention(Attention):
    def __init__(self, config: LlamaConfig):
        super().__init__(config)
        self.q_norm, self.k_norm = (RMSNorm(config.head_dim, config.rms_norm_eps) for _ in range(2))

    def forward(self, x, context, tables, mask):
        """x [B,N,H] over keys and values of context [B,T,H] and its own; mask [N,T+N]; tables of T + N positions."""
        b, n, _ = x.shape
        read = torch.cat((context, x), dim=1)
        q = self.q_norm(self.q_proj(x).view(b, n, self.heads, self.dim)).transpose(1, 2)
        k = self.k_norm(self.k_proj(read).view(b, -1, self.kv_heads, self.dim)).transpose(1, 2)
        v = self.v_proj(read).view(b, -1, self.kv_heads, self.dim).transpose(1, 2)
        cos, sin = tables
        q, k = rotate(q, cos[-n:], sin[-n:]), rotate(k, cos, sin)
        group = self.heads // self.kv_heads
        k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.o_proj(y.transpose(1, 2).reshape(b, n, self.heads * self.dim))


class DFlash(Head):
    def __init__(self, config: DFlashConfig):
        super().__init__()
        self.config = config
        shared = LlamaConfig(**{f.name: getattr(config, f.name) for f in fields(LlamaConfig)})
        hidden, eps = config.hidden_size, config.rms_norm_eps
        self.fc = ScaledLinear(len(config.target_layer_ids) * hidden, hidden)
        self.hidden_norm, self.norm = RMSNorm(hidden, eps), RMSNorm(hidden, eps)
        self.layers = nn.ModuleList(DecoderLayer(shared) for _ in range(config.num_hidden_layers))
        for layer in self.layers:  # each layer starts as the identity
            layer.self_attn = BlockAttention(shared)
            nn.init.zeros_(layer.self_attn.o_proj.weight)
            nn.init.zeros_(layer.mlp.down_proj.weight)

    def set_scales(self, taps: list[float]) -> None:
        self.fc.set_scale(*taps)

    def blocks(self, target: Llama, rows: Rows, anchors: torch.Tensor) -> torch.Tensor:
        """States [B,A,R-1,H] behind each of the newest tokens `anchors` [A], normed for the LM head."""
        size, (count, length) = self.config.block_size, (len(anchors), rows.tokens.shape[1])
        context = self.hidden_norm(self.fc(rows.taps))
        masks = target.embed_tokens(torch.tensor(self.config.mask_token_id)).expand(len(rows.tokens), count, size - 1, -1)
        x = torch.cat((rows.embeddings[:, anchors, None], masks), dim=2).flatten(1, 2)
        behind = (anchors[:, None] + torch.arange(size)).flatten()
        tables = rope_tables(torch.cat((torch.arange(length), behind)), self.config.head_dim, self.config.rope_theta)
        before = torch.arange(length) < anchors.repeat_interleave(size)[:, None]
        own = torch.arange(count).repeat_interleave(size)
        mask = torch.cat((before, own[:, None] == own), dim=1)
        for layer in self.layers:
            x = x + layer.self_attn(layer.input_layernorm(x), context, tables, mask)
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return self.norm(x).unflatten(1, (count, size))[:, :, 1:]

    def levels(self, target: Llama, rows: Rows) -> list[torch.Tensor]:
        """Each level without the last rows, whose token lies beyond the text."""
        anchors = torch.arange(1, rows.tokens.shape[1])
        states = torch.cat([self.blocks(target, rows, part) for part in anchors.split(CHUNK)], dim=1)
        return [states[:, :states.shape[1] - i, i] for i in range(self.config.block_size - 1)]


def save(head: DFlash, out: Path, dtype: torch.dtype = torch.float32) -> None:
    config = asdict(head.config)
    own = {name: config.pop(name) for name in ("mask_token_id", "target_layer_ids")}
    config = {"architectures": ["DFlashDraftModel"], "model_type": "qwen3", **config, "attention_bias": False, "hidden_act": "silu",
              "tie_word_embeddings": False, "dflash_config": own}
    files.write(files.tensors(head), config, out, dtype)


def load(folder: Path) -> DFlash:
    raw, saved = files.read(folder)
    raw |= raw["dflash_config"]
    return files.put(DFlash(DFlashConfig(**{f.name: raw[f.name] for f in fields(DFlashConfig)})), saved)
