#!/usr/bin/env python3
"""Random drafter heads of every kind for targets of ../logits, and what they draft (README.md beside this file).

  pip install torch safetensors transformers
  PYTHONPATH=bindings/python make_golden.py
"""
import importlib.util
import json
import math
import pathlib

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, Gemma4AssistantConfig, Gemma4AssistantForCausalLM, Gemma4TextConfig

from aerie.train import heads
from aerie.train.draft import drafter
from aerie.train.heads import files
from aerie.train.rows import Rows

HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE.parent / "logits" / "mha"
spec = importlib.util.spec_from_file_location("logits_golden", HERE.parent / "logits" / "make_golden.py")
plain = importlib.util.module_from_spec(spec)  # the decoder in float64, and how numbers are written
spec.loader.exec_module(plain)

H, FFN, TARGET_FFN, HEADS, HEAD_DIM, V, EPS = 32, 32, 48, 4, 8, 160, 1e-5
TAPS = [0, 1, 2]
TOKENS = 24
ROWS = [0, 9, 18]
TOP = 5
DRAFT_VOCABULARY = 64


def matrix(rows, columns, g, gain=1.0):
    return plain.normal((rows, columns), gain / math.sqrt(columns), g)


def gain_vector(g, n=H):
    return 1 + plain.normal((n,), 0.2, g)


def decoder_layer(prefix, g, kv_heads, inputs=H, input_norm=True, ffn=FFN, width=H):
    w = {f"{prefix}post_attention_layernorm.weight": gain_vector(g, width)}
    if input_norm:
        w[f"{prefix}input_layernorm.weight"] = gain_vector(g, width)
    w[f"{prefix}self_attn.q_proj.weight"] = matrix(HEADS * HEAD_DIM, inputs, g, 1.5)
    w[f"{prefix}self_attn.k_proj.weight"] = matrix(kv_heads * HEAD_DIM, inputs, g, 1.5)
    w[f"{prefix}self_attn.v_proj.weight"] = matrix(kv_heads * HEAD_DIM, inputs, g)
    w[f"{prefix}self_attn.o_proj.weight"] = matrix(width, HEADS * HEAD_DIM, g)
    for name, shape in (("gate", (ffn, width)), ("up", (ffn, width)), ("down", (width, ffn))):
        w[f"{prefix}mlp.{name}_proj.weight"] = matrix(*shape, g)
    return w


def common(kv_heads, theta):
    return {"hidden_size": H, "intermediate_size": FFN, "num_attention_heads": HEADS,
            "num_key_value_heads": kv_heads, "head_dim": HEAD_DIM, "rms_norm_eps": EPS, "rope_theta": theta,
            "vocab_size": V, "max_position_embeddings": 128}


class Target:
    """Rows of the target in float64, from the checkpoint and the golden file of ../logits/mha."""

    def __init__(self):
        self.ids = torch.tensor(json.loads((TARGET / "golden.json").read_text())["ids"][:TOKENS])
        weights = {k: v.double() for k, v in load_file(str(TARGET / "model.safetensors")).items()}

        class Config:
            head_dim, num_hidden_layers, num_attention_heads, num_key_value_heads = HEAD_DIM, 3, HEADS, HEADS
            rms_norm_eps = EPS

        taps, self.features, _ = plain.forward(weights, Config, None, self.ids)
        inv = plain.inverse_frequencies(HEAD_DIM, 10000.0, None)
        self.last = plain.layer(weights, "model.layers.2.", taps[2], torch.arange(TOKENS), HEADS, HEADS, HEAD_DIM, EPS, inv, True)
        self.taps = torch.cat([taps[i] for i in TAPS], dim=-1)
        self.embed, self.lm_head = weights["model.embed_tokens.weight"], weights["lm_head.weight"]

    # What the PyTorch heads ask of a target, in float32.
    def embed_tokens(self, tokens):
        return self.embed.float()[tokens]

    def logits(self, features):
        return features @ self.lm_head.float().T

    def rows(self):
        return Rows(self.ids[None], self.embed_tokens(self.ids)[None], self.features.float()[None],
                    self.taps.float()[None])


def silu(x):
    return torch.nn.functional.silu(x)


# Each kind: weights(g) -> (tensors, config), and draft(w, target, row, path) -> logits of the token after `path`,
# recomputed as a whole every time: no cache to be wrong. `path` follows ids[row + 1].

def eagle_weights(g):
    config = {"architectures": ["EagleModel"], "model_type": "llama", **common(2, 10000.0), "bias": False,
              "qkv_bias": False, "num_hidden_layers": 1, "hidden_act": "silu"}
    return {"fc.weight": matrix(H, 2 * H, g, 1.4), **decoder_layer("layers.0.", g, 2, input_norm=False)}, config


