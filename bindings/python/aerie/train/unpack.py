"""A packaged target as a Hugging Face directory, to train drafters for a model of which only the package is at hand.

    python3 -m aerie.train.unpack samples/models/demo.aerie --out models/target

Reads the format as docs/package-format.md describes it, the manifest by the slots of core/package/manifest.fbs. A
quantised package gives the values that the runtime computes with. The package's own tokenizer stays where it is: the
directory has none, and `aerie.train.stream --tokenizer PACKAGE` encodes with it.
"""

import argparse
import struct
from pathlib import Path

import flatbuffers
import numpy as np
import torch
from flatbuffers import number_types as types

from . import hf
from .model import Llama, LlamaConfig

MAGIC = b"AERIE\r\n\x1a"
PANEL = 16
F32, BF16, INT8, INT4, _, FP8 = range(6)


class Table:
    """A table of the manifest: fields by their number in the schema."""

    def __init__(self, data: bytes, position: int):
        self.table = flatbuffers.table.Table(data, position)

    def _slot(self, field: int) -> int:
        offset = self.table.Offset(4 + 2 * field)
        return self.table.Pos + offset if offset else 0

    def number(self, field: int, flags, default=0):
        slot = self._slot(field)
        return self.table.Get(flags, slot) if slot else default

    def string(self, field: int) -> str:
        return self.table.String(self._slot(field)).decode()

    def child(self, field: int) -> "Table":
        slot = self._slot(field)
        return Table(self.table.Bytes, self.table.Indirect(slot)) if slot else None

    def _vector(self, field: int) -> tuple[int, int]:
        offset = self.table.Offset(4 + 2 * field)
        return (self.table.Vector(offset), self.table.VectorLen(offset)) if offset else (0, 0)

    def integers(self, field: int) -> list[int]:
        start, count = self._vector(field)
        return list(struct.unpack_from(f"<{count}i", self.table.Bytes, start))

    def children(self, field: int) -> list["Table"]:
        start, count = self._vector(field)
        return [Table(self.table.Bytes, self.table.Indirect(start + 4 * i)) for i in range(count)]


def raw_bytes(stored: Table, data: memoryview) -> bytes:
    offset, size = (stored.number(field, types.Uint64Flags) for field in (0, 1))
    held = data[offset:offset + size]
    if not stored.number(3, types.Uint8Flags):
        return held
    import zstandard

    out, start, (first, count) = [], 0, stored._vector(4)
    for chunk in range(count):  # a struct of the hash and the two lengths
        length = struct.unpack_from("<I", stored.table.Bytes, first + 16 * chunk + 8)[0]
        out.append(zstandard.ZstdDecompressor().decompress(held[start:start + length]))
        start += length
    return b"".join(out)


def bf16(words: np.ndarray) -> np.ndarray:
    return (words.astype(np.uint32) << 16).view(np.float32)


