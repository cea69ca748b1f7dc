"""A session: one text."""

import ctypes
import os
from contextlib import ExitStack
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence, TypedDict, Unpack

from . import _native
from ._library import Handle, c_path, c_string, call, int32_array, library, new
from ._target import Target
from .constraint import Constraint, Held, explained
from .drafter import Drafter
from .grammar import Grammar
from .statistics import Statistics
from .text import Decoder

# Between two looks at Python's signals while a prompt is read: Ctrl-C is heard this soon.
_SLICE_US = 50_000


class State(IntEnum):
    PENDING = _native.AERIE_STEP_PENDING  # the budget is spent; step again
    TOKENS = _native.AERIE_STEP_TOKENS
    DONE = _native.AERIE_STEP_DONE        # the text has ended


class Finish(IntEnum):
    NONE = _native.AERIE_FINISH_NONE
    EOS = _native.AERIE_FINISH_EOS
    STOP_TOKEN = _native.AERIE_FINISH_STOP_TOKEN
    STOP_STRING = _native.AERIE_FINISH_STOP_STRING
    CONTEXT = _native.AERIE_FINISH_CONTEXT
    CONSTRAINT = _native.AERIE_FINISH_CONSTRAINT  # no token may come next


class Token(NamedTuple):
    id: int
    logprob: float  # log-softmax of the target's raw logits
    drafted: bool   # it had been guessed, by a drafter or because of a constraint


class Step(NamedTuple):
    state: State
    tokens: list[Token]
    finish: Finish
    stop_bytes: int  # STOP_STRING: bytes to cut from the end of the text

    @classmethod
    def _from(cls, native: Any) -> "Step":
        tokens = [Token(t.id, t.logprob, bool(t.drafted)) for t in native.tokens[:native.n_tokens]]
        return cls(State(native.state), tokens, Finish(native.finish), native.stop_bytes)


# Tokens, and what is added to their logits; -inf: it never comes. A token that is listed twice has the sum.
LogitBias = Mapping[int, float] | Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Sampling:
    """temperature 0: greedy. Same seed, same text; sessions with equal seeds and different streams differ.

    Biases come first, then penalties, the session's constraint, temperature, top_k, top_p, min_p and the draw; a drafter
    changes none of it. `repetition_penalty`: a logit above 0 of a token in the text, prompt included, is divided by it, any
    other multiplied (0 or 1: off). `presence_penalty` is taken from the logit of each token generated since the last
    append, `frequency_penalty` as often as it was. `penalty_window`: of the newest tokens only; 0: of all."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 0.0
    min_p: float = 0.0
    seed: int = 0
    stream: int = 0
    repetition_penalty: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_window: int = 0
    logit_bias: LogitBias = ()

    def _native(self) -> Any:
        biases = list(self.logit_bias.items() if isinstance(self.logit_bias, Mapping) else self.logit_bias)
        tokens = int32_array([token for token, _ in biases])  # refuses what does not fit
        listed = (_native.aerie_logit_bias * len(biases))(
            *[_native.aerie_logit_bias(token, bias) for token, (_, bias) in zip(tokens, biases)])
        return new(_native.aerie_sampling, temperature=self.temperature, top_k=self.top_k, top_p=self.top_p,
                   min_p=self.min_p, seed=self.seed, stream=self.stream, repetition_penalty=self.repetition_penalty,
                   presence_penalty=self.presence_penalty, frequency_penalty=self.frequency_penalty,
                   penalty_window=self.penalty_window, n_logit_bias=len(biases), logit_bias=listed)  # keeps `listed`


_POLICIES = {"default": _native.AERIE_TREE_DEFAULT, "chain": _native.AERIE_TREE_CHAIN, "static": _native.AERIE_TREE_STATIC,
             "eagle2": _native.AERIE_TREE_EAGLE2, "backbone": _native.AERIE_TREE_BACKBONE,
             "cast": _native.AERIE_TREE_CAST, "auto": _native.AERIE_TREE_AUTO}
_NOISES = {"shared": _native.AERIE_NOISE_SHARED, "none": _native.AERIE_NOISE_NONE}
_RULES = {"exact": _native.AERIE_VERIFY_EXACT, "sampled": _native.AERIE_VERIFY_SAMPLED}


def _named(names: dict[str, int], value: str, what: str) -> int:
    if value not in names:
        raise ValueError(f"{what}: {value!r} is none of {', '.join(names)}")
    return names[value]


@dataclass(frozen=True)
class Tree:
    """How drafts branch (docs/policies.md); zeros are the policy's defaults. `paths`: of `static`, each as its ranks."""

    policy: str = "default"
    nodes: int = 0
    depth: int = 0
    top_k: int = 0
    threshold: float = 0.0
    paths: Sequence[Sequence[int]] = ()

    def _native(self) -> Any:
        ranks = int32_array([rank for path in self.paths for rank in (*path, -1)])
        native = new(_native.aerie_tree_options, policy=_named(_POLICIES, self.policy, "policy"), nodes=self.nodes,
                     depth=self.depth, top_k=self.top_k, threshold=self.threshold, n_paths=len(self.paths))
        native.paths = ctypes.cast(ranks, ctypes.POINTER(ctypes.c_int32))  # keeps `ranks`
        return native


