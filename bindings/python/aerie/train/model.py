"""The Llama architecture in plain PyTorch: numerically `transformers.LlamaForCausalLM`, small and readable.

Shapes: B sequences, T positions, H hidden size, V vocabulary, D head size.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class LlamaConfig:
    vocab_size: int = 4096
    hidden_size: int = 192
    intermediate_size: int = 512
    num_hidden_layers: int = 16
    num_attention_heads: int = 3
    num_key_value_heads: int = 1
    head_dim: int = 64
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 512

    def tap_layers(self) -> list[int]:
        """Layers whose input a drafter may read, besides the final feature: low, middle, high."""
        n = self.num_hidden_layers
        return [2, n // 2, n - 3]


class RMSNorm(nn.Module):
    def __init__(self, size: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return (self.weight * y).to(x.dtype)


def rope_tables(positions: torch.Tensor, head_dim: int, theta: float) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin [T, D] for positions [T] ([B, 1, T, D] for [B, T]), in the rotate-half layout."""
    inverse = theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float32, device=positions.device) / head_dim)
    angles = positions.float()[..., None] * inverse
    angles = torch.cat((angles, angles), dim=-1)
    if positions.ndim == 2:
        angles = angles[:, None]
    return angles.cos(), angles.sin()


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * cos.to(x.dtype) + turned * sin.to(x.dtype)


class Attention(nn.Module):
    def __init__(self, config: LlamaConfig, qkv_bias: bool = False, inputs: int = 0):
        """`inputs`: columns of what q, k and v read, if not the hidden size (EAGLE-3)."""
        super().__init__()
        self.heads, self.kv_heads, self.dim = (
            config.num_attention_heads, config.num_key_value_heads, config.head_dim)
        hidden = config.hidden_size
        inputs = inputs or hidden
        self.q_proj = nn.Linear(inputs, self.heads * self.dim, bias=qkv_bias)
        self.k_proj = nn.Linear(inputs, self.kv_heads * self.dim, bias=qkv_bias)
        self.v_proj = nn.Linear(inputs, self.kv_heads * self.dim, bias=qkv_bias)
        self.o_proj = nn.Linear(self.heads * self.dim, hidden, bias=False)

    def forward(self, x, cos, sin, mask=None, cache=None):
        """x [B,T,H]. `mask` [..., T, past+T] (True = may look), None for causal. `cache`: see kv.py."""
        b, t, _ = x.shape
        q = self.q_proj(x).view(b, t, self.heads, self.dim).transpose(1, 2)
        k = self.k_proj(x).view(b, t, self.kv_heads, self.dim).transpose(1, 2)
        v = self.v_proj(x).view(b, t, self.kv_heads, self.dim).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if cache is not None:
            k, v = cache.extend(k, v)
        group = self.heads // self.kv_heads
        if t == 1 and mask is None:  # decoding: the heads of a group are queries of one shared key/value head
            q = q.view(b, self.kv_heads, group, self.dim)
        elif group > 1:
            k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None and t > 1)
        if t == 1:
            return self.o_proj(y.reshape(b, 1, self.heads * self.dim))
        return self.o_proj(y.transpose(1, 2).reshape(b, t, self.heads * self.dim))


class MLP(nn.Module):
    def __init__(self, config: LlamaConfig):
        super().__init__()
        hidden, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Module):
    """One pre-norm layer; EAGLE's head uses it without the first norm (`input_norm=False`)."""

    def __init__(self, config: LlamaConfig, input_norm: bool = True, qkv_bias: bool = False):
        super().__init__()
        self.self_attn = Attention(config, qkv_bias)
        self.mlp = MLP(config)
        if input_norm:
            self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        else:
            self.input_layernorm = nn.Identity()
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, x, cos, sin, mask=None, cache=None):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask, cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    """Parameter names are Hugging Face's without the leading "model."."""

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def features(self, tokens, positions=None, mask=None, caches=None, taps=None) -> torch.Tensor:
        """tokens [B,T] -> hidden states after the final norm [B,T,H]: what an EAGLE head reads.

        A list given as `taps` gets the residual stream [B,T,H] at the input of every layer.
        """
        if positions is None:
            positions = torch.arange(tokens.shape[1], device=tokens.device)
        cos, sin = rope_tables(positions, self.config.head_dim, self.config.rope_theta)
        x = self.embed_tokens(tokens)
        for index, layer in enumerate(self.layers):
            if taps is not None:
                taps.append(x)
            x = layer(x, cos, sin, mask, caches[index] if caches is not None else None)
        return self.norm(x)

    def logits(self, features: torch.Tensor) -> torch.Tensor:
        """[..., H] -> [..., V]; the LM head is the embedding (tied)."""
        return F.linear(features, self.embed_tokens.weight)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.logits(self.features(tokens))


def initialise(model: Llama, generator_seed: int) -> None:
    """Small normal weights; the projections that write to the residual stream start at zero."""
    torch.manual_seed(generator_seed)
    for name, parameter in model.named_parameters():
        if parameter.ndim < 2:
            continue
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            nn.init.zeros_(parameter)
        else:
            nn.init.normal_(parameter, std=0.02 if "embed" in name else 0.5 / parameter.shape[1] ** 0.5)
