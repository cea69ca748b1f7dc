"""What passes cost on this device (docs/profiling.md): measured once, kept in a file, used by tree policies."""

import ctypes
import json
import os
from contextlib import ExitStack
from typing import Any, Sequence

from . import _native
from ._library import Handle, c_path, call, int32_array, library, new
from ._progress import Progress, ProgressFunction
from ._target import Target
from .drafter import Drafter


class Profile(Handle):
    """Costs from a file, or none yet. They say how fast, never what text. One thread at a time; `cancel` from any."""

    _release = "aerie_profile_release"

    def __init__(self, path: str | os.PathLike[str] | None = None):
        out = ctypes.c_void_p()
        if path is None:
            call("aerie_profile_create", ctypes.byref(out))
        else:
            call("aerie_profile_load", c_path(path), ctypes.byref(out))
        super().__init__(out)

    def _interrupt(self, handle: ctypes.c_void_p) -> None:
        library("aerie").aerie_profile_cancel(handle)

    def measure(self, model: Target, drafters: Sequence[Drafter] = (), *, quick: bool = False, batches: Sequence[int] = (),
                contexts: Sequence[int] = (), progress: ProgressFunction | None = None) -> None:
        """In place of what it held. Only as good as the machine is quiet."""
        hook = Progress(progress)
        options = new(_native.aerie_profile_options, quick=int(quick), n_batches=len(batches), n_contexts=len(contexts),
                      n_drafters=len(drafters), progress=hook.hook)
        options.batches = ctypes.cast(int32_array(batches), ctypes.POINTER(ctypes.c_int32))
        options.contexts = ctypes.cast(int32_array(contexts), ctypes.POINTER(ctypes.c_int32))
        with ExitStack() as used:
            handle, target = used.enter_context(self._use()), used.enter_context(Target._of_kind(model, "model")._use())
            handles = [used.enter_context(Drafter._of_kind(each, "drafters")._use()).value for each in drafters]
            options.drafters = (ctypes.c_void_p * len(handles))(*handles)
            hook.call("aerie_profile_measure", handle, target, ctypes.byref(options))

    def cancel(self) -> None:
        """From any thread: the measurement that is running, or the next one, raises Cancelled."""
        with self._use() as handle:
            library("aerie").aerie_profile_cancel(handle)

    def clear_cancel(self) -> None:
        """Forget a cancel that no measurement has taken, as `Session.clear_cancel` does."""
        with self._use() as handle:
            library("aerie").aerie_profile_clear_cancel(handle)

    def save(self, path: str | os.PathLike[str]) -> None:
        with self._use() as handle:
            call("aerie_profile_save", handle, c_path(path))

    def tables(self) -> dict[str, Any]:
        text, size = ctypes.POINTER(ctypes.c_char)(), ctypes.c_size_t()
        with self._borrow() as handle:
            call("aerie_profile_json", handle, ctypes.byref(text), ctypes.byref(size))
            found: dict[str, Any] = json.loads(ctypes.string_at(text, size.value))
        return found

    def attach(self, to: Target | Drafter) -> None:
        """Sessions made on this model, or with this drafter, from now on use the costs."""
        name = "aerie_profile_attach" if isinstance(to, Target) else "aerie_profile_attach_drafter"
        known = to if isinstance(to, Target) else Drafter._of_kind(to, "to")
        with self._use() as handle, known._use() as other:
            call(name, handle, other)

    def target_ms(self, rows: int, *, context: int, batch: int = 1) -> float:
        """Expected milliseconds of a pass over `rows` rows for each of `batch` sequences of `context` tokens."""
        ms = ctypes.c_double()
        with self._use() as handle:
            call("aerie_profile_target_ms", handle, batch, context, rows, ctypes.byref(ms))
        return ms.value
