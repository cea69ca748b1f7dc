"""Wall-clock budget: how far a run is, and what the learning rate should be there."""

import time


class WallClock:
    """Progress from 0 to 1 over `minutes` of training time; `spent` carries over a restart."""

    def __init__(self, minutes: float, spent: float = 0.0):
        self.total = minutes * 60
        self.spent = spent
        self._last = time.monotonic()

    def tick(self) -> float:
        """Adds the time since the last call (a gap such as an evaluation is cut out with `skip`)."""
        now = time.monotonic()
        self.spent += now - self._last
        self._last = now
        return self.progress

    def skip(self) -> None:
        self._last = time.monotonic()

    @property
    def progress(self) -> float:
        return min(1.0, self.spent / self.total)


def learning_rate_factor(progress: float, step: int, warmup_steps: int, decay_share: float) -> float:
    """Linear warm-up by steps, constant, then linear to zero over the last `decay_share` of the time."""
    warm = min(1.0, (step + 1) / warmup_steps) if warmup_steps else 1.0
    return warm * min(1.0, (1.0 - progress) / decay_share) if decay_share else warm
