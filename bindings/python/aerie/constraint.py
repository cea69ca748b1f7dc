"""What may come next in a text, decided by the program."""

import copy
import ctypes
import itertools
from array import array
from contextlib import contextmanager
from typing import Any, Callable, Iterable, Iterator

from . import _native
from ._library import call, new, raise_later
from .errors import Code, Error


class Constraint:
    """For `Session.set_constraint`: derive from it. The session keeps a state for its text, any object, and copies it to look
    ahead. The functions are called on the thread that steps, for one session never two at a time. What they raise comes out
    of the step, in a batch out of the session's `result()`; nothing committed is lost. Where a step looks ahead for drafts
    alone, what is no KeyboardInterrupt or the like is ignored, and there are none.
    """

    def begin(self) -> Any:
        """The state before the first token."""
        raise NotImplementedError

    def copy(self, state: Any) -> Any:
        return copy.deepcopy(state)

    def allowed(self, state: Any) -> Iterable[int]:
        """The tokens that may come next. None may: the text ends (Finish.CONSTRAINT). The model's end-of-text ids are for
        where the text may end."""
        raise NotImplementedError

    def accept(self, state: Any, token: int) -> Any:
        """`token` came next: change the state. False: it may not, which is asked of drafted tokens; this state is not
        used again then."""
        raise NotImplementedError

    def fill(self, state: Any, mask: memoryview) -> None:
        """`allowed`, faster, for who has bits: bit t % 32 of the integer mask[t // 32], all 0 before, is token t."""
        for token in self.allowed(state):
            if 0 <= token < 32 * len(mask):
                mask[token // 32] |= 1 << token % 32

    def forced(self, state: Any) -> Iterable[int]:
        """Tokens that very likely come next, one behind the other, since no other text is left; the state stays as it is.
        They are drafts: right ones save time, wrong ones cost it, and the text is the same. What it raises is ignored,
        but for KeyboardInterrupt and the like. It is not called unless a class has its own."""
        return ()


_keys = itertools.count(1)  # of constraints and states: what C has in place of pointers
_held: dict[int, "Held"] = {}


class Held:
    """A constraint as the library holds it, by its key."""

    def __init__(self, constraint: Constraint):
        self.constraint = constraint
        self.failed: Exception | None = None  # in the last step
        self._key, self._states, self._holds = next(_keys), dict[int, Any](), list[None]()

    def set(self, session: ctypes.c_void_p) -> None:
        """Hand it to a session, which holds it from then on."""
        native = new(_native.aerie_constraint, user=self._key, **_functions)
        if type(self.constraint).forced is not Constraint.forced:
            native.forced = _forced
        _held[self._key] = self
        self._hold()
        try:
            with explained(self):
                call("aerie_session_set_constraint", session, ctypes.byref(native))
        finally:
            self._drop()

    def _keep(self, state: Any, out: Any) -> None:
        key = next(_keys)
        self._states[key] = state
        out[0] = key

    def _hold(self) -> None:
        self._holds.append(None)

    def _drop(self) -> None:  # by any threads, so that both may find nothing left
        self._holds.pop()
        if not self._holds:
            _held.pop(self._key, None)

    def _begin(self, state: Any) -> Any:
        self._keep(self.constraint.begin(), state)

    def _copy(self, state: int, twin: Any) -> Any:
        self._keep(self.constraint.copy(self._states[state]), twin)

    def _allowed(self, state: int, mask: Any, n_words: int) -> Any:
        own = bytearray(4 * n_words)  # not the library's, which is gone after the call
        self.constraint.fill(self._states[state], memoryview(own).cast("I"))
        ctypes.memmove(mask, bytes(own), len(own))

    def _accept(self, state: int, token: int) -> Any:
        return self.constraint.accept(self._states[state], token)

    def _forced(self, state: int, tokens: Any, capacity: int, n: Any) -> Any:
        try:
            drafts = array("i", itertools.islice(self.constraint.forced(self._states[state]), capacity))
        except Exception:
            return False
        ctypes.memmove(tokens, drafts.tobytes(), drafts.itemsize * len(drafts))
        n[0] = len(drafts)

    def _destroy(self, state: int) -> None:
        self._states.pop(state, None)


@contextmanager
def explained(held: Held | None) -> Iterator[None]:
    """A call that may end with what a constraint raised, of which the library knows a code alone."""
    raised = None
    try:
        yield
    except Error as error:
        if held is None or held.failed is None or error.code != Code.PLUGIN:
            raise
        raised = held.failed
    if raised is not None:
        raise raised


def _answering(function: Callable[..., Any]) -> Callable[..., int]:
    def answer(user: int, *arguments: Any) -> int:
        try:
            held = _held[user]
            try:
                return _native.AERIE_E_MISMATCH if function(held, *arguments) is False else _native.AERIE_OK
            except Exception as error:
                held.failed = error
        except BaseException as error:  # Ctrl-C, and the like, whatever comes of the step
            raise_later(error)
        return _native.AERIE_E_PLUGIN
    return answer


# One of each for all constraints, and for good: a constraint is let go in the middle of a call of `release`.
_types: dict[str, Any] = {field[0]: field[1] for field in _native.aerie_constraint._fields_}
_answers: dict[str, Callable[..., Any]] = {"begin": Held._begin, "copy": Held._copy, "allowed": Held._allowed,
                                           "accept": Held._accept}
_functions = {
    **{name: _types[name](_answering(function)) for name, function in _answers.items()},
    "destroy": _types["destroy"](lambda user, state: _held[user]._destroy(state)),
    "hold": _types["hold"](lambda user: _held[user]._hold()),
    "release": _types["release"](lambda user: _held[user]._drop()),
}
_forced = _types["forced"](_answering(Held._forced))
