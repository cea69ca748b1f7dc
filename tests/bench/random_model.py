#!/usr/bin/env python3
"""Models of random weights, for measuring speed: one set of weights in every format asked for. Llama's architecture, or
Mixtral's where a shape has experts, or gpt-oss's, Qwen3.5's or Gemma 4's (in GGUF files only).

    python3 tests/bench/random_model.py 1b -o DIR --formats hf,F16,Q8_0,Q4_0

`hf` is a Hugging Face directory (DIR/hf) that `aerie convert` reads, the others are GGUF files (DIR/F16.gguf, ...) for
llama.cpp. Neither has a tokenizer. The weights are Gaussian, never zero: zeros would be timed wrong. They are rounded
to bf16 first, so that f32, bf16 and F16 hold the same values. One tensor at a time is in memory. As in gpt-oss's files only experts
are of the type MXFP4, other matrices of such a file Q8_0.
"""

import argparse
import json
import math
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Shape:
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int = 32000
    context: int = 32768
    rms_eps: float = 1e-5
    rope_theta: float = 10000.0
    head_size: int = 0  # 0: hidden / heads
    experts: int = 0  # in place of a layer's MLP, each of ffn; a row goes through so many:
    experts_used: int = 0

    @property
    def head_dim(self) -> int:
        return self.head_size or self.hidden // self.heads

    def tensors(self):
        """(Hugging Face name, GGUF name, shape) of every tensor. Of experts GGUF has one, Hugging Face each with its number at {}."""
        h, q, kv = self.hidden, self.heads * self.head_dim, self.kv_heads * self.head_dim
        mlp = (("mlp.gate_proj", "ffn_gate", (self.ffn, h)), ("mlp.up_proj", "ffn_up", (self.ffn, h)),
               ("mlp.down_proj", "ffn_down", (h, self.ffn)))
        if n := self.experts:
            moe = "block_sparse_moe"
            mlp = ((f"{moe}.gate", "ffn_gate_inp", (n, h)), (f"{moe}.experts.{{}}.w1", "ffn_gate_exps", (n, self.ffn, h)),
                   (f"{moe}.experts.{{}}.w3", "ffn_up_exps", (n, self.ffn, h)), (f"{moe}.experts.{{}}.w2", "ffn_down_exps", (n, h, self.ffn)))
        yield "model.embed_tokens.weight", "token_embd.weight", (self.vocab, h)
        for i in range(self.layers):
            for hf, gguf, shape in (
                    ("input_layernorm", "attn_norm", (h,)), ("self_attn.q_proj", "attn_q", (q, h)),
                    ("self_attn.k_proj", "attn_k", (kv, h)), ("self_attn.v_proj", "attn_v", (kv, h)),
                    ("self_attn.o_proj", "attn_output", (h, q)), ("post_attention_layernorm", "ffn_norm", (h,)), *mlp):
                yield f"model.layers.{i}.{hf}.weight", f"blk.{i}.{gguf}.weight", shape
        yield "model.norm.weight", "output_norm.weight", (h,)
        yield "lm_head.weight", "output.weight", (self.vocab, h)

    def streamed_experts(self) -> int:
        """Weights of the experts that a pass of one row takes."""
        return sum(math.prod(s) // s[0] * self.experts_used for _, _, s in self.tensors() if len(s) == 3)

    def streamed_weights(self) -> int:
        """Weights that a pass of one row reads: all matrices but the embedding, of which it reads a row; and the experts it takes."""
        every = sum(math.prod(s) for name, gguf, s in self.tensors() if is_encoded(gguf, s) and len(s) == 2 and "embed_tokens" not in name)
        routers = sum(math.prod(s) for _, gguf, s in self.tensors() if gguf.endswith("ffn_gate_inp.weight"))
        return every + routers + self.streamed_experts()


@dataclass(frozen=True)
class GptOss(Shape):
    window: int = 128
    original_context: int = 4096

    def tensors(self):
        h, n, q = self.hidden, self.experts, self.heads * self.head_dim
        for hf, gguf, shape in super().tensors():
            yield hf, gguf.replace("ffn_norm", "post_attention_norm"), shape
            if gguf.endswith("attn_output.weight"):
                yield "", gguf.replace("attn_output", "attn_sinks"), (self.heads,)
            biases = {"attn_q": (q,), "attn_k": (self.kv_heads * self.head_dim,), "attn_v": (self.kv_heads * self.head_dim,),
                      "attn_output": (h,), "ffn_gate_inp": (n,), "ffn_gate_exps": (n, self.ffn), "ffn_up_exps": (n, self.ffn),
                      "ffn_down_exps": (n, h)}
            if (bias := biases.get(gguf.split(".")[-2])) is not None:
                yield "", gguf.removesuffix("weight") + "bias", bias

    def metadata(self) -> dict[str, bytes]:
        """Besides what every architecture says."""
        return {"attention.sliding_window": u32(self.window), "expert_feed_forward_length": u32(self.ffn), "rope.scaling.type": text("yarn"),
                "rope.scaling.factor": f32(self.context / self.original_context),
                "rope.scaling.original_context_length": u32(self.original_context)}


@dataclass(frozen=True)
class Qwen35(Shape):
    """Three layers of four are recurrent (gated delta rule), of as many heads of keys as of values."""
    delta_heads: int = 16
    delta_dim: int = 128
    taps: int = 4

    def tensors(self):
        h, q, kv, d = self.hidden, self.heads * self.head_dim, self.kv_heads * self.head_dim, self.delta_heads * self.delta_dim
        yield "model.embed_tokens.weight", "token_embd.weight", (self.vocab, h)
        recurrent = (("attn_qkv.weight", (3 * d, h)), ("attn_gate.weight", (d, h)), ("ssm_conv1d.weight", (3 * d, self.taps)),
                     ("ssm_dt.bias", (self.delta_heads,)), ("ssm_a", (self.delta_heads,)), ("ssm_beta.weight", (self.delta_heads, h)),
                     ("ssm_alpha.weight", (self.delta_heads, h)), ("ssm_norm.weight", (self.delta_dim,)), ("ssm_out.weight", (h, d)))
        attention = (("attn_q.weight", (2 * q, h)), ("attn_k.weight", (kv, h)), ("attn_v.weight", (kv, h)), ("attn_output.weight", (h, q)),
                     ("attn_q_norm.weight", (self.head_dim,)), ("attn_k_norm.weight", (self.head_dim,)))
        both = (("attn_norm.weight", (h,)), ("post_attention_norm.weight", (h,)), ("ffn_gate.weight", (self.ffn, h)),
                ("ffn_up.weight", (self.ffn, h)), ("ffn_down.weight", (h, self.ffn)))
        for i in range(self.layers):
            for gguf, shape in (attention if i % 4 == 3 else recurrent) + both:
                yield "", f"blk.{i}.{gguf}", shape
        yield "model.norm.weight", "output_norm.weight", (h,)
        yield "lm_head.weight", "output.weight", (self.vocab, h)

    def metadata(self) -> dict[str, bytes]:
        """Besides what every architecture says."""
        return {"ssm.conv_kernel": u32(self.taps), "ssm.state_size": u32(self.delta_dim), "ssm.group_count": u32(self.delta_heads),
                "ssm.time_step_rank": u32(self.delta_heads), "ssm.inner_size": u32(self.delta_heads * self.delta_dim),
                "full_attention_interval": u32(4), "rope.dimension_count": u32(self.head_dim // 4),
                "rope.dimension_sections": array(5, [struct.pack("<i", v) for v in (11, 11, 10, 0)])}


@dataclass(frozen=True)
class Gemma4(Shape):
    """As E2B and E4B: one layer of five sees everything, with heads twice as wide; the last half of the layers read the keys and values of those before
    them and have an MLP twice as wide; each layer has an input of its own."""
    window: int = 512
    inputs: int = 128

    def sees_all(self, i: int) -> bool:
        return i % 5 == 4

    @property
    def readers(self) -> int:
        return self.layers // 2

    def tensors(self):
        h, p = self.hidden, self.inputs
        yield "model.embed_tokens.weight", "token_embd.weight", (self.vocab, h)
        yield "model.embed_tokens_per_layer.weight", "per_layer_token_embd.weight", (self.vocab, self.layers * p)
        yield "", "per_layer_model_proj.weight", (self.layers * p, h)
        yield "", "per_layer_proj_norm.weight", (p,)
        yield "", "rope_freqs.weight", (self.head_dim,)
        for i in range(self.layers):
            reads, d = i >= self.layers - self.readers, 2 * self.head_dim if self.sees_all(i) else self.head_dim
            f, q, kv = 2 * self.ffn if reads else self.ffn, self.heads * d, self.kv_heads * d
            own = () if reads else (("attn_k", (kv, h)), ("attn_v", (kv, h)), ("attn_k_norm", (d,)))
            for gguf, shape in (("attn_norm", (h,)), ("attn_q", (q, h)), ("attn_q_norm", (d,)), *own, ("attn_output", (h, q)), ("post_attention_norm", (h,)),
                                ("ffn_norm", (h,)), ("ffn_gate", (f, h)), ("ffn_up", (f, h)), ("ffn_down", (h, f)), ("post_ffw_norm", (h,)),
                                ("inp_gate", (p, h)), ("proj", (h, p)), ("post_norm", (h,)), ("layer_output_scale", (1,))):
                yield "", f"blk.{i}.{gguf}.weight", shape
        yield "model.norm.weight", "output_norm.weight", (h,)
        yield "lm_head.weight", "output.weight", (self.vocab, h)

    def metadata(self) -> dict[str, bytes]:
        """Besides, or in place of, what every architecture says."""
        wide, readers = u32(2 * self.head_dim), self.layers - self.readers
        own = {f"{key}_swa": u32(self.head_dim) for key in ("attention.key_length", "attention.value_length", "rope.dimension_count")}
        return {**{key.removesuffix("_swa"): wide for key in own}, **own, "rope.freq_base_swa": f32(10000.0),
                "attention.sliding_window": u32(self.window), "attention.shared_kv_layers": u32(self.readers),
                "attention.sliding_window_pattern": array(7, [bytes([not self.sees_all(i)]) for i in range(self.layers)]),
                "feed_forward_length": array(4, [struct.pack("<I", self.ffn * (1 + (i >= readers))) for i in range(self.layers)]),
                "embedding_length_per_layer_input": u32(self.inputs), "final_logit_softcapping": f32(30.0)}


SHAPES = {"110m": Shape(768, 12, 12, 12, 2048), "1b": Shape(2048, 16, 32, 8, 8192),
          "moe": Shape(1024, 12, 16, 4, 512, experts=32, experts_used=4),
          "oss": GptOss(1024, 12, 16, 4, 640, rope_theta=150000.0, experts=32, experts_used=4),
          "gemma4": Gemma4(1024, 30, 8, 1, 3072, rms_eps=1e-6, rope_theta=1000000.0, head_size=256),
          "qwen35": Qwen35(1024, 24, 8, 2, 3584, rope_theta=10000000.0, head_size=256)}


def to_bf16(x):
    """f32 -> the nearest bf16, as u16."""
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def weights(shape: Shape, seed: int):
    """(names and shape, f32 values that bf16 can hold) of every tensor, the same for any choice of formats."""
    for index, (hf, gguf, dims) in enumerate(shape.tensors()):
        w = np.random.default_rng([seed, index]).standard_normal(dims, dtype=np.float32)
        if gguf.endswith(".bias"):
            w *= 0.1
        elif gguf.endswith("ssm_a"):
            w = -np.abs(w)  # how fast a state is forgotten
        elif gguf == "rope_freqs.weight":  # divisors: the first quarter of the pairs is rotated
            w = np.where(np.arange(dims[0]) < dims[0] // 4, np.float32(1), np.float32(1e30))
        elif len(dims) == 1:
            w = 1 + 0.1 * w  # a norm, or sinks
            if isinstance(shape, Gemma4) and gguf.endswith("attn_q_norm.weight"):
                w /= math.sqrt(dims[0])  # scores are not divided there
        elif "embed_tokens" not in hf:
            w /= math.sqrt(dims[-1])  # keeps the size of what passes through
        w = (to_bf16(w).astype(np.uint32) << 16).view(np.float32)
        w[w == 0] = 2.0**-14
        yield hf, gguf, w


class Part:
    """A file that has its name only when it is whole."""

    def __init__(self, path: Path):
        self.path, self.part = path, path.with_name(path.name + ".part")
        self.file = open(self.part, "wb")
        self.write, self.tell = self.file.write, self.file.tell

    def close(self):
        self.file.close()
        self.part.replace(self.path)


class Safetensors:
    """DIR/config.json and DIR/model.safetensors."""

    def __init__(self, folder: Path, shape: Shape, dtype: str):
        folder.mkdir(parents=True, exist_ok=True)
        experts = {"num_local_experts": shape.experts, "num_experts_per_tok": shape.experts_used, "sliding_window": None}
        kind = ("MixtralForCausalLM", "mixtral") if shape.experts else ("LlamaForCausalLM", "llama")
        (folder / "config.json").write_text(json.dumps({
            "architectures": [kind[0]], "model_type": kind[1], **(experts if shape.experts else {}), "hidden_size": shape.hidden,
            "intermediate_size": shape.ffn, "num_hidden_layers": shape.layers, "num_attention_heads": shape.heads,
            "num_key_value_heads": shape.kv_heads, "head_dim": shape.head_dim, "vocab_size": shape.vocab,
            "max_position_embeddings": shape.context, "rms_norm_eps": shape.rms_eps, "rope_theta": shape.rope_theta,
            "hidden_act": "silu", "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2,
            "torch_dtype": {"bf16": "bfloat16", "f32": "float32"}[dtype]}, indent=1) + "\n")
        self.bf16 = dtype == "bf16"
        header, at = {}, 0
        for name, _, dims in shape.tensors():
            for i in range(dims[0] if len(dims) == 3 else 1):
                one = dims[1:] if len(dims) == 3 else dims
                end = at + math.prod(one) * (2 if self.bf16 else 4)
                header[name.format(i)] = {"dtype": dtype.upper(), "shape": one, "data_offsets": [at, end]}
                at = end
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        self.file = Part(folder / "model.safetensors")
        self.file.write(struct.pack("<Q", len(text)) + text)

    def add(self, _hf, _gguf, w):
        self.file.write((to_bf16(w) if self.bf16 else w).tobytes())


def q8_0(w):
    """Blocks of 32: half scale, 32 int8."""
    b = w.reshape(-1, 32)
    d = np.abs(b).max(axis=1, keepdims=True) / 127
    q = np.rint(b / np.where(d, d, 1)).astype(np.int8)
    return np.concatenate([d.astype(np.float16).view(np.uint8), q.view(np.uint8)], axis=1)


def q4_0(w):
    """Blocks of 32: half scale, 16 bytes; byte i holds q of i (low) and of 16 + i; w = scale * (q - 8)."""
    b = w.reshape(-1, 32)
    d = np.take_along_axis(b, np.abs(b).argmax(axis=1)[:, None], axis=1) / -8
    q = np.clip(np.floor(b / np.where(d, d, 1) + 8.5), 0, 15).astype(np.uint8)
    return np.concatenate([d.astype(np.float16).view(np.uint8), q[:, :16] | q[:, 16:] << 4], axis=1)


def q4_1(w):
    """Blocks of 32: half scale, half minimum, 16 bytes as of q4_0; w = scale * q + minimum."""
    b = w.reshape(-1, 32)
    low = b.min(axis=1, keepdims=True)
    d = (b.max(axis=1, keepdims=True) - low) / 15
    q = np.clip(np.rint((b - low) / np.where(d, d, 1)), 0, 15).astype(np.uint8)
    two = np.concatenate([d, low], axis=1).astype(np.float16).view(np.uint8)
    return np.concatenate([two, q[:, :16] | q[:, 16:] << 4], axis=1)


def mxfp4(w):
    """Blocks of 32: a power of two (2^(byte - 127)), 16 bytes as of q4_0; w = scale * E2M1."""
    b = w.reshape(-1, 32)
    power = np.floor(np.log2(np.abs(b).max(axis=1, keepdims=True))).astype(np.int32) - 2  # the largest is 4 to 8
    ways = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5], np.float32)  # from a number to the next
    q = np.searchsorted(ways, np.abs(np.ldexp(b, -power))).astype(np.uint8) | (b < 0).astype(np.uint8) << 3
    return np.concatenate([(power + 127).astype(np.uint8), q[:, :16] | q[:, 16:] << 4], axis=1)


# GGUF: name: (type id, file type id, bytes of 32 weights, encoder)
GGUF_TYPES = {"F16": (1, 1, 64, lambda w: w.astype(np.float16)), "BF16": (30, 32, 64, to_bf16),
              "Q8_0": (8, 7, 34, q8_0), "Q4_0": (2, 2, 18, q4_0), "Q4_1": (3, 3, 20, q4_1), "MXFP4": (39, 38, 17, mxfp4)}
GGUF_VECTORS = {"d2t": (27, 256)}  # 64-bit integers; all others are f32


def is_encoded(name: str, dims: tuple[int, ...]) -> bool:
    """Of the file's type: matrices, but for what says which experts are taken, or how fast a state is forgotten. (Biases of experts are
    one matrix.)"""
    return len(dims) > 1 and not any(n in name for n in ("ffn_gate_inp", "ssm_alpha", "ssm_beta", "ssm_conv1d")) and not name.endswith(".bias")


def type_of(kind: str, name: str, dims: tuple[int, ...]):
    """A tensor's of a file of this kind, as in GGUF_TYPES; None: it is not encoded."""
    if not is_encoded(name, dims):
        return None
    return GGUF_TYPES["Q8_0" if kind == "MXFP4" and len(dims) == 2 else kind]


# GGUF's encoding of metadata.
def string(s: str) -> bytes:
    return struct.pack("<Q", len(s.encode())) + s.encode()


def u32(v: int) -> bytes:
    return struct.pack("<II", 4, v)


def f32(v: float) -> bytes:
    return struct.pack("<If", 6, v)


def text(s: str) -> bytes:
    return struct.pack("<I", 8) + string(s)


def array(element: int, encoded: list[bytes]) -> bytes:
    return struct.pack("<IIQ", 9, element, len(encoded)) + b"".join(encoded)


class Gguf:
    """GGUF v3. Matrices of the type named, norms and routers f32. `tokenizer`: its metadata, encoded; `more`: of the architecture's own."""

    def __init__(self, path: Path, shape: Shape, kind: str, name: str = "random weights", tokenizer: dict[str, bytes] | None = None,
                 architecture: str = "llama", more: dict[str, bytes] | None = None):
        self.shape, self.kind, self.architecture = shape, kind, architecture
        file_type = GGUF_TYPES[kind][1]
        own = {"context_length": u32(shape.context), "embedding_length": u32(shape.hidden), "block_count": u32(shape.layers),
               "feed_forward_length": u32(shape.ffn), "attention.head_count": u32(shape.heads),
               "attention.head_count_kv": u32(shape.kv_heads), "attention.layer_norm_rms_epsilon": f32(shape.rms_eps),
               "rope.dimension_count": u32(shape.head_dim), "rope.freq_base": f32(shape.rope_theta),
               "attention.key_length": u32(shape.head_dim), "attention.value_length": u32(shape.head_dim),
               "vocab_size": u32(shape.vocab), **(more or {})}
        if shape.experts:
            own |= {"expert_count": u32(shape.experts), "expert_used_count": u32(shape.experts_used)}
        meta = {"general.architecture": text(architecture), "general.name": text(name),
                "general.file_type": u32(file_type), "general.quantization_version": u32(2),
                "general.alignment": u32(32), **{f"{architecture}.{key}": value for key, value in own.items()},
                **(tokenizer or {"tokenizer.ggml.model": text("no_vocab")})}
        tensors, at = list(shape.tensors()), 0
        head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(meta))
        head += b"".join(string(k) + v for k, v in meta.items())
        for _, name, dims in tensors:
            head += string(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *reversed(dims))
            encoded = type_of(kind, name, dims)
            this, bytes32 = (encoded[0], encoded[2]) if encoded else GGUF_VECTORS.get(name, (0, 128))
            head += struct.pack("<IQ", this, at)
            at += math.prod(dims) * bytes32 // 32
            at += -at % 32
        self.file = Part(path)
        self.file.write(head)
        self.pad()

    def pad(self):
        self.file.write(bytes(-self.file.tell() % 32))

    def add(self, _hf, gguf, w):
        heads = {"attn_q": self.shape.heads, "attn_k": self.shape.kv_heads}.get(gguf.removesuffix(".weight").split(".")[-1])
        if heads and self.architecture == "llama":  # llama.cpp rotates neighbours, Hugging Face's layout the halves of a head
            w = w.reshape(heads, 2, -1, w.shape[1]).swapaxes(1, 2).reshape(w.shape)
        encoded = type_of(self.kind, gguf, w.shape)
        self.file.write((encoded[3](w) if encoded else w).tobytes())
        self.pad()