def panels(raw: bytes, dtype: int, rows: int, cols: int, scales: int) -> np.ndarray:
    """[rows, cols] of a panel16 tensor."""
    count = -(-rows // PANEL)
    unit = {F32: 1, BF16: 2}.get(dtype, 32)
    padded = -(-cols // unit) * unit

    def panel_rows(values: np.ndarray, together: int) -> np.ndarray:
        """[count, padded / together, 16, together] -> [count * 16, padded]"""
        return values.reshape(count, -1, PANEL, together).transpose(0, 2, 1, 3).reshape(count * PANEL, -1)

    if dtype == F32:
        out = panel_rows(np.frombuffer(raw, np.float32, count * PANEL * padded), 1)
    elif dtype == BF16:
        out = panel_rows(bf16(np.frombuffer(raw, np.uint16, count * PANEL * padded)), 2)
    elif dtype == INT4:
        data = np.frombuffer(raw, np.uint8, count * PANEL * padded // 2).reshape(count, padded // 32, 4, PANEL, 4)
        nibbles = np.stack((data & 15, data >> 4), 2).astype(np.float32) - 8  # [count, block, half, 4, 16, 4]
        scale = np.frombuffer(raw, np.float16, count * PANEL * padded // 32, scales).astype(np.float32)
        out = panel_rows(nibbles * scale.reshape(count, padded // 32, 1, 1, PANEL, 1), 4)
    else:
        data = np.frombuffer(raw, np.int8, count * PANEL * padded)
        if dtype == FP8:
            data = torch.from_numpy(data.copy()).view(torch.float8_e4m3fn).float().numpy()
        out = panel_rows(data.astype(np.float32), 4) * np.frombuffer(raw, np.float32, count * PANEL, scales)[:, None]
    return out[:rows, :cols]


def tensor(entry: Table, data: memoryview) -> torch.Tensor:
    dtype, layout = entry.number(1, types.Uint8Flags), entry.number(2, types.Uint8Flags)
    rows, cols = entry.number(3, types.Int64Flags), entry.number(4, types.Int64Flags)
    raw = raw_bytes(entry.child(6), data)
    if layout:
        values = panels(raw, dtype, rows, cols, entry.number(5, types.Uint64Flags))
    else:
        values = bf16(np.frombuffer(raw, np.uint16)) if dtype == BF16 else np.frombuffer(raw, np.float32)
    return torch.from_numpy(np.array(values, np.float32).reshape((rows, cols) if rows > 1 else cols))


def manifest(package: Path) -> tuple[Table, Table, memoryview]:
    """The manifest's root and its target, and the data that their offsets are in."""
    file = package.read_bytes()
    if file[:8] != MAGIC or len(file) < 128:
        raise SystemExit(f"{package}: not an Aerie package")
    if (major := struct.unpack_from("<H", file, 8)[0]) != 1:
        raise SystemExit(f"{package}: format version {major}; 1 is known")
    length, manifest_at, manifest_size, _, data_at, data_size = struct.unpack_from("<6Q", file, 16)
    if length != len(file):
        raise SystemExit(f"{package}: {len(file)} bytes, its header says {length}")
    tables = file[manifest_at:manifest_at + manifest_size]
    root = Table(tables, struct.unpack_from("<I", tables)[0])
    target = root.child(3)
    if target is None:
        raise SystemExit(f"{package}: a drafter's package, not a target's")
    return root, target, memoryview(file)[data_at:data_at + data_size]


def settings(package: Path) -> dict:
    """What config.json says beside the twin's shape: the tokens that begin and end a text, and where features are tapped."""
    target = manifest(package)[1]
    begin = target.number(14, types.Int32Flags, -1)
    return {"bos_token_id": begin if begin >= 0 else None, "eos_token_id": target.integers(15) or None,
            "aerie_tap_layers": target.integers(16)}


def twin(package: Path) -> Llama:
    """The PyTorch twin of a target's package."""
    root, target, data = manifest(package)
    whole = lambda field: target.number(field, types.Int32Flags)
    scaling = target.child(11)
    refused = {"biases of q, k and v": target.number(13, types.BoolFlags),
               "norms of q and k": target.number(17, types.BoolFlags),
               "RoPE scaling": scaling is not None and scaling.number(0, types.Uint8Flags),
               "padding in the vocabulary": whole(1) != whole(0),
               "an LM head of its own": not target.number(12, types.BoolFlags)}
    for what, found in refused.items():
        if found:
            raise SystemExit(f"{package}: {what}: the trainers' PyTorch twin has none")
    model = Llama(LlamaConfig(
        vocab_size=whole(0), hidden_size=whole(2), num_hidden_layers=whole(3), num_attention_heads=whole(4),
        num_key_value_heads=whole(5), head_dim=whole(6), intermediate_size=whole(7), max_position_embeddings=whole(8),
        rms_norm_eps=target.number(9, types.Float32Flags), rope_theta=target.number(10, types.Float32Flags)))
    named = {entry.string(0): entry for entry in root.children(5)}
    read = lambda name: tensor(named[name], data)
    c = model.config
    state = {"embed_tokens.weight": read("embed"), "norm.weight": read("norm")}
    for index in range(c.num_hidden_layers):
        ours, theirs = f"layers.{index}.", f"layers.{index}."
        q, k, v = read(ours + "attn.qkv").split([c.num_attention_heads * c.head_dim] + 2 * [c.num_key_value_heads * c.head_dim])
        gate, up = read(ours + "mlp.gate_up").split(2 * [c.intermediate_size])
        state |= {theirs + name + ".weight": value for name, value in {
            "input_layernorm": read(ours + "attn_norm"), "post_attention_layernorm": read(ours + "mlp_norm"),
            "self_attn.q_proj": q, "self_attn.k_proj": k, "self_attn.v_proj": v, "self_attn.o_proj": read(ours + "attn.o"),
            "mlp.gate_proj": gate, "mlp.up_proj": up, "mlp.down_proj": read(ours + "mlp.down")}.items()}
    model.load_state_dict(state)
    return model.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description="Make a Hugging Face directory of a packaged target.")
    parser.add_argument("package", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if (args.out / "tokenizer.json").exists():
        raise SystemExit(f"{args.out}: holds another model's tokenizer.json")
    hf.save(twin(args.package), None, args.out, settings=settings(args.package))


if __name__ == "__main__":
    main()
