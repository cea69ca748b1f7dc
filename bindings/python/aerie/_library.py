"""The shared libraries: where they are, and how they are called. They are loaded at the first call, not at import."""

import atexit
import ctypes
import functools
import glob
import os
import threading
from array import array
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, Self, Sequence

from . import _native
from .errors import Error, raise_error

SOVERSION = 1


def _candidates(name: str) -> Iterator[str]:
    """AERIE_DIR (a build tree or an installed prefix), what the wheel brought, what the system has."""
    file = f"lib{name}.so.{SOVERSION}"
    directory = os.environ.get("AERIE_DIR")
    if directory:
        found = [os.path.join(directory, "lib", file), os.path.join(directory, "lib64", file),
                 *glob.glob(os.path.join(glob.escape(directory), "lib", "*", file))]
        yield next((path for path in found if os.path.exists(path)), found[0])
        return
    beside = Path(__file__).parent / "_lib" / file
    yield str(beside) if beside.exists() else file


@functools.cache
def library(name: str) -> ctypes.CDLL:
    """`aerie` or `aerie-text`."""
    loaded = ctypes.CDLL(next(_candidates(name)))  # OSError says which file is missing
    _native.declare(loaded, _native.FUNCTIONS[name])
    return loaded


def new(struct: type, **values: Any) -> Any:
    """A struct of the C API with its size set."""
    made = struct(struct_size=ctypes.sizeof(struct))
    for name, value in values.items():
        setattr(made, name, value)
        if isinstance(value, int) and isinstance(kept := getattr(made, name), int) and kept != value:
            raise OverflowError(f"{name}: {value} does not fit")  # ctypes would take it modulo 2**32 or 2**64
    return made


def c_string(text: str | bytes) -> bytes:
    """A text for the library, to which it would end at its first NUL."""
    data = text.encode() if isinstance(text, str) else text
    if b"\0" in data:
        raise ValueError("embedded null character")
    return data


def c_path(path: str | os.PathLike[str]) -> bytes:
    return c_string(os.fsencode(path))


class _Inside:
    """The threads that are in the library, or in a hook that it calls on a thread of its own: it may hold a lock there
    which releasing an object would wait for, for ever. Python's garbage collector runs anywhere, so in hooks too.

    Not a threading.local: its first use on a thread allocates, and so may collect before the thread is known.
    """

    def __init__(self) -> None:
        self._depth: dict[int, int] = {}

    def here(self) -> bool:
        return threading.get_ident() in self._depth

    def __enter__(self) -> None:
        me = threading.get_ident()
        self._depth[me] = self._depth.get(me, 0) + 1

    def __exit__(self, *_: object) -> None:
        me = threading.get_ident()
        self._depth[me] -= 1
        if self._depth[me] == 0:
            del self._depth[me]

    @contextmanager
    def left(self) -> Iterator[None]:
        """For a hook that is called without locks and may release objects."""
        me = threading.get_ident()
        depth = self._depth.pop(me, 0)
        try:
            yield
        finally:
            if depth:
                self._depth[me] = depth


inside = _Inside()
_raised: dict[int, BaseException] = {}  # in a hook, by thread


def raise_later(error: BaseException) -> None:
    """What a hook on this thread raised: the call that it is in raises it when it is back from the library."""
    _raised[threading.get_ident()] = error


_late: list["Handle"] = []  # nobody refers to them any more, which was noticed inside the library


@atexit.register
def release_late() -> None:
    """Give back what nobody refers to any more, unless this thread is inside the library."""
    while _late and not inside.here():
        try:
            late = _late.pop()
        except IndexError:  # another thread took it
            return
        late._give_back()


def call(name: str, *arguments: Any, of: str = "aerie") -> None:
    """A function that ends in an aerie_error; its failure is raised."""
    err, function = new(_native.aerie_error), getattr(library(of), name)
    for kind, argument in zip(function.argtypes, arguments):
        if isinstance(argument, int) and kind(argument).value != argument:
            raise OverflowError(f"{name}: {argument} does not fit")
    with inside:
        code = function(*arguments, ctypes.byref(err))
    release_late()
    if raised := _raised.pop(threading.get_ident(), None):
        raise raised
    if code != _native.AERIE_OK:
        raise_error(code, err.message.decode("utf-8", "replace"))


