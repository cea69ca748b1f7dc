"""What a session has done."""

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Statistics:
    """aerie_statistics of aerie.h, where each field is explained."""

    quarantined: bool
    emitted: int
    cycles: int
    full_cycles: int
    full_emitted: int
    proposed: int
    verified: int
    accepted: int
    drafter_failures: int
    prefill_ns: int
    draft_ns: int
    verify_ns: int
    other_ns: int
    prefill_tokens: int
    draft_passes: int
    tried: tuple[int, ...]
    taken: tuple[int, ...]
    reused_tokens: int
    chosen_drafter: int
    chosen_nodes: int
    chosen_depth: int
    plain_cycles: int
    chosen_cycles: tuple[int, ...]
    foreseen_verified: int
    foreseen_accepted: int

    @property
    def tau(self) -> float:
        """Tokens emitted per cycle; 0 before the first."""
        return self.full_emitted / self.full_cycles if self.full_cycles else 0.0

    @classmethod
    def _from(cls, native: Any) -> "Statistics":
        values = {field.name: getattr(native, field.name) for field in fields(cls)}
        values.update(quarantined=bool(native.quarantined), tried=tuple(native.tried), taken=tuple(native.taken),
                      chosen_cycles=tuple(native.chosen_cycles))
        return cls(**values)
