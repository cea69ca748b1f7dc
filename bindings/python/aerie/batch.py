"""Sessions of one model, stepped together."""

import ctypes
from typing import Iterator, NamedTuple

from . import _native
from ._library import Handle, call, library, new
from ._target import Target
from .session import Session


class BatchStep(NamedTuple):
    n_sessions: int  # in the batch
    n_tokens: int    # emitted in this step, all sessions together
    n_emitting: int  # sessions with tokens
    n_ended: int     # sessions whose text has ended, in this step or before
    n_failed: int    # sessions whose result is an error


class Batch(Handle):
    """Each session's text is bit for bit what it is alone; what it got in a step is its `result()`.

    One thread at a time, the sessions in it included. A session that is closed leaves the batch.
    """

    _release = "aerie_batch_release"

    def __init__(self, model: Target, *, max_rows: int = 0):
        out = ctypes.c_void_p()
        with Target._of_kind(model, "model")._use() as parent:
            call("aerie_batch_create", parent, ctypes.byref(new(_native.aerie_batch_options, max_rows=max_rows)),
                 ctypes.byref(out))
        super().__init__(out, model)
        self._sessions: list[Session] = []

    def _interrupt(self, handle: ctypes.c_void_p) -> None:
        library("aerie").aerie_batch_cancel(handle)

    def add(self, session: Session) -> None:
        with self._use() as handle, Session._of_kind(session, "session")._use() as member:
            call("aerie_batch_add", handle, member)
        self._sessions.append(session)

    def remove(self, session: Session) -> None:
        with self._use() as handle, Session._of_kind(session, "session")._use() as member:
            call("aerie_batch_remove", handle, member)
        self._sessions.remove(session)

    def __iter__(self) -> Iterator[Session]:
        """The sessions in it."""
        self._sessions = [session for session in self._sessions if not session.closed]
        return iter(list(self._sessions))

    def step(self, *, max_tokens: int = 0, budget_us: int = 0) -> BatchStep:
        """One cycle of the sessions that decode and a chunk of prompt of those that do not; `max_tokens` is for each."""
        options = new(_native.aerie_step_options, max_tokens=max_tokens, budget_us=budget_us)
        result = new(_native.aerie_batch_result)
        for session in self:
            session._forget_failure()
        with self._use() as handle:
            call("aerie_batch_step", handle, ctypes.byref(options), ctypes.byref(result))
        return BatchStep(*[getattr(result, name) for name in BatchStep._fields])

    def cancel(self) -> None:
        """From any thread: the step that is running, or the next one, raises Cancelled. Stepping again
        goes on."""
        with self._use() as handle:
            library("aerie").aerie_batch_cancel(handle)

    def clear_cancel(self) -> None:
        """Forget a cancel that no step has taken, as `Session.clear_cancel` does."""
        with self._use() as handle:
            library("aerie").aerie_batch_clear_cancel(handle)
