#!/usr/bin/env python3
"""Tiny random checkpoints and what they compute (README.md beside this file has the layout).

  pip install torch transformers safetensors accelerate
  make_golden.py
"""
import json
import math
import pathlib

import torch
from safetensors.torch import load_file, save_file
from transformers import (Dots1Config, Dots1ForCausalLM, Ernie4_5_MoeConfig, Ernie4_5_MoeForCausalLM, Exaone4Config, Exaone4ForCausalLM,
                          Gemma2Config, Gemma2ForCausalLM, Gemma3ForCausalLM, Gemma3TextConfig, Gemma4ForCausalLM, Gemma4TextConfig, Glm4MoeConfig,
                          Glm4MoeForCausalLM, GptOssConfig, GptOssForCausalLM, GraniteConfig, GraniteForCausalLM, GraniteMoeConfig,
                          GraniteMoeForCausalLM, GraniteMoeSharedConfig, GraniteMoeSharedForCausalLM, Lfm2Config, Lfm2ForCausalLM, Lfm2MoeConfig,
                          Lfm2MoeForCausalLM, LlamaConfig, LlamaForCausalLM, MiniMaxM2Config, MiniMaxM2ForCausalLM, MistralConfig,
                          MistralForCausalLM, MixtralConfig, MixtralForCausalLM, Olmo2Config, Olmo2ForCausalLM, Olmo3Config, Olmo3ForCausalLM,
                          OlmoeConfig, OlmoeForCausalLM, Phi3Config, Phi3ForCausalLM, Qwen2MoeConfig, Qwen2MoeForCausalLM, Qwen3_5ForCausalLM,
                          Qwen3_5MoeForCausalLM, Qwen3_5MoeTextConfig, Qwen3_5TextConfig, Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig,
                          Qwen3MoeForCausalLM, Qwen3NextConfig, Qwen3NextForCausalLM, SmolLM3Config, SmolLM3ForCausalLM)

HERE = pathlib.Path(__file__).resolve().parent
TOKENS = 48
TAP_POSITIONS = [0, 20, TOKENS - 1]
TOP = 5
SEEDS = 110