def write(shape: Shape, seed: int, folder: Path, formats: list[str], hf_dtype: str = "bf16") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = {GptOss: "gpt-oss", Qwen35: "qwen35", Gemma4: "gemma4"}
    own = {"architecture": names[type(shape)], "more": shape.metadata()} if type(shape) in names else {}
    if own and "hf" in formats:
        sys.exit(f"random_model.py: {own['architecture']}'s architecture is written in GGUF files only")
    writers = [Safetensors(folder / "hf", shape, hf_dtype) if f == "hf" else Gguf(folder / f"{f}.gguf", shape, f, **own)
               for f in formats]
    for tensor in weights(shape, seed):
        for writer in writers:
            writer.add(*tensor)
    for writer in writers:
        writer.file.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("shape", choices=list(SHAPES))
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder")
    parser.add_argument("--formats", default="hf", help="comma-separated: hf, " + ", ".join(GGUF_TYPES))
    parser.add_argument("--hf-dtype", choices=["bf16", "f32"], default="bf16")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    formats = args.formats.split(",")
    unknown = [f for f in formats if f != "hf" and f not in GGUF_TYPES]
    if unknown:
        sys.exit(f"random_model.py: --formats: {', '.join(unknown)} is not known")
    write(SHAPES[args.shape], args.seed, args.out, formats, args.hf_dtype)


if __name__ == "__main__":
    main()
