"""Progress of long calls."""

from typing import Any, Callable

from . import _native
from ._library import call, check_hook

# (done, total); False cancels.
ProgressFunction = Callable[[int, int], Any]


class Progress:
    """A progress hook for the library; what the function raises reaches who made the call, and cancels."""

    def __init__(self, function: ProgressFunction | None):
        self._raised: BaseException | None = None
        check_hook(function, "progress")

        def hook(_user: Any, done: int, total: int) -> int:
            try:
                return 0 if function is not None and function(done, total) is False else 1
            except BaseException as e:
                self._raised = e
                return 0
        self.hook = _native.aerie_progress_fn(hook) if function is not None else _native.aerie_progress_fn()

    def call(self, name: str, *arguments: Any, of: str = "aerie") -> None:
        try:
            call(name, *arguments, of=of)
        finally:
            if self._raised is not None:
                raise self._raised
