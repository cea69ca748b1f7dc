"""Reads .aerie packages, as docs/package-format.md describes them, the manifest by the slots of core/package/manifest.fbs. A
quantised tensor gives the values that the runtime computes with."""

import struct
from pathlib import Path

import flatbuffers
import numpy as np
import torch
from flatbuffers import number_types as types

MAGIC = b"AERIE\r\n\x1a"
PANEL = 16
F32, BF16, INT8, INT4, I32, FP8, Q4_1, MXFP4 = range(8)


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
    elif dtype in (INT4, Q4_1):
        data = np.frombuffer(raw, np.uint8, count * PANEL * padded // 2).reshape(count, padded // 32, 4, PANEL, 4)
        nibbles = np.stack((data & 15, data >> 4), 2).astype(np.float32)  # [count, block, half, 4, 16, 4]
        of_block = 2 if dtype == Q4_1 else 1  # halves: its scale, or that and its minimum
        halves = np.frombuffer(raw, np.float16, of_block * count * PANEL * padded // 32, scales).astype(np.float32)
        halves = halves.reshape(count, padded // 32, of_block, 1, 1, PANEL, 1)
        scale, least = halves[:, :, 0], halves[:, :, 1] if dtype == Q4_1 else -8 * halves[:, :, 0]
        out = panel_rows(nibbles * scale + least, 4)
    elif dtype == MXFP4:
        data = np.frombuffer(raw, np.uint8, count * PANEL * padded // 2).reshape(count, padded // 32, 4, PANEL, 4)
        twice = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float32)[np.stack((data & 15, data >> 4), 2)]
        powers = np.frombuffer(raw, np.uint8, count * PANEL * padded // 32, scales).astype(np.uint32) << 23
        out = panel_rows(twice * powers.view(np.float32).reshape(count, padded // 32, 1, 1, PANEL, 1), 4)
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
        plain = np.frombuffer(raw, {BF16: np.uint16, I32: np.int32}.get(dtype, np.float32))
        values = bf16(plain) if dtype == BF16 else plain
    return torch.from_numpy(np.array(values).reshape((rows, cols) if rows > 1 else cols))


class Package:
    """`target` or `drafter`, the other one None, and the tensors by name."""

    def __init__(self, path: Path):
        self.path = path
        file = path.read_bytes()
        if file[:8] != MAGIC or len(file) < 128:
            raise SystemExit(f"{path}: not an Aerie package")
        if (major := struct.unpack_from("<H", file, 8)[0]) != 1:
            raise SystemExit(f"{path}: format version {major}; 1 is known")
        length, manifest_at, manifest_size, _, data_at, data_size = struct.unpack_from("<6Q", file, 16)
        if length != len(file):
            raise SystemExit(f"{path}: {len(file)} bytes, its header says {length}")
        tables = file[manifest_at:manifest_at + manifest_size]
        root = Table(tables, struct.unpack_from("<I", tables)[0])
        self.target, self.drafter = root.child(3), root.child(4)
        self._data = memoryview(file)[data_at:data_at + data_size]
        self._tensors = {entry.string(0): entry for entry in root.children(5)}

    def names(self) -> list[str]:
        return list(self._tensors)

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def __getitem__(self, name: str) -> torch.Tensor:
        return tensor(self._tensors[name], self._data)

    def layer(self, at: str, heads: int, kv_heads: int, head_dim: int, ffn: int) -> dict[str, torch.Tensor]:
        """The decoder layer whose tensors' names begin with `at`, by Hugging Face's names behind that; of its norms those that
        it has under its own name."""
        q_k_v, gate_up = [heads * head_dim, kv_heads * head_dim, kv_heads * head_dim], [ffn, ffn]
        out = {"self_attn.o_proj.weight": self[at + "attn.o"], "mlp.down_proj.weight": self[at + "mlp.down"]}
        out |= zip(("mlp.gate_proj.weight", "mlp.up_proj.weight"), self[at + "mlp.gate_up"].split(gate_up))
        for ours, theirs in (("attn.qkv", "weight"), ("attn.qkv.bias", "bias")):
            if at + ours in self:
                out |= zip((f"self_attn.{part}_proj.{theirs}" for part in "qkv"), self[at + ours].split(q_k_v))
        for ours, theirs in (("attn_norm", "input_layernorm"), ("mlp_norm", "post_attention_layernorm")):
            if at + ours in self:
                out[theirs + ".weight"] = self[at + ours]
        return out