def eagle_draft(w, t, row, path):
    features, tokens = t.features[:row + 1], t.ids[1:row + 2]
    for token in [*path, None]:
        x = torch.cat([t.embed[tokens], features], -1) @ w["fc.weight"].T
        out = plain.layer(w, "layers.0.", x, torch.arange(len(x)), HEADS, 2, HEAD_DIM, EPS,
                          plain.inverse_frequencies(HEAD_DIM, 10000.0, None), False)
        if token is not None:
            features, tokens = torch.cat([features, out[-1:]]), torch.cat([tokens, torch.tensor([token])])
    return out[-1] @ t.lm_head.T


def eagle3_weights(g, width=H):
    ids = torch.randperm(V, generator=g)[:DRAFT_VOCABULARY].sort().values
    t2d = torch.zeros(V, dtype=torch.bool)
    t2d[ids] = True
    config = {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", **common(2, 500.0),
              "draft_vocab_size": DRAFT_VOCABULARY, "eagle_aux_hidden_state_layer_ids": TAPS,
              "num_hidden_layers": 1, "hidden_act": "silu", "tie_word_embeddings": False}
    return {"fc.weight": matrix(width, 3 * H, g), **decoder_layer("midlayer.", g, 2, inputs=2 * width, width=width),
            "midlayer.hidden_norm.weight": gain_vector(g, width), "norm.weight": gain_vector(g, width),
            "lm_head.weight": matrix(DRAFT_VOCABULARY, width, g, 2.0),
            "d2t": ids - torch.arange(len(ids)), "t2d": t2d}, config


def eagle3_draft(w, t, row, path):
    return eagle3_logits(w, t, row, path, t.taps[:row + 1], plain.inverse_frequencies(HEAD_DIM, 500.0, None))


def eagle3_logits(w, t, row, path, taps, inv, residual=False, output=False, scale=1.0):
    """residual, output: speculators' norm_before_residual, norm_output."""
    features, tokens, embed = taps @ w["fc.weight"].T, t.ids[1:row + 2], w.get("embed_tokens.weight", t.embed)
    for token in [*path, None]:
        normed = plain.rms_norm(features, w["midlayer.hidden_norm.weight"], EPS)
        x = torch.cat([plain.rms_norm(embed[tokens], w["midlayer.input_layernorm.weight"], EPS), normed], -1)
        out = (normed if residual else features) + plain.attention(
            lambda n: w.get(f"midlayer.self_attn.{n}"), x, torch.arange(len(x)), HEADS, 2, HEAD_DIM, EPS, inv, scale)
        h = plain.rms_norm(out, w["midlayer.post_attention_layernorm.weight"], EPS)
        out = out + (silu(h @ w["midlayer.mlp.gate_proj.weight"].T) * (h @ w["midlayer.mlp.up_proj.weight"].T)
                     ) @ w["midlayer.mlp.down_proj.weight"].T
        if "layers.1.input_layernorm.weight" in w:
            out = plain.layer(w, "layers.1.", out, torch.arange(len(x)), HEADS, 2, HEAD_DIM, EPS, inv, True, scale)
        if output:
            out = plain.rms_norm(out, w["norm.weight"], EPS)
        if token is not None:
            features, tokens = torch.cat([features, out[-1:]]), torch.cat([tokens, torch.tensor([token])])
    scores = (out[-1] if output else plain.rms_norm(out[-1], w["norm.weight"], EPS)) @ w["lm_head.weight"].T
    logits = torch.full((V,), -math.inf, dtype=torch.float64)
    logits[torch.arange(DRAFT_VOCABULARY) + w["d2t"].long()] = scores
    return logits


# EAGLE-3.1 as speculators writes it: the layer's shape in transformer_layer_config, its RoPE scaled.
SCALED = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}


def eagle3_norms_weights(g):
    w, flat = eagle3_weights(g)
    nested = {**common(2, 500.0), "model_type": "llama", "num_hidden_layers": 1, "hidden_act": "silu", "rope_scaling": SCALED}
    config = {"architectures": ["Eagle3DraftModel"], "speculators_model_type": "eagle3", "target_hidden_size": None,
              "norm_before_fc": True, "norm_before_residual": True, "norm_output": True, "fc_norm": False,
              "transformer_layer_config": nested, "tie_word_embeddings": False,
              **{k: flat[k] for k in ("draft_vocab_size", "eagle_aux_hidden_state_layer_ids")}}
    w = {n.replace("midlayer.", "layers.0."): t for n, t in w.items()}
    return {**w, "input_norm.weight": 1 + plain.normal((3 * H,), 0.2, g)}, config


