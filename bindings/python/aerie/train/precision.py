"""The precision that trainers compute in: bfloat16 where the CPU multiplies it, float32 where it would only be imitated."""

from pathlib import Path

import torch


def multiplies_bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """x86 says avx512_bf16 or amx_bf16, 64-bit ARM bf16."""
    flags = {flag for line in cpuinfo.read_text().splitlines() if line.startswith(("flags", "Features")) for flag in line.split()}
    return bool(flags & {"avx512_bf16", "amx_bf16", "bf16"})


MULTIPLIES_BFLOAT16 = multiplies_bfloat16()


def autocast() -> torch.autocast:
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=MULTIPLIES_BFLOAT16)