# Rope as published configs write it: transformers 5 says rope_parameters, Llama 3.1's own config.json
# rope_theta and rope_scaling; "type" is the oldest spelling. Both are read back below before use.
CHECKPOINTS = {
    "mha": dict(vocab_size=160, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
                num_key_value_heads=4, tie_word_embeddings=False),
    "gqa_tied": dict(vocab_size=100, hidden_size=48, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4,
                     num_key_value_heads=2, tie_word_embeddings=True),
    # Wavelengths 6.3 (kept), 20 (between) and longer (divided): all three branches of the formula.
    "llama3_rope": dict(vocab_size=128, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
                        num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=False,
                        rope={"factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                              "original_max_position_embeddings": 32, "rope_type": "llama3"}),
    "linear_rope_bias": dict(vocab_size=112, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                             num_attention_heads=4, num_key_value_heads=2, head_dim=12, attention_bias=True,
                             tie_word_embeddings=False, rope={"factor": 2.5, "type": "linear"}),
    "odd_sizes": dict(vocab_size=131, hidden_size=36, intermediate_size=45, num_hidden_layers=2, num_attention_heads=3,
                      num_key_value_heads=1, tie_word_embeddings=False),
    "qwen3": dict(kind=(Qwen3Config, Qwen3ForCausalLM), vocab_size=120, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
                  num_attention_heads=4, num_key_value_heads=2, head_dim=20, tie_word_embeddings=True),
    # Waves 0 and 1 are kept, 2 and 3 between, the others stretched.
    "yarn_rope": dict(seed=70, vocab_size=128, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=2,
                      num_key_value_heads=1, tie_word_embeddings=False,
                      rope={"factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 1.0, "beta_slow": 0.1,
                            "rope_type": "yarn"}),
}

# Families that depart from Llama's architecture; configs as transformers writes them.
SMALL = dict(vocab_size=72, hidden_size=24, intermediate_size=40, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2)
# Mixtures of experts; a row takes several, and not half of them.
MIXTURE = dict(vocab_size=72, hidden_size=32, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
MIXTURES = ("mixtral", "qwen3_moe", "olmoe", "granitemoe", "gpt_oss", "qwen2_moe", "glm4_moe", "dots1", "ernie4_5_moe", "minimax_m2", "granitemoeshared",
            "qwen3_5_moe_text", "qwen3_next", "gemma4_text", "lfm2_moe")
# Layers with a gated delta rule beside those with attention; norms whose weights lie around 0.
HYBRIDS = ("qwen3_5_text", "qwen3_5_moe_text", "qwen3_next")
FULL, WINDOW, LINEAR, CONV = "full_attention", "sliding_attention", "linear_attention", "conv"
HYBRID_MIXTURE = dict(vocab_size=72, hidden_size=32, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
                      shared_expert_intermediate_size=20, linear_key_head_dim=16, linear_value_head_dim=16)
GEMMA4 = dict(vocab_size=97, hidden_size=24, intermediate_size=32, num_hidden_layers=5, num_attention_heads=4, head_dim=8, global_head_dim=16,
              layer_types=[WINDOW, WINDOW, FULL, WINDOW, FULL], sliding_window=10, tie_word_embeddings=True,
              rope_parameters={FULL: {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 1e4},
                               WINDOW: {"rope_type": "default", "rope_theta": 1e3}})
FAMILIES = {
    "mistral_window": dict(kind=(MistralConfig, MistralForCausalLM), **SMALL, head_dim=8, sliding_window=11, rope_parameters={"rope_theta": 1e4}),
    "gemma3": dict(kind=(Gemma3TextConfig, Gemma3ForCausalLM), **SMALL, head_dim=32, sliding_window=10, layer_types=[WINDOW, FULL, WINDOW],
                   query_pre_attn_scalar=24, tie_word_embeddings=True,
                   rope_parameters={FULL: {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e6},
                                    WINDOW: {"rope_type": "default", "rope_theta": 1e4}}),
    # Two layers read the keys and values of the last of their kind before them; a cap that logits reach.
    "gemma4": dict(seed=700, kind=(Gemma4TextConfig, Gemma4ForCausalLM), **GEMMA4, num_key_value_heads=1, num_kv_shared_layers=2, use_double_wide_mlp=True,
                   hidden_size_per_layer_input=8, vocab_size_per_layer_input=97, final_logit_softcapping=4.0),
    # Values are the keys' projections in layers that see everything, which have another number of heads.
    "gemma4_keys": dict(seed=710, kind=(Gemma4TextConfig, Gemma4ForCausalLM), **GEMMA4, num_key_value_heads=2, num_global_key_value_heads=1,
                        attention_k_eq_v=True, hidden_size_per_layer_input=0, final_logit_softcapping=30.0),
    "gemma4_moe": dict(seed=724, kind=(Gemma4TextConfig, Gemma4ForCausalLM), **GEMMA4 | {"hidden_size": 32, "num_hidden_layers": 3,
                       "layer_types": [WINDOW, WINDOW, FULL]}, num_key_value_heads=2, num_global_key_value_heads=1, attention_k_eq_v=True,
                       hidden_size_per_layer_input=0, final_logit_softcapping=30.0, enable_moe_block=True, num_experts=6, top_k_experts=2,
                       moe_intermediate_size=16),
    # 6 of a head's 8 elements are rotated; the context is short enough for the short factors.
    "phi3": dict(kind=(Phi3Config, Phi3ForCausalLM), **SMALL | {"hidden_size": 32}, sliding_window=20, original_max_position_embeddings=64,
                 rope_parameters={"rope_type": "longrope", "rope_theta": 1e4, "partial_rotary_factor": 0.75,
                                  "short_factor": [1.0, 1.1, 1.3], "long_factor": [1.0, 2.0, 4.0],
                                  "original_max_position_embeddings": 64}),
    "granite": dict(kind=(GraniteConfig, GraniteForCausalLM), **SMALL, embedding_multiplier=6.0, residual_multiplier=0.22,
                    attention_multiplier=0.3, logits_scaling=1.6, tie_word_embeddings=True, rope_parameters={"rope_theta": 1e4}),
    "smollm3": dict(kind=(SmolLM3Config, SmolLM3ForCausalLM), **SMALL, no_rope_layers=[1, 0, 1], rope_parameters={"rope_theta": 1e4}),
    "olmo2": dict(kind=(Olmo2Config, Olmo2ForCausalLM), **SMALL, rope_parameters={"rope_theta": 1e4}),
    "olmo3": dict(kind=(Olmo3Config, Olmo3ForCausalLM), **SMALL, sliding_window=13, layer_types=[WINDOW, FULL, WINDOW],
                  rope_parameters={FULL: {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 32,
                                          "beta_fast": 1.0, "beta_slow": 0.1},
                                   WINDOW: {"rope_type": "default", "rope_theta": 1e4}}),
    "exaone4": dict(seed=407, kind=(Exaone4Config, Exaone4ForCausalLM), **SMALL, sliding_window=9, layer_types=[WINDOW, FULL, WINDOW],
                    rope_parameters={"rope_theta": 1e4}),
    "mixtral": dict(seed=500, kind=(MixtralConfig, MixtralForCausalLM), **MIXTURE, num_local_experts=5, num_experts_per_tok=2, sliding_window=17,
                    rope_parameters={"rope_theta": 1e4}),
    "qwen3_moe": dict(seed=510, kind=(Qwen3MoeConfig, Qwen3MoeForCausalLM), **MIXTURE, head_dim=20, moe_intermediate_size=16, num_experts=8,
                      num_experts_per_tok=3, norm_topk_prob=True, tie_word_embeddings=True, rope_parameters={"rope_theta": 1e4}),
    "olmoe": dict(seed=520, kind=(OlmoeConfig, OlmoeForCausalLM), **MIXTURE, num_experts=7, num_experts_per_tok=3, norm_topk_prob=False,
                  rope_parameters={"rope_theta": 1e4}),
    "granitemoe": dict(seed=530, kind=(GraniteMoeConfig, GraniteMoeForCausalLM), **MIXTURE, num_local_experts=6, num_experts_per_tok=2,
                       embedding_multiplier=6.0, residual_multiplier=0.4, attention_multiplier=0.3, logits_scaling=1.6,
                       tie_word_embeddings=True, rope_parameters={"rope_theta": 1e4}),
    "granitemoeshared": dict(seed=610, kind=(GraniteMoeSharedConfig, GraniteMoeSharedForCausalLM), **MIXTURE, num_local_experts=4,
                             num_experts_per_tok=2, shared_intermediate_size=20, embedding_multiplier=6.0, residual_multiplier=0.4,
                             attention_multiplier=0.3, logits_scaling=1.6, tie_word_embeddings=True, rope_parameters={"rope_theta": 1e4}),
    "qwen2_moe": dict(seed=561, kind=(Qwen2MoeConfig, Qwen2MoeForCausalLM), **MIXTURE, moe_intermediate_size=16, num_experts=7,
                      num_experts_per_tok=3, shared_expert_intermediate_size=28, rope_parameters={"rope_theta": 1e4}),
    # The first of three layers has no experts; 6 of a head's 12 elements are rotated.
    "glm4_moe": dict(seed=571, kind=(Glm4MoeConfig, Glm4MoeForCausalLM), **MIXTURE | {"num_hidden_layers": 3}, head_dim=12, attention_bias=True,
                     use_qk_norm=True, moe_intermediate_size=8, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=2,
                     routed_scaling_factor=1.8, rope_parameters={"rope_theta": 1e4, "partial_rotary_factor": 0.5}),
    "dots1": dict(seed=581, kind=(Dots1Config, Dots1ForCausalLM), **MIXTURE, moe_intermediate_size=16, n_routed_experts=6, num_experts_per_tok=2,
                  n_shared_experts=1, first_k_dense_replace=1, norm_topk_prob=False, routed_scaling_factor=2.5, sliding_window=None,
                  rope_parameters={"rope_theta": 1e4}),
    "ernie4_5_moe": dict(seed=591, kind=(Ernie4_5_MoeConfig, Ernie4_5_MoeForCausalLM), **MIXTURE | {"intermediate_size": 32}, moe_num_experts=6, moe_k=2,
                         moe_num_shared_experts=1, moe_intermediate_size=16, tie_word_embeddings=True, rope_parameters={"rope_theta": 1e4}),
    "minimax_m2": dict(seed=602, kind=(MiniMaxM2Config, MiniMaxM2ForCausalLM), **MIXTURE, head_dim=16, num_local_experts=8, num_experts_per_tok=3,
                       rope_parameters={"rope_theta": 1e4, "partial_rotary_factor": 0.5}),
    # The limit is low enough, and the ramp of YaRN ends between waves, so that both show.
    "gpt_oss": dict(seed=540, kind=(GptOssConfig, GptOssForCausalLM), **MIXTURE, head_dim=16, num_local_experts=6, num_experts_per_tok=3,
                    sliding_window=11, swiglu_limit=2.5, rope_parameters=(UNROUNDED := {
                        "rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 1.0,
                        "beta_slow": 0.1, "truncate": False})),
    # As published: bf16, but for experts in MXFP4.
    "gpt_oss_mxfp4": dict(seed=550, kind=(GptOssConfig, GptOssForCausalLM), mxfp4=True,
                          **MIXTURE | {"hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 3}, head_dim=16, num_local_experts=5,
                          num_experts_per_tok=2, sliding_window=9, rope=UNROUNDED, rope_parameters={}),
    # Values wider than keys; 4 of a head's 16 elements are rotated.
    "qwen3_5": dict(seed=620, kind=(Qwen3_5TextConfig, Qwen3_5ForCausalLM), **SMALL | {"hidden_size": 32}, head_dim=16,
                    layer_types=[LINEAR, FULL, LINEAR], linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16,
                    linear_value_head_dim=32, tie_word_embeddings=True,
                    rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25, "mrope_interleaved": True,
                                     "mrope_section": [1, 1, 0]}),
    "qwen3_5_moe": dict(seed=633, kind=(Qwen3_5MoeTextConfig, Qwen3_5MoeForCausalLM), **HYBRID_MIXTURE, head_dim=12, moe_intermediate_size=16,
                        num_experts=5, num_experts_per_tok=2, linear_num_key_heads=2, linear_num_value_heads=6, linear_conv_kernel_dim=3,
                        rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5, "mrope_interleaved": True,
                                         "mrope_section": [1, 1, 1]}),
    "qwen3_next": dict(seed=667, kind=(Qwen3NextConfig, Qwen3NextForCausalLM), **HYBRID_MIXTURE, head_dim=16, moe_intermediate_size=8,
                       intermediate_size=24, num_experts=7, num_experts_per_tok=3, linear_num_key_heads=3, linear_num_value_heads=6,
                       rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25}),
    # Caps that scores and logits reach.
    "gemma2": dict(seed=730, kind=(Gemma2Config, Gemma2ForCausalLM), **SMALL, head_dim=32, sliding_window=10, query_pre_attn_scalar=24,
                   attn_logit_softcapping=2.0, final_logit_softcapping=5.0, tie_word_embeddings=True, rope_parameters={"rope_theta": 1e4}),
    # Two thirds of intermediate_size, times the factor and up to a multiple of 8: 48.
    "lfm2": dict(seed=740, kind=(Lfm2Config, Lfm2ForCausalLM), **SMALL | {"hidden_size": 32, "intermediate_size": 58, "num_hidden_layers": 4},
                 layer_types=[CONV, FULL, CONV, CONV], conv_L_cache=3, block_multiple_of=8, block_ffn_dim_multiplier=1.2, norm_eps=1e-5,
                 rope_parameters={"rope_theta": 1e4}),
    # The first of three layers has no experts.
    "lfm2_moe": dict(seed=750, kind=(Lfm2MoeConfig, Lfm2MoeForCausalLM), **MIXTURE | {"num_hidden_layers": 3, "intermediate_size": 40},
                     layer_types=[CONV, CONV, FULL], conv_L_cache=4, num_dense_layers=1, moe_intermediate_size=16, num_experts=6, num_experts_per_tok=2,
                     routed_scaling_factor=1.5, norm_eps=1e-5, rope_parameters={"rope_theta": 1e4}),
}
# LFM2's names for what others have.
LFM2_NAMES = {"operator_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "model.embedding_norm": "model.norm", "out_proj": "o_proj",
              "q_layernorm": "q_norm", "k_layernorm": "k_norm", "feed_forward.w1.": "mlp.gate_proj.", "feed_forward.w3.": "mlp.up_proj.",
              "feed_forward.w2.": "mlp.down_proj.", "feed_forward.expert_bias": "mlp.e_score_correction_bias", "feed_forward.": "mlp."}


def normal(shape, std, generator):
    return torch.randn(shape, generator=generator) * std


def initialize(model, generator):
    """Logits, attention and residual all O(1): at transformers' own std 0.02 every bug looks right."""
    for name, p in model.named_parameters():
        fan_in = p.shape[-1]
        if "norm" in name:
            around_0 = type(model).__name__.startswith(("Gemma2", "Gemma3")) or model.config.model_type in HYBRIDS and "linear_attn" not in name
            middle = 0 if around_0 else 0.4 if "q_norm" in name and "Gemma4" in type(model).__name__ else 1  # scores are not scaled there
            value = middle + normal(p.shape, 0.2 if middle != 0.4 else 0.1, generator)
        elif "router.scale" in name or "per_expert_scale" in name:
            value = 1 + normal(p.shape, 0.2, generator)
        elif "A_log" in name:  # of a state, 0.4 to 0.98 stays
            value = -1.5 + normal(p.shape, 1, generator)
        elif "o_proj.bias" in name and "GptOss" not in type(model).__name__:
            value = torch.zeros(p.shape)  # the model without
        elif "sinks" in name:
            value = 1 + normal(p.shape, 1, generator)
        elif "conv.conv" in name:
            value = normal(p.shape, 0.6, generator)
        elif "correction_bias" in name:  # beside a softmax over several
            value = normal(p.shape, 0.05, generator)
        elif "bias" in name:
            value = normal(p.shape, 0.3, generator)
        elif "embed_tokens" in name:
            value = normal(p.shape, 0.3, generator)
        else:
            gain = 1.5 if "q_proj" in name or "qkv_proj" in name or "k_proj" in name or "lm_head" in name else 1.0
            if "router.proj" in name:  # of a norm over the square root of its width
                gain = math.sqrt(fan_in)
            if "experts" in name and "GptOss" in type(model).__name__:  # (in, out), and gates that reach their limit
                fan_in, gain = p.shape[-2], 3.0 if "gate_up" in name else 1.0
            value = normal(p.shape, gain / math.sqrt(fan_in), generator)
        p.data.copy_(value)
    for name, b in model.named_buffers():
        if "correction_bias" in name or "expert_bias" in name:
            b.copy_(normal(b.shape, 0.2, generator))
        if "layer_scalar" in name:
            b.copy_(0.8 + normal(b.shape, 0.1, generator))


def rounded(t):
    """float64 -> the nearest float32, written with the digits that give it back."""
    if t.dim() > 0:
        return [rounded(x) for x in t]
    return float(f"{t.to(torch.float32).item():.9g}")


def write_json(path, data):
    path.write_text(json.dumps(data, separators=(",", ":")) + "\n")


# The decoder written out once more, in float64 throughout: the EAGLE head needs it, and it has to agree
# with transformers on the targets.
def rms_norm(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def inverse_frequencies(head_dim, theta, rope):
    inv = theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    kind = (rope or {}).get("rope_type", (rope or {}).get("type"))
    if kind == "linear":
        inv = inv / rope["factor"]
    elif kind == "llama3":
        length = rope["original_max_position_embeddings"]
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        smooth = ((length / (2 * math.pi / inv) - low) / (high - low)).clamp(0, 1)
        inv = (1 - smooth) * inv / rope["factor"] + smooth * inv
    elif kind == "yarn":
        def wave(turns):
            return head_dim * math.log(rope["original_max_position_embeddings"] / (turns * 2 * math.pi)) / (2 * math.log(theta))
        first, last = wave(rope["beta_fast"]), wave(rope["beta_slow"])
        if rope.get("truncate", True):
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, head_dim - 1)
        stretched = ((torch.arange(head_dim // 2, dtype=torch.float64) - first) / (last - first)).clamp(0, 1)
        inv = stretched * inv / rope["factor"] + (1 - stretched) * inv
    return inv


def angle_scale(rope):
    """Of cos and sin."""
    return 0.1 * math.log(rope["factor"]) + 1 if rope and rope.get("rope_type") == "yarn" else 1.0


def rotate(x, positions, inv, scale):
    """x (heads, rows, head_dim), rotate-half order of the first 2 * len(inv) elements; others stay."""
    if 2 * len(inv) < x.shape[-1]:
        turned = x[..., :2 * len(inv)]
        return torch.cat([rotate(turned, positions, inv, scale) if len(inv) else turned, x[..., 2 * len(inv):]], -1)
    angle = positions[:, None].to(torch.float64) * inv
    cos, sin = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
    half = x.shape[-1] // 2
    return (x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin) * scale


def attention(w, x, positions, heads, kv_heads, head_dim, eps, inv, scale=1.0, attention_scale=None, window=None, cap=None):
    """Causal, x (rows, H) -> (rows, H); w(name) is a weight of self_attn or None (gate_proj: of what counts its output)."""
    def project(which, n):
        y = x @ w(f"{which}_proj.weight").T
        bias = w(f"{which}_proj.bias")
        y = y if bias is None else y + bias
        norm = w(f"{which}_norm.weight")
        if norm is not None and len(norm) != head_dim:
            y = rms_norm(y, norm, eps)
        y = y.view(-1, n, head_dim).transpose(0, 1)
        return y if norm is None or len(norm) != head_dim else rms_norm(y, norm, eps)
    q = rotate(project("q", heads), positions, inv, scale)
    k = rotate(project("k", kv_heads), positions, inv, scale).repeat_interleave(heads // kv_heads, 0)
    v = project("v", kv_heads).repeat_interleave(heads // kv_heads, 0)
    scores = q @ k.transpose(1, 2) * (attention_scale or 1 / math.sqrt(head_dim))
    scores = (scores / cap).tanh() * cap if cap else scores
    distance = positions[:, None] - positions[None, :]
    scores = scores.masked_fill((distance < 0) | (distance >= (window or math.inf)), -math.inf)
    sinks, bias, gate = w("sinks"), w("o_proj.bias"), w("gate_proj.weight")
    if sinks is not None:  # a score more, without a value
        scores = torch.cat([scores, sinks[:, None, None].expand(-1, len(x), 1)], -1)
    out = (scores.softmax(-1)[..., :len(x)] @ v).transpose(0, 1).reshape(x.shape[0], -1)
    out = (out if gate is None else out * torch.sigmoid(x @ gate.T)) @ w("o_proj.weight").T
    return out if bias is None else out + bias


def layer(weights, prefix, x, positions, heads, kv_heads, head_dim, eps, inv, input_norm, scale=1.0):
    def w(name):
        t = weights.get(prefix + name)
        return None if t is None else t.to(torch.float64)
    h = rms_norm(x, w("input_layernorm.weight"), eps) if input_norm else x
    x = x + attention(lambda n: w("self_attn." + n), h, positions, heads, kv_heads, head_dim, eps, inv, scale)
    h = rms_norm(x, w("post_attention_layernorm.weight"), eps)
    gate = torch.nn.functional.silu(h @ w("mlp.gate_proj.weight").T)
    return x + (gate * (h @ w("mlp.up_proj.weight").T)) @ w("mlp.down_proj.weight").T


def forward(weights, config, rope, ids):
    head_dim = config.head_dim
    inv = inverse_frequencies(head_dim, 10000.0, rope)
    x = weights["model.embed_tokens.weight"].to(torch.float64)[ids]
    taps = []  # the input of each layer
    for i in range(config.num_hidden_layers):
        taps.append(x)
        x = layer(weights, f"model.layers.{i}.", x, torch.arange(len(ids)), config.num_attention_heads,
                  config.num_key_value_heads, head_dim, config.rms_norm_eps, inv, True, angle_scale(rope))
    feature = rms_norm(x, weights["model.norm.weight"].to(torch.float64), config.rms_norm_eps)
    head = weights.get("lm_head.weight", weights["model.embed_tokens.weight"]).to(torch.float64)
    return taps, feature, feature @ head.T


# The same for the families, from what their configs say.
def inverse_frequencies_of(config, layer, sequence=TOKENS):
    """Of a layer, and the scale of cos and sin."""
    kinds, rope = getattr(config, "layer_types", None), config.rope_parameters
    if getattr(config, "no_rope_layers", None) and not config.no_rope_layers[layer]:
        return torch.zeros(0, dtype=torch.float64), 1.0
    if config.model_type == "exaone4" and kinds[layer] == FULL:
        return torch.zeros(0, dtype=torch.float64), 1.0
    if FULL in rope:
        rope = rope[kinds[layer]]
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    rotated = int(head_dim * rope.get("partial_rotary_factor", 1.0))
    if rope["rope_type"] != "longrope":
        return inverse_frequencies(rotated, rope["rope_theta"], rope), angle_scale(rope)
    original = rope["original_max_position_embeddings"]
    inv = inverse_frequencies(rotated, rope["rope_theta"], None) / torch.tensor(
        rope["short_factor" if sequence <= original else "long_factor"], dtype=torch.float64)
    return inv, math.sqrt(1 + math.log(config.max_position_embeddings / original) / math.log(original))


def shared(weights, config, at, h):
    """What the expert that every row takes makes of it."""
    if at.replace("block_sparse_moe.", "") + "shared_mlp.input_linear.weight" in weights:
        inner, down = (weights[at.replace("block_sparse_moe.", "") + f"shared_mlp.{n}_linear.weight"].to(torch.float64) for n in ("input", "output"))
        gate, up = (h @ inner.T).chunk(2, -1)
        return (torch.nn.functional.silu(gate) * up) @ down.T
    own = next((n for n in ("shared_expert.", "shared_experts.") if at + n + "up_proj.weight" in weights), None)
    if own is None:
        return 0
    gate, up, down = (weights[f"{at}{own}{n}_proj.weight"].to(torch.float64) for n in ("gate", "up", "down"))
    out = (torch.nn.functional.silu(h @ gate.T) * (h @ up.T)) @ down.T
    counts = weights.get(at + "shared_expert_gate.weight")
    return out if counts is None else torch.sigmoid(h @ counts.to(torch.float64).T) * out


def chosen(weights, config, at, logits):
    """By scores and a bias: which experts, what they count, and how far the router is from others."""
    bias = next((weights[at + n].to(torch.float64).flatten() for n in (
        "gate.e_score_correction_bias", "gate.moe_statics.e_score_correction_bias", "e_score_correction_bias") if at + n in weights), None)
    if bias is None:
        return None
    k = getattr(config, "moe_k", None) or config.num_experts_per_tok
    scores = logits.softmax(-1) if config.model_type == "ernie4_5_moe" else logits.sigmoid()
    best, taken = (scores + bias).topk(k + 1)
    counts = scores.gather(1, taken[:, :k])
    if getattr(config, "norm_topk_prob", True):
        counts = counts / counts.sum(-1, keepdim=True)
    return taken[:, :k], counts * getattr(config, "routed_scaling_factor", 1.0), (best[:, k - 1] - best[:, k]).min().item()


def mixture(weights, config, at, h):
    """What the experts that each row takes make of it; and how far a router is from taking others."""
    at += "block_sparse_moe." if config.model_type.startswith("granitemoe") else "mlp."
    router = next(weights[at + n] for n in ("gate.weight", "router.weight") if at + n in weights).to(torch.float64)
    gate_ups, downs = (weights[f"{at}experts.{n}_proj"].to(torch.float64) for n in ("gate_up", "down"))
    scores = h @ router.T + weights.get(at + "router.bias", torch.zeros(1)).to(torch.float64)
    k = getattr(config, "moe_k", None) or config.num_experts_per_tok
    best, taken = scores.topk(k + 1)
    apart = (best[:, k - 1] - best[:, k]).min().item()
    if by_choice := chosen(weights, config, at, scores):
        taken, counts, apart = by_choice
    elif config.model_type in ("mixtral", "granitemoe", "granitemoeshared", "gpt_oss", "qwen3_5_moe_text") or config.norm_topk_prob:
        counts = best[:, :k].softmax(-1)
    else:
        counts = scores.softmax(-1).gather(1, taken[:, :k])
    out = []
    if config.model_type == "gpt_oss":
        gate_up_biases, down_biases = (weights[f"{at}experts.{n}_proj_bias"].to(torch.float64) for n in ("gate_up", "down"))
        for row, experts, count in zip(h, taken[:, :k], counts):
            gate_up = torch.stack([row @ gate_ups[e] + gate_up_biases[e] for e in experts])
            gate, up = gate_up[:, ::2].clamp(max=config.swiglu_limit), gate_up[:, 1::2].clamp(-config.swiglu_limit, config.swiglu_limit)
            act = gate * torch.sigmoid(1.702 * gate) * (up + 1)
            out.append(count @ torch.stack([a @ downs[e] + down_biases[e] for e, a in zip(experts, act)]))
        return torch.stack(out), apart
    for row, experts, count in zip(h, taken[:, :k], counts):
        gate, up = torch.stack([gate_ups[e] @ row for e in experts]).chunk(2, -1)
        parts = torch.stack([downs[e] @ a for e, a in zip(experts, torch.nn.functional.silu(gate) * up)])
        out.append(count @ parts)
    return torch.stack(out) + shared(weights, config, at, h), apart


def delta_net(w, config, x):
    """The gated delta rule, one row of x (rows, H) after another; w(name) is a weight of linear_attn."""
    heads, key_heads = config.linear_num_value_heads, config.linear_num_key_heads
    key_dim, dim, each = config.linear_key_head_dim, config.linear_value_head_dim, heads // key_heads  # values of a key
    if config.model_type == "qwen3_next":  # what belongs to a key lies together
        def project(name, sizes):
            return [y.flatten(1) for y in (x @ w(name).T).unflatten(1, (key_heads, -1)).split(sizes, -1)]
        q, k, v, z = project("in_proj_qkvz.weight", [key_dim, key_dim, each * dim, each * dim])
        b, a = project("in_proj_ba.weight", [each, each])
        qkv = torch.cat([q, k, v], -1)
    else:
        qkv, z, b, a = (x @ w(f"in_proj_{n}.weight").T for n in ("qkv", "z", "b", "a"))
    kernel = w("conv1d.weight")[:, 0]
    before = torch.cat([torch.zeros(kernel.shape[1] - 1, qkv.shape[1], dtype=qkv.dtype), qkv])
    qkv = torch.nn.functional.silu(sum(before[i:i + len(x)] * kernel[:, i] for i in range(kernel.shape[1])))
    q, k, v = (y.unflatten(1, (n, -1)) for y, n in zip(qkv.split([key_heads * key_dim, key_heads * key_dim, heads * dim], -1),
                                                      (key_heads, key_heads, heads)))
    q, k = ((y / (y.pow(2).sum(-1, keepdim=True) + 1e-6).sqrt()).repeat_interleave(each, 1) for y in (q, k))
    q, decay, beta = q / math.sqrt(key_dim), (-w("A_log").exp() * torch.nn.functional.softplus(a + w("dt_bias"))).exp(), b.sigmoid()
    state, out = torch.zeros(heads, key_dim, dim, dtype=torch.float64), []
    for t in range(len(x)):
        state = state * decay[t, :, None, None]
        change = beta[t, :, None] * (v[t] - (k[t, :, None] @ state)[:, 0])
        state = state + k[t, :, :, None] * change[:, None]
        out.append((q[t, :, None] @ state)[:, 0])
    out = rms_norm(torch.stack(out), w("norm.weight"), config.rms_norm_eps).flatten(1) * torch.nn.functional.silu(z)
    return out @ w("out_proj.weight").T


def short_convolution(w, x):
    """x (rows, H); w(name) is a weight of conv."""
    b, c, x = (x @ w("in_proj.weight").T).chunk(3, -1)
    taps = w("conv.weight")[:, 0]  # (H, taps), the row itself last
    padded = torch.cat([torch.zeros(taps.shape[1] - 1, x.shape[1], dtype=x.dtype), b * x])
    out = sum(padded[t:t + len(x)] * taps[:, t] for t in range(taps.shape[1]))
    return (c * out) @ w("o_proj.weight").T


def family_norm(weights, config, name, x):
    around_0 = config.model_type.startswith("gemma") or config.model_type in HYBRIDS
    w = weights[name].to(torch.float64)
    return rms_norm(x, 1 + w if around_0 else w, config.rms_norm_eps)


def family_layer(weights, config, i, x):
    gemma, norms_after = config.model_type.startswith("gemma"), config.model_type in ("olmo2", "olmo3", "exaone4")
    around_0 = gemma or config.model_type in HYBRIDS
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    eps, positions, f64 = config.rms_norm_eps, torch.arange(len(x)), torch.float64
    residual = getattr(config, "residual_multiplier", 1.0)
    attention_scale = config.query_pre_attn_scalar ** -0.5 if gemma else getattr(config, "attention_multiplier", None)
    at = f"model.layers.{i}."

    def norm(x, name):
        return family_norm(weights, config, name, x)

    def w(name):
        t = weights.get(at + "self_attn." + name)
        if t is None and name[1:] == "_proj.weight" and name[0] in "qkv":  # Phi-3's are one
            sizes = [heads * head_dim, kv_heads * head_dim, kv_heads * head_dim]
            t = weights[at + "self_attn.qkv_proj.weight"].split(sizes)["qkv".index(name[0])]
        if config.model_type == "ernie4_5_moe" and name in ("q_proj.weight", "k_proj.weight"):  # rotary pairs are neighbours
            t = t.unflatten(0, (-1, head_dim // 2, 2)).transpose(1, 2).flatten(0, 2)
        if config.model_type in HYBRIDS and name in ("q_proj.weight", "gate_proj.weight"):  # in turns, a head of each
            t = weights[at + "self_attn.q_proj.weight"].unflatten(0, (heads, 2, head_dim))[:, int(name[0] == "g")].flatten(0, 1)
        return None if t is None else t.to(f64) + (1 if around_0 and "norm" in name else 0)

    kinds = getattr(config, "layer_types", None)
    window = getattr(config, "sliding_window", None) if not kinds or kinds[i] == WINDOW else None
    inv, scale = inverse_frequencies_of(config, i)
    h = x if norms_after else norm(x, at + "input_layernorm.weight")
    if kinds and kinds[i] == CONV:
        h = short_convolution(lambda name: weights[at + "conv." + name].to(f64), h)
    elif kinds and kinds[i] == LINEAR:
        h = delta_net(lambda name: weights[at + "linear_attn." + name].to(f64), config, h)
    else:
        h = attention(w, h, positions, heads, kv_heads, head_dim, eps, inv, scale, attention_scale, window,
                      getattr(config, "attn_logit_softcapping", None))
    if gemma or norms_after:
        h = norm(h, at + "post_attention_layernorm.weight")
    x = x + residual * h
    h = x if norms_after else norm(x, at + ("pre_feedforward" if gemma else "post_attention") + "_layernorm.weight")
    if at + "mlp.experts.down_proj" in weights or config.model_type.startswith("granitemoe"):
        h, apart = mixture(weights, config, at, h)
        assert apart > 1e-3, (apart, "which experts a row takes should not hang on rounding: take another seed")
        return x + residual * h
    gate_up = weights.get(at + "mlp.gate_up_proj.weight")
    gate, up = gate_up.chunk(2) if gate_up is not None else (weights[at + f"mlp.{n}_proj.weight"] for n in ("gate", "up"))
    gate = h @ gate.to(f64).T
    gate = torch.nn.functional.gelu(gate, approximate="tanh") if gemma else torch.nn.functional.silu(gate)
    h = (gate * (h @ up.to(f64).T)) @ weights[at + "mlp.down_proj.weight"].to(f64).T
    if gemma or norms_after:
        h = norm(h, at + "post_feedforward_layernorm.weight")
    return x + residual * h


def forward_family(weights, config, ids):
    if config.model_type == "gemma4_text":
        return forward_gemma4(weights, config, ids)
    if config.model_type.startswith("lfm2"):
        config.rms_norm_eps = config.norm_eps
        for theirs, ours in LFM2_NAMES.items():
            weights = {name.replace(theirs, ours): w for name, w in weights.items()}
    x = weights["model.embed_tokens.weight"].to(torch.float64)[ids]
    gemma = config.model_type.startswith("gemma")
    x = x * (float(torch.tensor(config.hidden_size ** 0.5)) if gemma else getattr(config, "embedding_multiplier", 1.0))
    taps = []
    for i in range(config.num_hidden_layers):
        taps.append(x)
        x = family_layer(weights, config, i, x)
    feature = family_norm(weights, config, "model.norm.weight", x)
    head = weights.get("lm_head.weight", weights["model.embed_tokens.weight"]).to(torch.float64)
    logits, cap = feature @ head.T / getattr(config, "logits_scaling", 1.0), getattr(config, "final_logit_softcapping", None)
    return taps, feature, (logits / cap).tanh() * cap if cap else logits


def gemma4_attention(weights, config, i, h, kept):
    """kept: keys and values of the last layer of each kind so far."""
    own = config.per_layer_config[i]
    kind, heads, kv_heads, head_dim, eps = config.layer_types[i], config.num_attention_heads, own.num_key_value_heads, own.head_dim, config.rms_norm_eps
    rope, positions, at = config.rope_parameters[kind], torch.arange(len(h)), f"model.layers.{i}.self_attn."
    inv = rope["rope_theta"] ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    inv[int(rope.get("partial_rotary_factor", 1.0) * head_dim) // 2:] = 0
    angle = positions[:, None] * inv
    cos, sin = (torch.cat([f(angle), f(angle)], -1)[:, None] for f in (torch.cos, torch.sin))

    def projected(name, n):
        return (h @ weights[at + name + "_proj.weight"].to(torch.float64).T).unflatten(1, (n, head_dim))

    def normed(x, name):
        return rms_norm(x, weights[at + name + "_norm.weight"].to(torch.float64), eps)

    def turned(x):
        return x * cos + torch.cat([-x[..., head_dim // 2:], x[..., :head_dim // 2]], -1) * sin

    if i < config.num_hidden_layers - config.num_kv_shared_layers:
        k = projected("k", kv_heads)
        v = k if config.attention_k_eq_v and kind == FULL else projected("v", kv_heads)
        kept[kind] = turned(normed(k, "k")), rms_norm(v, 1, eps)
    q = turned(normed(projected("q", heads), "q"))
    k, v = (x.repeat_interleave(heads // kv_heads, 1) for x in kept[kind])
    scores = torch.einsum("qhd,khd->hqk", q, k)
    away = positions[:, None] - positions
    hidden = (away < 0) | ((away >= config.sliding_window) & (kind == WINDOW))
    out = torch.einsum("hqk,khd->qhd", scores.masked_fill(hidden, -math.inf).softmax(-1), v)
    return out.flatten(1) @ weights[at + "o_proj.weight"].to(torch.float64).T


def forward_gemma4(weights, config, ids, kept=None):
    """kept: a dictionary for the keys and values that the last layers of each kind read."""
    def w(name):
        return weights["model." + name].to(torch.float64)

    def norm(x, name):
        return rms_norm(x, w(name + ".weight"), config.rms_norm_eps)

    def gelu(x):
        return torch.nn.functional.gelu(x, approximate="tanh")

    x, width = w("embed_tokens.weight")[ids] * float(torch.tensor(config.hidden_size ** 0.5)), config.hidden_size_per_layer_input
    if width:
        said = (x @ w("per_layer_model_projection.weight").T * config.hidden_size ** -0.5).unflatten(1, (-1, width))
        own = w("embed_tokens_per_layer.weight")[ids].unflatten(1, (-1, width)) * float(torch.tensor(width ** 0.5))
        inputs = (norm(said, "per_layer_projection_norm") + own) * 2 ** -0.5
    taps, kept = [], {} if kept is None else kept
    for i in range(config.num_hidden_layers):
        taps.append(x)
        at = f"layers.{i}."
        x = x + norm(gemma4_attention(weights, config, i, norm(x, at + "input_layernorm"), kept), at + "post_attention_layernorm")
        h = norm(x, at + "pre_feedforward_layernorm")
        h = (gelu(h @ w(at + "mlp.gate_proj.weight").T) * (h @ w(at + "mlp.up_proj.weight").T)) @ w(at + "mlp.down_proj.weight").T
        if config.enable_moe_block:
            h = norm(h, at + "post_feedforward_layernorm_1")
            read = rms_norm(x, w(at + "router.scale") * config.hidden_size ** -0.5, config.rms_norm_eps)
            best, taken = (read @ w(at + "router.proj.weight").T).softmax(-1).sort(-1, descending=True)
            k = config.top_k_experts
            assert (best[:, k - 1] - best[:, k]).min() > 1e-3, "which experts a row takes should not hang on rounding: take another seed"
            counts = best[:, :k] / best[:, :k].sum(-1, keepdim=True) * w(at + "router.per_expert_scale")[taken[:, :k]]
            gate_ups, downs = w(at + "experts.gate_up_proj"), w(at + "experts.down_proj")
            given = []
            for row, experts, count in zip(norm(x, at + "pre_feedforward_layernorm_2"), taken[:, :k], counts):
                gate, up = torch.stack([gate_ups[e] @ row for e in experts]).chunk(2, -1)
                given.append(count @ torch.stack([downs[e] @ a for e, a in zip(experts, gelu(gate) * up)]))
            h = h + norm(torch.stack(given), at + "post_feedforward_layernorm_2")
        x = x + norm(h, at + "post_feedforward_layernorm")
        if width:
            h = gelu(x @ w(at + "per_layer_input_gate.weight").T) * inputs[:, i]
            x = x + norm(h @ w(at + "per_layer_projection.weight").T, at + "post_per_layer_input_norm")
        x = x * w(at + "layer_scalar")
    feature = norm(x, "norm")
    logits = feature @ w("embed_tokens.weight").T / config.final_logit_softcapping
    return taps, feature, logits.tanh() * config.final_logit_softcapping


def as_mxfp4(w):
    """(experts, in, out) -> blocks (experts, out, in / 32, 16), scales, as OpenAI's checkpoints have them."""
    rows = w.transpose(1, 2).reshape(w.shape[0], w.shape[2], -1, 32)
    scales = rows.abs().amax(-1).log2().floor().to(torch.int32) - 2 + 127
    e2m1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    scaled = rows * 2.0 ** (127 - scales)[..., None]
    codes = (scaled.abs()[..., None] - e2m1).abs().argmin(-1) + 8 * (scaled < 0)
    return (codes[..., ::2] | codes[..., 1::2] << 4).to(torch.uint8), scales.to(torch.uint8)


def publish_mxfp4(folder):
    path, out = folder / "model.safetensors", {}
    for name, w in load_file(path).items():
        if name.endswith("experts.gate_up_proj") or name.endswith("experts.down_proj"):
            out[name + "_blocks"], out[name + "_scales"] = (t.contiguous() for t in as_mxfp4(w))
        else:
            out[name] = w.to(torch.bfloat16)
    save_file(out, path, metadata={"format": "pt"})


def make_target(name, seed, fields):
    fields = dict(fields)
    rope, mxfp4 = fields.pop("rope", None), fields.pop("mxfp4", False)
    config_type, model_type = fields.pop("kind", (LlamaConfig, LlamaForCausalLM))
    family = "rope_parameters" in fields
    parameters = fields.pop("rope_parameters", {"rope_theta": 10000.0, "rope_type": "default"})
    if rope:
        parameters.update(rope)
        parameters["rope_type"] = parameters.pop("type", parameters["rope_type"])
        theta = parameters.get("rope_theta", 10000.0)
        rope = {k: v for k, v in rope.items() if k != "rope_theta"}
    config = config_type(**fields, max_position_embeddings=128, rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2,
                         rope_parameters=parameters, attn_implementation="eager",
                         **({"pad_token_id": None} if family else {}))
    generator = torch.Generator().manual_seed(seed)
    model = model_type(config).eval()
    initialize(model, generator)
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    written = json.loads((folder / "config.json").read_text())
    if rope:
        del written["rope_parameters"]
        written |= {"rope_theta": theta, "rope_scaling": rope}
    if mxfp4:
        written["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router"]}
        publish_mxfp4(folder)
    write = json.dumps(written, indent=2, sort_keys=True) + "\n"
    (folder / "config.json").write_text(write)

    # From the files, so that the golden belongs to what was written.
    experts = {"experts_implementation": "eager"} if config.model_type in MIXTURES else {}  # others have no double precision
    model = model_type.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32, **experts).eval().double()
    weights = {k: v for k, v in model.state_dict().items()}
    ids = torch.randint(0, config.vocab_size, (TOKENS,), generator=generator)
    with torch.no_grad():
        out = model(ids[None], output_hidden_states=True)
        taps, feature, logits = forward_family(weights, model.config, ids) if family else forward(weights, model.config, rope, ids)
    # Even of a float64 model transformers computes norms, softmax, cos, sin and the delta rule in float32. The golden
    # is ours, float64 all through, and transformers has to agree with every number of it.
    theirs = [h[0] for h in out.hidden_states] + [out.logits[0]]
    worst = max((a - b).abs().max().item() for a, b in zip(theirs, taps + [feature, logits], strict=True))
    assert worst < 2e-5, (name, worst)
    write_json(folder / "golden.json", {
        "ids": ids.tolist(),
        "logits": rounded(logits),
        "positions": TAP_POSITIONS,
        "taps": [{"layer": i, "rows": rounded(t[TAP_POSITIONS])} for i, t in enumerate(taps)],
        "features": rounded(feature[TAP_POSITIONS]),
    })
    (folder / "model.safetensors").chmod(0o644)
    top2 = logits.topk(2).values
    margin = (top2[:, 0] - top2[:, 1]).min().item()
    assert margin > 1e-3, (name, margin, "the argmax should not hang on rounding: take another seed")
    print(f"{name}: {(folder / 'model.safetensors').stat().st_size} bytes, logits std {logits.std():.2f}, "
          f"smallest argmax margin {margin:.4f}, transformers differs by {worst:.1e}")
    return ids, feature, weights


def make_eagle(target, seed):
    ids, feature, weights = target
    fields = CHECKPOINTS["mha"]
    hidden, ffn, heads = fields["hidden_size"], fields["intermediate_size"], fields["num_attention_heads"]
    generator = torch.Generator().manual_seed(seed)
    head = {"fc.weight": normal((hidden, 2 * hidden), 1 / math.sqrt(hidden), generator),
            "fc.bias": normal((hidden,), 0.2, generator),
            "layers.0.post_attention_layernorm.weight": 1 + normal((hidden,), 0.2, generator)}
    for which in "qkvo":
        head[f"layers.0.self_attn.{which}_proj.weight"] = normal((hidden, hidden), 1.2 / math.sqrt(hidden), generator)
    for which, shape in (("gate", (ffn, hidden)), ("up", (ffn, hidden)), ("down", (hidden, ffn))):
        head[f"layers.0.mlp.{which}_proj.weight"] = normal(shape, 1 / math.sqrt(shape[1]), generator)
    folder = HERE / "eagle_mha"
    folder.mkdir(exist_ok=True)
    save_file(head, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": hidden,
              "intermediate_size": ffn, "num_attention_heads": heads, "num_hidden_layers": 1, "rms_norm_eps": 1e-5,
              "vocab_size": fields["vocab_size"], "max_position_embeddings": 128, "bos_token_id": 1, "eos_token_id": 2}
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")

    embed, lm_head = (weights[k].to(torch.float64) for k in ("model.embed_tokens.weight", "lm_head.weight"))
    inv = inverse_frequencies(hidden // heads, 10000.0, None)

    def run(features, tokens):
        """Rows (f_j, t_{j+1}) -> (rows, H), recomputed as a whole: no cache to be wrong."""
        x = torch.cat([embed[tokens], features], -1) @ head["fc.weight"].double().T + head["fc.bias"].double()
        return layer(head, "layers.0.", x, torch.arange(len(tokens)), heads, heads, hidden // heads, 1e-5, inv, False)

    def top(out):
        log_p, token = (out @ lm_head.T).log_softmax(-1).topk(TOP + 1)
        assert (log_p[..., :-1] - log_p[..., 1:]).min() > 1e-3, "a tie: take another seed"
        return token[..., :TOP], log_p[..., :TOP]

    # Features as the golden file gives them, so that a test can start from the same numbers.
    rows_f, rows_t = feature[:-1].to(torch.float32).to(torch.float64), ids[1:]
    with torch.no_grad():
        out = run(rows_f, rows_t)
        prefix_rows = TAP_POSITIONS[:-1] + [len(out) - 1]
        golden = {"target": "../mha", "ids": ids.tolist(), "features": rounded(rows_f), "hidden": rounded(out),
                  "positions": prefix_rows, "top": [
                      {"ids": t.tolist(), "log_p": rounded(p)} for t, p in zip(*top(out[prefix_rows]))], "chain": []}
        for _ in range(6):  # each step takes the likeliest token and the head's own last output
            token = top(out[-1])[0][0]
            rows_f, rows_t = torch.cat([rows_f, out[-1:]]), torch.cat([rows_t, token[None]])
            out = run(rows_f, rows_t)
            t, p = top(out[-1])
            golden["chain"].append({"token": int(token), "hidden": rounded(out[-1]), "ids": t.tolist(), "log_p": rounded(p)})
    write_json(folder / "golden.json", golden)
    print("eagle_mha: chain", [s["token"] for s in golden["chain"]], f"hidden std {out.std():.2f}")


def main():
    targets = {name: make_target(name, fields.pop("seed", SEEDS + i), fields) for i, (name, fields) in enumerate(CHECKPOINTS.items())}
    for i, (name, fields) in enumerate(FAMILIES.items()):
        make_target(name, fields.pop("seed", 300 + i), fields)
    make_eagle(targets["mha"], 200)


if __name__ == "__main__":
    main()