def _sampling(sampling: Sampling) -> Any:
    if not isinstance(sampling, Sampling):
        raise TypeError(f"sampling: {sampling!r} is no Sampling")
    return sampling._native()


def _tree(tree: Tree | str) -> Any:
    if not isinstance(tree, (Tree, str)):
        raise TypeError(f"tree: {tree!r} is no Tree or name of one")
    return (Tree(tree) if isinstance(tree, str) else tree)._native()


def _stop_at(text: bytes, stops: Sequence[bytes], stop_bytes: int) -> int:
    """Where a text that a stop string ended ends for its reader. The library counts the bytes to cut from the end of the
    raw text, but the decoder may have more of them, in U+FFFD for what is no UTF-8, so the place is looked for; a stop
    string that is not here whole began in text that was read before."""
    found = [at for stop in stops if (at := text.find(stop)) >= 0]
    return min(found, default=max(0, len(text) - stop_bytes))


class SessionOptions(TypedDict, total=False):
    """What a session is made with; all of it has defaults."""

    drafter: Drafter | Sequence[Drafter] | None  # None: plain decode; several: `auto` chooses cycle by cycle
    sampling: Sampling          # whole, or its parts
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    seed: int
    stream: int
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    penalty_window: int
    logit_bias: LogitBias
    tree: Tree | str            # a Tree, or a policy's name
    max_context: int            # 0: the model's
    draft_noise: str            # "shared", "none"
    verify: str                 # "exact", "sampled"
    ignore_eos: bool            # end-of-text ids are ordinary tokens
    stop_tokens: Iterable[int]  # further tokens that end the text
    foresight: bool             # False: what a constraint forces is left to the drafter, or to plain decode; the same text