def eagle3_norms_draft(w, t, row, path):
    taps = plain.rms_norm(t.taps[:row + 1], w["input_norm.weight"], EPS)
    w = {n.replace("layers.0.", "midlayer."): x for n, x in w.items()}
    return eagle3_logits(w, t, row, path, taps, plain.inverse_frequencies(HEAD_DIM, 500.0, SCALED), residual=True, output=True)


def eagle3_fc_norm_weights(g):
    w, config = eagle3_weights(g)
    return w | {f"fc_norm.{i}.weight": gain_vector(g) for i in range(3)}, config | {"fc_norm": True}


def eagle3_fc_norm_draft(w, t, row, path):
    taps = [plain.rms_norm(x, w[f"fc_norm.{i}.weight"], EPS) for i, x in enumerate(t.taps[:row + 1].split(H, -1))]
    return eagle3_logits(w, t, row, path, torch.cat(taps, -1), plain.inverse_frequencies(HEAD_DIM, 500.0, None))


# Narrower than its target, as EAGLE3-LLaMA3.3-Instruct-70B.
NARROW = 24


def eagle3_narrow_weights(g):
    w, config = eagle3_weights(g, NARROW)
    w["embed_tokens.weight"] = plain.normal((V, NARROW), 1.0, g)
    return w, config | {"hidden_size": NARROW, "target_hidden_size": H}


# Two layers, what leaves the target's last one as the highest tap, and YaRN.
STRETCHED = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 1.0, "beta_slow": 0.1}

def eagle3_deep_weights(g):
    w, config = eagle3_weights(g)
    return {**w, **decoder_layer("layers.1.", g, 2)}, config | {"num_hidden_layers": 2, "eagle_aux_hidden_state_layer_ids": [0, 2, 3],
                                                          "rope_scaling": STRETCHED}


def eagle3_deep_draft(w, t, row, path):
    taps = torch.cat([t.taps[:, :H], t.taps[:, 2 * H:], t.last], -1)[:row + 1]
    inv = plain.inverse_frequencies(HEAD_DIM, 500.0, STRETCHED)
    return eagle3_logits(w, t, row, path, taps, inv, scale=plain.angle_scale(STRETCHED))


def fasteagle_weights(g):
    config = {"model_type": "fasteagle", "num_hidden_layers": 3, "draft_top_k": 4, **common(2, 2000.0),
              "eagle_aux_hidden_state_layer_ids": TAPS}
    w = {"fc.weight": matrix(H, 3 * H, g), "fc_in.weight": matrix(H, 2 * H, g, 1.4)}
    for i in range(3):
        w |= decoder_layer(f"layers.{i}.", g, 2)
    return w, config


def fasteagle_draft(w, t, row, path):
    g = t.taps[:row + 1] @ w["fc.weight"].T
    x = torch.cat([g, t.embed[t.ids[1:row + 2]]], -1) @ w["fc_in.weight"].T
    for i in range(len(path) + 1):
        x = plain.layer(w, f"layers.{i}.", x, torch.arange(len(x)), HEADS, 2, HEAD_DIM, EPS,
                        plain.inverse_frequencies(HEAD_DIM, 2000.0, None), True)
    return x[-1] @ t.lm_head.T


DFLASH_LAYERS, DFLASH_ROWS, MASK, DFLASH_THETA = 2, 6, 158, 3000.0


def dflash_weights(g):
    config = {"architectures": ["DFlashDraftModel"], "model_type": "qwen3", **common(2, DFLASH_THETA), "num_hidden_layers": DFLASH_LAYERS,
              "num_target_layers": 3, "block_size": DFLASH_ROWS, "dflash_config": {"mask_token_id": MASK, "target_layer_ids": [0, 1]},
              "attention_bias": False, "hidden_act": "silu", "tie_word_embeddings": False}
    w = {"fc.weight": matrix(H, 2 * H, g), "hidden_norm.weight": gain_vector(g), "norm.weight": gain_vector(g)}
    for i in range(DFLASH_LAYERS):
        w |= decoder_layer(f"layers.{i}.", g, 2)
        w |= {f"layers.{i}.self_attn.{n}_norm.weight": 1.5 * gain_vector(g, HEAD_DIM) for n in "qk"}
    return w, config


DFLASH_WINDOW = 9


def dflash_window_weights(g):
    w, config = dflash_weights(g)
    return w, config | {"use_sliding_window": True, "sliding_window": DFLASH_WINDOW, "max_window_layers": 0,
                        "layer_types": ["sliding_attention", "full_attention"]}


def dflash_window_draft(w, t, row, path):
    return dflash_draft(w, t, row, path, 0)


