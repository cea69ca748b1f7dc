"""Budget of a run, by wall clock or by steps: how far it is, and what the learning rate should be there."""

import time


class WallClock:
    """Progress from 0 to 1 over `minutes` of training time; `spent` carries over a restart.

    With `steps` the progress is counted in steps instead: on a machine that other programs use too, runs that are to be
    compared get the same number of steps, not the same time.
    """

    def __init__(self, minutes: float, spent: float = 0.0, steps: int = 0, done: int = 0):
        self.total = minutes * 60
        self.steps, self.done = steps, done
        self.spent = spent
        self._last = time.monotonic()

    def tick(self) -> float:
        """One step done: adds the time since the last call (a gap such as an evaluation is cut out with `skip`)."""
        now = time.monotonic()
        self.spent += now - self._last
        self._last = now
        self.done += 1
        return self.progress

    def skip(self) -> None:
        self._last = time.monotonic()

    @property
    def progress(self) -> float:
        return min(1.0, self.done / self.steps if self.steps else self.spent / self.total)


def learning_rate_factor(progress: float, step: int, warmup_steps: int, decay_share: float) -> float:
    """Linear warm-up by steps, constant, then linear to zero over the last `decay_share` of the time."""
    warm = min(1.0, (step + 1) / warmup_steps) if warmup_steps else 1.0
    return warm * min(1.0, (1.0 - progress) / decay_share) if decay_share else warm