class Session(Handle):
    """One text, made by `Model.session`, which takes SessionOptions by name. One thread at a time (another gets Error
    with Code.BUSY); only `cancel` and `close` may come from any."""

    _release = "aerie_session_release"
    _stops: tuple[bytes, ...] = ()  # the stop strings that are set
    _held: Held | None = None       # the program's own constraint, if one is set

    def __init__(self, model: Target, **options: Unpack[SessionOptions]):
        self._open("aerie_session_create", (), model, **options)

    @classmethod
    def restored(cls, model: Target, data: Any, **options: Unpack[SessionOptions]) -> "Session":
        """The session whose `save` gave `data`, with these options in place of its old ones."""
        session, data = cls.__new__(cls), bytes(memoryview(data))
        session._open("aerie_session_restore", (data, len(data)), model, **options)
        return session

    @classmethod
    def restored_file(cls, model: Target, path: str | os.PathLike[str], **options: Unpack[SessionOptions]) -> "Session":
        session = cls.__new__(cls)
        session._open("aerie_session_restore_file", (c_path(path),), model, **options)
        return session

    def _open(self, function: str, saved: tuple[Any, ...], model: Target, *,
              drafter: Drafter | Sequence[Drafter] | None = None,
              sampling: Sampling | None = None, tree: Tree | str | None = None, max_context: int = 0,
              draft_noise: str = "shared", verify: str = "exact", ignore_eos: bool = False,
              stop_tokens: Iterable[int] = (), foresight: bool = True, **sampling_parts: Any) -> None:
        if sampling is not None and sampling_parts:
            raise TypeError("sampling: give it whole or in parts")
        sampling = sampling if sampling is not None else Sampling(**sampling_parts)
        tree = Tree() if tree is None else tree
        stop = list(stop_tokens)
        options = new(_native.aerie_session_options, max_context=max_context,
                      draft_noise=_named(_NOISES, draft_noise, "draft_noise"), verify=_named(_RULES, verify, "verify"),
                      ignore_eos=int(ignore_eos), no_foresight=int(not foresight), n_stop_tokens=len(stop))
        options.sampling, options.tree = ctypes.pointer(_sampling(sampling)), ctypes.pointer(_tree(tree))
        options.stop_tokens = ctypes.cast(int32_array(stop), ctypes.POINTER(ctypes.c_int32))
        out = ctypes.c_void_p()
        with ExitStack() as open_handles:
            parent = open_handles.enter_context(Target._of_kind(model, "model")._use())
            drafters = [] if drafter is None else list(drafter) if isinstance(drafter, (list, tuple)) else [drafter]
            handles = [open_handles.enter_context(Drafter._of_kind(each, "drafter")._use()).value for each in drafters]
            options.drafter = handles[0] if handles else None
            if len(handles) > 1:
                options.n_more_drafters = len(handles) - 1
                options.more_drafters = (ctypes.c_void_p * (len(handles) - 1))(*handles[1:])
            call(function, parent, ctypes.byref(options), *saved, ctypes.byref(out))
        super().__init__(out, model, *drafters)
        self.model = model

    def fork(self, *, stream: int = 0) -> "Session":
        """A second session with the same text, settings, stop strings and constraint; keys and values are shared until one
        of them writes. `stream`: its noise stream; 0: one of its own, so that equal seeds do not make equal twins."""
        out = ctypes.c_void_p()
        with self._use() as handle, self._explained():
            call("aerie_session_fork", handle, ctypes.byref(new(_native.aerie_fork_options, stream=stream)),
                 ctypes.byref(out))
        twin = Session.__new__(Session)
        Handle.__init__(twin, out, *self._parents)
        twin.model, twin._stops, twin._held = self.model, self._stops, self._held
        return twin

    def _interrupt(self, handle: ctypes.c_void_p) -> None:
        library("aerie").aerie_session_cancel(handle)

    def _explained(self) -> Any:
        self._forget_failure()
        return explained(self._held)

    def _forget_failure(self) -> None:
        if self._held is not None:
            self._held.failed = None

    def append(self, prompt: str | Sequence[int]) -> None:
        """Prompt tokens, or text (with the package's tokenizer; the beginning-of-text token only at the beginning)."""
        if isinstance(prompt, str):
            prompt = self.model.tokenizer.encode(prompt, bos=self.length == 0)
        with self._use() as handle:
            call("aerie_session_append", handle, int32_array(prompt), len(prompt))

    def step(self, *, max_tokens: int = 0, budget_us: int = 0) -> Step:
        """One cycle (draft, verify, commit), or as much of it as the budget allows."""
        options = new(_native.aerie_step_options, max_tokens=max_tokens, budget_us=budget_us)
        result = new(_native.aerie_step_result)
        with self._borrow() as handle, self._explained():
            call("aerie_session_step", handle, ctypes.byref(options), ctypes.byref(result))
            return Step._from(result)

    def result(self) -> Step:
        """What the last step gave, its own or its batch's; raises what that step raised."""
        result = new(_native.aerie_step_result)
        with self._borrow() as handle, explained(self._held):
            call("aerie_session_result", handle, ctypes.byref(result))
            return Step._from(result)

    def steps(self, max_tokens: int | None = None) -> Iterator[Step]:
        """Steps until the text ends or `max_tokens` have come out. A loop left early leaves the session usable, with
        whole steps in its text."""
        if max_tokens is not None and max_tokens < 0:
            raise ValueError(f"max_tokens: {max_tokens}")
        left = max_tokens
        while left is None or left > 0:
            step = self.step(max_tokens=left or 0, budget_us=_SLICE_US)
            if step.state == State.PENDING:
                continue
            yield step
            if step.state == State.DONE:
                return
            if left is not None:
                left -= len(step.tokens)

    def stream(self, max_tokens: int | None = None) -> Iterator[Token]:
        """The tokens of `steps`, one by one."""
        for step in self.steps(max_tokens):
            yield from step.tokens

    def generate(self, prompt: str | Sequence[int] | None = None, *, max_tokens: int | None = None,
                 stop: Sequence[str] | None = None) -> Iterator[str]:
        """Text as it comes, in whole characters, without the stop string that ends it. `stop`: new ones for the session
        (or one), as by `set_stop_strings`; None: those that it has."""
        if prompt is not None:
            self.append(prompt)
        if stop is not None:
            self.set_stop_strings(stop)
        stops = self._stops
        held = b""  # may be the beginning of a stop string
        keep = max((len(text) - 1 for text in stops), default=0)
        with Decoder(self.model.tokenizer) as decoder:
            for step in self.steps(max_tokens):
                held += "".join([decoder.push(token.id) for token in step.tokens]).encode()
                if step.finish == Finish.STOP_STRING:
                    held += decoder.finish().encode()
                    if last := held[:_stop_at(held, stops, step.stop_bytes)].decode("utf-8", "replace"):
                        yield last
                    return
                size = len(held) - keep
                while size > 0 and size < len(held) and held[size] & 0xC0 == 0x80:
                    size -= 1
                if size > 0:
                    yield held[:size].decode()
                    held = held[size:]
            last = held.decode() + decoder.finish()
            if last:
                yield last

    def cancel(self) -> None:
        """From any thread: the step that is running, or the next one, raises Cancelled. Stepping again goes on."""
        with self._use() as handle:
            library("aerie").aerie_session_cancel(handle)

    def clear_cancel(self) -> None:
        """From any thread: forget a cancel that no step has taken, whose sender has come too late for the step it meant."""
        with self._use() as handle:
            library("aerie").aerie_session_clear_cancel(handle)

    def rewind(self, length: int) -> None:
        """Keep the first `length` tokens."""
        if length < 0:
            raise ValueError(f"length: {length}")
        with self._use() as handle:
            call("aerie_session_rewind", handle, length)

    def save(self) -> bytearray:
        """The text with what has been computed for it; `Model.restore` goes on from there."""
        size = ctypes.c_size_t()
        with self._borrow() as handle:
            call("aerie_session_save", handle, None, 0, ctypes.byref(size))
            data = bytearray(size.value)
            call("aerie_session_save", handle, (ctypes.c_char * len(data)).from_buffer(data), len(data), ctypes.byref(size))
        del data[size.value:]  # less, if a drafter has become unusable since
        return data

    def save_file(self, path: str | os.PathLike[str]) -> None:
        with self._use() as handle:
            call("aerie_session_save_file", handle, c_path(path))

    def set_sampling(self, sampling: Sampling) -> None:
        with self._use() as handle:
            call("aerie_session_set_sampling", handle, ctypes.byref(_sampling(sampling)))

    def set_tree(self, tree: Tree | str) -> None:
        with self._use() as handle:
            call("aerie_session_set_tree", handle, ctypes.byref(_tree(tree)))

    def set_stop_strings(self, stop: Sequence[str]) -> None:
        """Texts that end the generation (or one), until others are set; none clears them."""
        texts = tuple(c_string(text) for text in ([stop] if isinstance(stop, str) else stop))
        with self._use() as handle:
            if not texts:
                call("aerie_session_set_stop_strings", handle, None, 0, None)
            else:
                source, strings = new(_native.aerie_token_source), (ctypes.c_char_p * len(texts))(*texts)
                with self.model.tokenizer._use() as tokenizer:  # the session holds it from then on
                    call("aerie_tokenizer_source", tokenizer, ctypes.byref(source), of="aerie-text")
                    call("aerie_session_set_stop_strings", handle, strings, len(texts), ctypes.byref(source))
            self._stops = texts

    def set_constraint(self, constraint: Grammar | Constraint | None) -> None:
        """From the next token on only what it allows comes; None: anything. It begins with what is generated now, and after
        every `append` anew; a `rewind` leads it back. It is not saved with the session. Error with Code.MISMATCH: it allows
        nothing to begin with, and what was set before stays."""
        with self._use() as handle:
            held = Held(constraint) if isinstance(constraint, Constraint) else None
            if held is not None:
                held.set(handle)
            elif constraint is None:
                call("aerie_session_set_constraint", handle, None)
            else:
                native = Grammar._of_kind(constraint, "constraint")._constraint()
                call("aerie_session_set_constraint", handle, ctypes.byref(native))
            self._held = held

    def tokens(self) -> list[int]:
        """All committed tokens, prompt included."""
        data, n = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t()
        with self._borrow() as handle:
            call("aerie_session_tokens", handle, ctypes.byref(data), ctypes.byref(n))
            return data[:n.value]

    @property
    def length(self) -> int:
        """Committed tokens, prompt included."""
        data, n = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t()
        with self._use() as handle:
            call("aerie_session_tokens", handle, ctypes.byref(data), ctypes.byref(n))
            return n.value

    def statistics(self) -> Statistics:
        native = new(_native.aerie_statistics)
        with self._use() as handle:
            call("aerie_session_statistics", handle, ctypes.byref(native))
        return Statistics._from(native)