def dflash_draft(w, t, row, path, windowed=None):
    """windowed: a layer that looks back alone, and not far, as z-lab's newer code has it."""
    def norm(x, name):
        return plain.rms_norm(x, w[name + ".weight"], EPS)
    inv, newest = plain.inverse_frequencies(HEAD_DIM, DFLASH_THETA, None), row + 1
    context = norm(t.taps[:newest, H:] @ w["fc.weight"].T, "hidden_norm")  # outputs of layers 0 and 1: what 1 and 2 read
    x = t.embed[torch.tensor([t.ids[newest], *[MASK] * (DFLASH_ROWS - 1)])]
    positions = torch.arange(newest + DFLASH_ROWS)
    for i in range(DFLASH_LAYERS):
        at = f"layers.{i}."
        h = norm(x, at + "input_layernorm")

        def project(which, rows):
            return (rows @ w[f"{at}self_attn.{which}_proj.weight"].T).unflatten(-1, (-1, HEAD_DIM)).transpose(0, 1)
        q, k, v = project("q", h), project("k", torch.cat([context, h])), project("v", torch.cat([context, h]))
        q = plain.rotate(norm(q, at + "self_attn.q_norm"), positions[newest:], inv, 1.0)
        k = plain.rotate(norm(k, at + "self_attn.k_norm"), positions, inv, 1.0)
        k, v = (y.repeat_interleave(HEADS // 2, 0) for y in (k, v))
        scores = q @ k.transpose(1, 2) / math.sqrt(HEAD_DIM)  # all rows of the block see all of it, or
        back = positions[newest:, None] - positions
        if i == windowed:
            scores = scores.masked_fill((back < 0) | (back >= DFLASH_WINDOW), -math.inf)
        out = scores.softmax(-1) @ v
        x = x + out.transpose(0, 1).flatten(1) @ w[at + "self_attn.o_proj.weight"].T
        h = norm(x, at + "post_attention_layernorm")
        x = x + (silu(h @ w[at + "mlp.gate_proj.weight"].T) * (h @ w[at + "mlp.up_proj.weight"].T)) @ w[at + "mlp.down_proj.weight"].T
    return norm(x, "norm")[1 + len(path)] @ t.lm_head.T


def medusa_weights(g):
    config = {"model_type": "medusa", "medusa_num_heads": 3, "medusa_num_layers": 1, "hidden_size": H, "vocab_size": V}
    w = {}
    for i in range(3):
        w |= {f"{i}.0.linear.weight": matrix(H, H, g), f"{i}.0.linear.bias": plain.normal((H,), 0.3, g)}
    return w, config


def medusa_draft(w, t, row, path):
    x, i = t.features[row], len(path)
    return (x + silu(w[f"{i}.0.linear.weight"] @ x + w[f"{i}.0.linear.bias"])) @ t.lm_head.T


def hydra_weights(g):
    config = {"model_type": "hydra", "hydra_num_heads": 3, "hydra_num_layers": 1, "hydra_head_arch": "mlp",
              "grounded_heads": True, "hidden_state_offset": 0, "hidden_size": H, "vocab_size": V}
    w = {}
    for i in range(3):
        for name in ("linear", "res_connection"):
            w[f"hydra_mlp.{i}.0.{name}.weight"] = matrix(H, (i + 2) * H, g)
            w[f"hydra_mlp.{i}.0.{name}.bias"] = plain.normal((H,), 0.3, g)
    return w, config


def hydra_draft(w, t, row, path):
    tokens = [int(t.ids[row + 1]), *path]
    x = torch.cat([t.features[row]] + [t.embed[token] for token in tokens])
    block = f"hydra_mlp.{len(path)}.0."
    return (w[block + "res_connection.weight"] @ x + w[block + "res_connection.bias"]
            + silu(w[block + "linear.weight"] @ x + w[block + "linear.bias"])) @ t.lm_head.T


# Hydra++: the target's layer shape before two-block heads with LM heads and an embedding of their own; a dropout before every
# module counts in the names.

def hydra_prefix_weights(g):
    config = {"hydra_num_heads": 3, "hydra_num_layers": 2, "hydra_head_arch": "prefix-mlp", "grounded_heads": True,
              "hidden_state_offset": 0}
    at = "prefix_embeding_layer."  # sic
    w = {**decoder_layer(f"{at}layers.0.", g, HEADS, ffn=TARGET_FFN), f"{at}norm.weight": gain_vector(g)}
    for i in range(3):
        for name, columns in (("1.linear", (i + 2) * H), ("1.res_connection", (i + 2) * H), ("3.linear", H)):
            w[f"hydra_mlp.{i}.{name}.weight"] = matrix(H, columns, g)
            w[f"hydra_mlp.{i}.{name}.bias"] = plain.normal((H,), 0.3, g)
        w[f"hydra_lm_head.{i}.1.weight"] = matrix(V, H, g, 2.0)
        w[f"hydra_lm_head.{i}.1.bias"] = plain.normal((V,), 0.3, g)
    w["input_embed_fn.weight"] = plain.normal((V, H), 1.0, g)
    return w, config


def hydra_prefix_draft(w, t, row, path):
    tokens, at = [int(t.ids[row + 1]), *path], f"hydra_mlp.{len(path)}."
    f = plain.layer(w, "prefix_embeding_layer.layers.0.", t.features[:row + 1], torch.arange(row + 1), HEADS, HEADS, HEAD_DIM, EPS,
                    plain.inverse_frequencies(HEAD_DIM, 10000.0, None), True)
    x = torch.cat([plain.rms_norm(f[-1], w["prefix_embeding_layer.norm.weight"], EPS)] + [w["input_embed_fn.weight"][token] for token in tokens])

    def linear(name, x):
        return w[f"{at}{name}.weight"] @ x + w[f"{at}{name}.bias"]
    x = linear("1.res_connection", x) + silu(linear("1.linear", x))
    x = x + silu(linear("3.linear", x))
    lm_head = f"hydra_lm_head.{len(path)}.1."
    return w[lm_head + "weight"] @ x + w[lm_head + "bias"]


# Weights, draft, levels, seed (the first of its hundred without a near tie among the top five).
KINDS = {"eagle": (eagle_weights, eagle_draft, 4, 301), "eagle3": (eagle3_weights, eagle3_draft, 4, 400),
         "fasteagle": (fasteagle_weights, fasteagle_draft, 3, 501), "medusa": (medusa_weights, medusa_draft, 3, 600),
         "hydra": (hydra_weights, hydra_draft, 3, 700), "hydra_prefix": (hydra_prefix_weights, hydra_prefix_draft, 3, 800),
         "eagle3_norms": (eagle3_norms_weights, eagle3_norms_draft, 4, 900),
         "eagle3_fc_norm": (eagle3_fc_norm_weights, eagle3_fc_norm_draft, 4, 1000),
         "eagle3_narrow": (eagle3_narrow_weights, eagle3_draft, 4, 1100),
         "eagle3_deep": (eagle3_deep_weights, eagle3_deep_draft, 4, 1200),
         "dflash_window": (dflash_window_weights, dflash_window_draft, DFLASH_ROWS - 1, 1400),
         "dflash": (dflash_weights, dflash_draft, DFLASH_ROWS - 1, 1302)}
NOT_TRAINED = {"hydra_prefix", "eagle3_norms", "eagle3_fc_norm", "eagle3_narrow", "eagle3_deep", "dflash", "dflash_window"}  # no PyTorch head to compare with


def twin_levels(target, head, row, path):
    """The same from the PyTorch heads that are trained: [levels][V]."""
    draft = drafter(target, head)
    draft.prepare(target.rows())
    state = draft.begin(torch.tensor([row + 1]))[:, None]
    out = [draft.logits(state)[0, 0]]
    for depth, token in enumerate(path, 1):
        state = draft.expand(torch.tensor([[token]]), state, depth, torch.ones(1, 1, depth, dtype=torch.bool))
        out.append(draft.logits(state)[0, 0])
    return out


def top(logits):
    log_p, ids = logits.log_softmax(-1).topk(TOP + 1)
    assert (log_p[:-1] - log_p[1:]).min() > 1e-3, "a tie: take another seed"
    return ids[:TOP].tolist(), log_p[:TOP]


# Layers for multi-token prediction, which lie behind the last of a target of their own family. Its folder, the key that counts them,
# and the seed: as above, no router is nearer than 1e-3 to other experts, and every expert is taken by a row whose output is read.
MTP = {"mtp_qwen3_5": ("qwen3_5", "mtp_num_hidden_layers", 1300), "mtp_qwen3_5_moe": ("qwen3_5_moe", "mtp_num_hidden_layers", 1400),
       "mtp_glm4_moe": ("glm4_moe", "num_nextn_predict_layers", 1509)}
MTP_LEVELS = 4


def stacked(tensors):
    """Experts' matrices in one tensor, as the decoder and transformers' modules have them."""
    out = {name: t for name, t in tensors.items() if ".experts." not in name}
    for at in {name.partition(".experts.")[0] + ".experts." for name in tensors if ".experts." in name}:
        count = sum(name.startswith(at) and name.endswith(".down_proj.weight") for name in tensors)
        gate, up, down = (torch.stack([tensors[f"{at}{e}.{n}_proj.weight"] for e in range(count)]) for n in ("gate", "up", "down"))
        out |= {at + "gate_up_proj": torch.cat([gate, up], 1), at + "down_proj": down}
    return out


def published(tensors):
    """The other way round: a tensor for each matrix of each expert, as files have them."""
    out = {}
    for name, t in tensors.items():
        at, of_experts, which = name.partition(".experts.")
        if not of_experts:
            out[name] = t
            continue
        parts = {"gate_up_proj": ("gate", "up"), "down_proj": ("down",)}[which]
        for e, matrices in enumerate(t):
            out |= {f"{at}.experts.{e}.{n}_proj.weight": m for n, m in zip(parts, matrices.chunk(len(parts)))}
    return out


class MtpTarget:
    """A target of ../logits in float64, and what the tensors behind its last layer are called."""

    def __init__(self, name):
        self.folder = HERE.parent / "logits" / name
        golden, tensors = json.loads((self.folder / "golden.json").read_text()), load_file(str(self.folder / "model.safetensors"))
        self.config = AutoConfig.from_pretrained(self.folder)
        self.layers, self.qwen = self.config.num_hidden_layers, self.config.model_type in plain.HYBRIDS
        ids = torch.tensor(golden["ids"])
        _, features, logits = plain.forward_family(stacked(tensors), self.config, ids)
        assert (logits - torch.tensor(golden["logits"])).abs().max() < 1e-6, name
        self.ids, self.features = ids[:TOKENS], features[:TOKENS]
        self.embed = tensors["model.embed_tokens.weight"]
        self.lm_head = tensors.get("lm_head.weight", self.embed)
        at = f"model.layers.{self.layers}."
        self.fc, self.input_norm, self.hidden_norm, self.norm, self.layer = (
            f"mtp.{n}" for n in ("fc.weight", "pre_fc_norm_embedding.weight", "pre_fc_norm_hidden.weight", "norm.weight", "layers.0.")
        ) if self.qwen else (f"{at}{n}" for n in ("eh_proj.weight", "enorm.weight", "hnorm.weight", "shared_head.norm.weight", ""))
        if self.qwen:
            self.config.layer_types = [*self.config.layer_types, plain.FULL]

    def alone(self):
        """transformers' model of one layer, which is as the one behind the last."""
        changes = {"num_hidden_layers": 1, **({"layer_types": [plain.FULL]} if self.qwen else {"first_k_dense_replace": 0})}
        config = AutoConfig.from_pretrained(self.folder, attn_implementation="eager", experts_implementation="eager", **changes)
        return AutoModelForCausalLM.from_config(config).eval()


def mtp_weights(g, t):
    model = t.alone()
    plain.initialize(model, g)
    own = "model.layers.0."
    w = {t.layer + name.removeprefix(own): x for name, x in model.state_dict().items() if name.startswith(own)}
    h, around = t.config.hidden_size, 0 if t.qwen else 1
    w |= {t.fc: matrix(h, 2 * h, g, 1.4), **{n: around + plain.normal((h,), 0.2, g) for n in (t.input_norm, t.hidden_norm, t.norm)}}
    if not t.qwen:
        w |= {t.layer + "embed_tokens.weight": t.embed, t.layer + "shared_head.head.weight": t.lm_head}
    return published(w) | {"model.embed_tokens.weight": t.embed}


def mtp_draft(w, t, row, path):
    features, tokens = t.features[:row + 1], t.ids[1:row + 2]
    behind = f"model.layers.{t.layers}."
    layer = stacked({behind + name.removeprefix(t.layer): x for name, x in w.items() if name.startswith(t.layer)})
    for token in [*path, None]:
        x = torch.cat([plain.family_norm(w, t.config, t.input_norm, t.embed.double()[tokens]),
                       plain.family_norm(w, t.config, t.hidden_norm, features)], -1) @ w[t.fc].T
        out = plain.family_layer(layer, t.config, t.layers, x)
        normed = plain.family_norm(w, t.config, t.norm, out)
        if token is not None:  # Qwen's drafted rows read what the LM head reads
            features = torch.cat([features, (normed if t.qwen else out)[-1:]])
            tokens = torch.cat([tokens, torch.tensor([token])])
    return normed[-1] @ t.lm_head.double().T


def mtp_twin(w, t):
    """(row, path) -> [levels][V] by transformers' modules, drafted rows one at a time over cached keys and values."""
    model = t.alone()
    inner = model.model
    layer = stacked({name.removeprefix(t.layer): x for name, x in w.items() if name.startswith(t.layer)})
    inner.layers[0].load_state_dict({name: layer[name] for name in inner.layers[0].state_dict()})
    inner.norm.load_state_dict({"weight": w[t.norm]})
    inner.embed_tokens.load_state_dict({"weight": t.embed})
    model.lm_head.load_state_dict({"weight": t.lm_head})
    model.double()
    norms = [type(inner.norm)(t.config.hidden_size, eps=t.config.rms_norm_eps).double() for _ in range(2)]
    for norm, name in zip(norms, (t.input_norm, t.hidden_norm)):
        norm.load_state_dict({"weight": w[name]})
    raw = []
    inner.layers[0].register_forward_hook(lambda _, __, out: raw.append(out))

    def levels(row, path):
        features, tokens, kept, out = t.features[None, :row + 1], t.ids[None, 1:row + 2], None, []
        for token in [*path, None]:
            x = torch.nn.functional.linear(torch.cat([norms[0](inner.embed_tokens(tokens)), norms[1](features)], -1), w[t.fc])
            result = inner(inputs_embeds=x, cache=kept, use_cache=True)
            kept = result.cache
            out.append(model.lm_head(result.last_hidden_state)[0, -1])
            features = (result.last_hidden_state if t.qwen else raw[-1])[:, -1:]
            tokens = torch.tensor([[token or 0]])
        return out
    return levels


# Gemma 4's assistant: its folder, the target and the seed.
ASSISTANTS = {"assistant_gemma4": ("gemma4", 1600)}


class AssistantTarget:
    def __init__(self, name):
        folder = HERE.parent / "logits" / name
        golden, self.weights = json.loads((folder / "golden.json").read_text()), load_file(str(folder / "model.safetensors"))
        self.config, self.kept = AutoConfig.from_pretrained(folder), {}
        ids = torch.tensor(golden["ids"])
        _, features, _ = plain.forward_gemma4(self.weights, self.config, ids, self.kept)
        self.ids, self.features = ids[:TOKENS], features[:TOKENS]
        self.embed = self.weights["model.embed_tokens.weight"].double() * float(torch.tensor(self.config.hidden_size ** 0.5))


def new_assistant(target):
    t = target.config
    text = Gemma4TextConfig(vocab_size=t.vocab_size, hidden_size=16, intermediate_size=24, num_hidden_layers=3, num_attention_heads=2,
                            num_key_value_heads=1, head_dim=t.per_layer_config[0].head_dim, global_head_dim=16, num_kv_shared_layers=3,
                            layer_types=[plain.WINDOW, plain.WINDOW, plain.FULL], sliding_window=t.sliding_window, hidden_size_per_layer_input=0,
                            vocab_size_per_layer_input=0, rope_parameters=t.rope_parameters, max_position_embeddings=128, rms_norm_eps=1e-5)
    config = Gemma4AssistantConfig(text_config=text, backbone_hidden_size=t.hidden_size)
    config._attn_implementation = "eager"
    return Gemma4AssistantForCausalLM(config).eval()


def assistant_draft(w, target, config, row, path):
    root = row + 1  # a position: what is before it is read
    inv = {}
    for kind, dim in ((plain.WINDOW, config.per_layer_config[0].head_dim), (plain.FULL, config.per_layer_config[2].head_dim)):
        rope = config.rope_parameters[kind]
        inv[kind] = rope["rope_theta"] ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
        inv[kind][int(rope.get("partial_rotary_factor", 1.0) * dim) // 2:] = 0
    gelu = torch.nn.functional.gelu

    def norm(x, name):
        return plain.rms_norm(x, w[f"model.{name}.weight"], config.rms_norm_eps)

    feature, token = target.features[row], target.ids[root]
    for after in [*path, None]:
        x = w["pre_projection.weight"] @ torch.cat([target.embed[token], feature])
        for i, kind in enumerate(config.layer_types):
            at = f"layers.{i}."
            k, v = (y[:root, 0] for y in target.kept[kind])
            if kind == plain.WINDOW:
                k, v = k[-config.sliding_window - 1:], v[-config.sliding_window - 1:]
            dim = k.shape[1]
            q = (w[f"model.{at}self_attn.q_proj.weight"] @ norm(x, at + "input_layernorm")).unflatten(0, (-1, dim))
            q, angle = norm(q, at + "self_attn.q_norm"), root * inv[kind]
            cos, sin = (torch.cat([f(angle), f(angle)]) for f in (torch.cos, torch.sin))
            q = q * cos + torch.cat([-q[:, dim // 2:], q[:, :dim // 2]], -1) * sin
            out = ((q @ k.T).softmax(-1) @ v).flatten()
            x = x + norm(w[f"model.{at}self_attn.o_proj.weight"] @ out, at + "post_attention_layernorm")
            h = norm(x, at + "pre_feedforward_layernorm")
            h = gelu(w[f"model.{at}mlp.gate_proj.weight"] @ h, approximate="tanh") * (w[f"model.{at}mlp.up_proj.weight"] @ h)
            x = x + norm(w[f"model.{at}mlp.down_proj.weight"] @ h, at + "post_feedforward_layernorm")
            x = x * w[f"model.{at}layer_scalar"]
        x = norm(x, "norm")
        feature, token = w["post_projection.weight"] @ x, after
    return w["model.embed_tokens.weight"] @ x


def assistant_twin(model, target):
    model.double()

    def levels(row, path):
        root, out = row + 1, []
        shared = {kind: tuple(y[:root].transpose(0, 1)[None] for y in kv) for kind, kv in target.kept.items()}
        feature, token = target.features[row], target.ids[root]
        for after in [*path, None]:
            result = model(inputs_embeds=torch.cat([target.embed[token], feature])[None, None], position_ids=torch.tensor([[root]]),
                           attention_mask=None, shared_kv_states=shared)
            out.append(result.logits[0, 0])
            feature, token = result.last_hidden_state[0, 0], after
        return out
    return levels


def make_assistant(kind):
    name, seed = ASSISTANTS[kind]
    target = AssistantTarget(name)
    model = new_assistant(target)
    plain.initialize(model, torch.Generator().manual_seed(seed))
    model.save_pretrained(HERE / kind)
    (HERE / kind / "generation_config.json").unlink(missing_ok=True)
    (HERE / kind / "model.safetensors").chmod(0o644)
    w, config = read(kind), model.config.text_config
    rows, worst = drafts(lambda row, path: assistant_draft(w, target, config, row, path), MTP_LEVELS, assistant_twin(model, target), 2e-5)
    finish(kind, name, target.ids, rows, f"transformers differs by {worst:.1e}")


def drafts(draft, levels, twin, allowed):
    """Golden rows of draft(row, path), and how far twin(row, path) is from them."""
    rows, worst = [], 0.0
    for row in ROWS:
        path, levels_out = [], []
        for level in range(levels):
            ids, log_p = top(draft(row, path))
            levels_out.append({"ids": ids, "log_p": plain.rounded(log_p)})
            path.append(ids[1 if level == 0 else 0])  # not only the likeliest: a path that depends on its tokens
        path.pop()
        for logits, mine in [] if twin is None else zip(twin(row, path), levels_out, strict=True):
            got = logits.log_softmax(-1)[mine["ids"]]
            worst = max(worst, (got - torch.tensor(mine["log_p"])).abs().max().item())
        rows.append({"row": row, "path": path, "levels": levels_out})
    assert worst < allowed, worst
    return rows, worst


def finish(kind, target, ids, rows, beside):
    plain.write_json(HERE / kind / "golden.json", {"target": f"../../logits/{target}", "ids": ids.tolist(), "rows": rows})
    print(f"{kind}: {(HERE / kind / 'model.safetensors').stat().st_size} bytes, {beside}")


def read(kind):
    return {k: v.double() for k, v in load_file(str(HERE / kind / "model.safetensors")).items()}


def make(kind, target):
    weights, draft, levels, seed = KINDS[kind]
    tensors, config = weights(torch.Generator().manual_seed(seed))
    files.write(tensors, config, HERE / kind)
    w, head = read(kind), None if kind in NOT_TRAINED else heads.load(HERE / kind)
    twin = None if head is None else lambda row, path: twin_levels(target, head, row, path)
    rows, worst = drafts(lambda row, path: draft(w, target, row, path), levels, twin, 2e-4)
    finish(kind, "mha", target.ids, rows, "no PyTorch head" if head is None else f"PyTorch heads differ by {worst:.1e}")


def make_mtp(kind):
    name, count, seed = MTP[kind]
    t, folder = MtpTarget(name), HERE / kind
    folder.mkdir(exist_ok=True)
    tensors = mtp_weights(torch.Generator().manual_seed(seed), t)
    save_file({n: x.clone().contiguous() for n, x in tensors.items()}, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    config = json.loads((t.folder / "config.json").read_text()) | {count: 1}
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    w = read(kind)
    rows, worst = drafts(lambda row, path: mtp_draft(w, t, row, path), MTP_LEVELS, mtp_twin(w, t), 2e-5)
    finish(kind, name, t.ids, rows, f"transformers differs by {worst:.1e}")


def main():
    target = Target()
    with torch.no_grad():
        for kind in KINDS:
            make(kind, target)
        for kind in MTP:
            make_mtp(kind)
        for kind in ASSISTANTS:
            make_assistant(kind)


if __name__ == "__main__":
    main()
