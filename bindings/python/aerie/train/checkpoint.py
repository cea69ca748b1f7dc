"""One checkpoint file: model, optimisers, and whatever else a run needs to go on where it stopped."""

from pathlib import Path

import torch


class Checkpoint:
    def __init__(self, path: Path, model: torch.nn.Module, optimisers: list[torch.optim.Optimizer]):
        self.path, self.model, self.optimisers = path, model, optimisers

    def save(self, extra: dict) -> None:
        """Written beside the old one, then swapped in: an interruption never leaves a broken file."""
        part = self.path.with_suffix(".part")
        torch.save({"model": self.model.state_dict(), "optimisers": [o.state_dict() for o in self.optimisers],
                    "extra": extra}, part)
        part.replace(self.path)

    def load(self) -> dict | None:
        if not self.path.exists():
            return None
        saved = torch.load(self.path, weights_only=True)
        self.model.load_state_dict(saved["model"])
        for optimiser, state in zip(self.optimisers, saved["optimisers"], strict=True):
            optimiser.load_state_dict(state)
        return saved["extra"]