def check_hook(function: Any, name: str) -> None:
    if function is not None and not callable(function):
        raise TypeError(f"{name}: {function!r} is no function")


def int32_array(values: Sequence[int]) -> Any:
    """What a `const int32_t *` is given: an int32 buffer (numpy, array) as it is, anything else copied."""
    if isinstance(values, (bytes, bytearray)):
        raise TypeError("bytes are no token ids: give text as str, or a list of ids")
    try:
        view = memoryview(values)  # type: ignore[arg-type]
    except TypeError:
        view = memoryview(array("i", values))  # which refuses what does not fit
    if view.format not in ("i", "l") or view.itemsize != 4 or view.ndim != 1 or not view.c_contiguous or view.readonly:
        view = memoryview(array("i", view.tolist()))
    return (ctypes.c_int32 * len(view)).from_buffer(view)


class Handle:
    """An object of the library: closed once, by whoever comes first, and never while a call on it is running.

    The library's objects hold what they stand on, so the order of closing does not matter; the Python objects hold
    their parents because these hold the callbacks.
    """

    _release: str  # the C function
    _of = "aerie"
    _kind = ""     # what users know it as, if not by its class

    def __init__(self, handle: ctypes.c_void_p, *parents: Any):
        self._handle: ctypes.c_void_p | None = handle
        self._parents = parents
        self._callers: list[int] = []  # a thread for each call
        self._owed: ctypes.c_void_p | None = None  # to be released by the last of them
        self._idle = threading.Condition()
        self._lent = threading.Lock()

    @classmethod
    def _of_kind(cls, value: Any, name: str) -> Self:
        """`value`, which the library would believe to be a `cls`."""
        if not isinstance(value, cls):
            raise TypeError(f"{name}: {value!r} is no {cls._kind or cls.__name__}")
        return value

    def __reduce_ex__(self, _protocol: Any) -> Any:
        raise TypeError(f"a {type(self).__name__} can be neither copied nor pickled")  # two would give back one

    @contextmanager
    def _use(self) -> Iterator[ctypes.c_void_p]:
        with self._idle:
            if self._handle is None:
                raise ValueError(f"{type(self).__name__} is closed")
            self._callers.append(threading.get_ident())
            handle = self._handle
        try:
            yield handle
        finally:
            owed = None
            with self._idle:
                self._callers.remove(threading.get_ident())
                if not self._callers:
                    owed, self._owed = self._owed, None
                    self._idle.notify_all()
            if owed is not None:
                self._free(owed)

    @contextmanager
    def _borrow(self) -> Iterator[ctypes.c_void_p]:
        """`_use`, for a call that lends memory until the next one: it is copied before another thread may call."""
        if not self._lent.acquire(blocking=False):
            raise Error(_native.AERIE_E_BUSY, f"the {type(self).__name__.lower()} is in use, by another thread or a hook's caller")
        try:
            with self._use() as handle:
                yield handle
        finally:
            self._lent.release()

    def _interrupt(self, handle: ctypes.c_void_p) -> None:
        """Make calls that run on other threads end soon."""

    def close(self) -> None:
        """Give the object back; a second time does nothing. Waits for calls on other threads; in a signal handler, which comes
        in the middle of a call on this one, the end of that call gives it back."""
        self._give_back()
        release_late()

    def _give_back(self) -> None:
        with self._idle:
            handle, self._handle = self._handle, None
            if handle is None:
                return
            if self._callers:
                self._interrupt(handle)
            if threading.get_ident() in self._callers:
                self._owed = handle
                return
            self._idle.wait_for(lambda: not self._callers)
        self._free(handle)

    def _free(self, handle: ctypes.c_void_p) -> None:
        with inside:
            getattr(library(self._of), self._release)(handle)

    @property
    def closed(self) -> bool:
        return self._handle is None

    def __enter__(self) -> Self:
        if self._handle is None:
            raise ValueError(f"{type(self).__name__} is closed")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is None:
            return
        if inside.here():
            _late.append(self)  # itself, not its handle: it, or a parent, holds the hooks that the release may call
        else:
            self._give_back()
