"""Failures of the library as exceptions."""

from enum import IntEnum
from typing import Any, NoReturn

from . import _native


class Code(IntEnum):
    """AERIE_E_* of aerie.h."""

    INVALID_ARGUMENT = _native.AERIE_E_INVALID_ARGUMENT
    NOT_FOUND = _native.AERIE_E_NOT_FOUND
    IO = _native.AERIE_E_IO
    BAD_FORMAT = _native.AERIE_E_BAD_FORMAT
    MISMATCH = _native.AERIE_E_MISMATCH
    UNSUPPORTED = _native.AERIE_E_UNSUPPORTED
    OUT_OF_MEMORY = _native.AERIE_E_OUT_OF_MEMORY
    CANCELLED = _native.AERIE_E_CANCELLED
    LIMIT = _native.AERIE_E_LIMIT
    PLUGIN = _native.AERIE_E_PLUGIN
    DEVICE = _native.AERIE_E_DEVICE
    BUSY = _native.AERIE_E_BUSY
    INTERNAL = _native.AERIE_E_INTERNAL


class Error(Exception):
    """A call failed. `code` says how; the text says what and where."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        # A newer library may have codes of its own.
        self.code = Code(code) if code in Code._value2member_map_ else code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (int(self.code), str(self))


class Cancelled(Error):
    """Somebody asked for it: Session.cancel, Batch.cancel, or a progress function that returned False."""


def raise_error(code: int, message: str) -> NoReturn:
    raise (Cancelled if code == Code.CANCELLED else Error)(code, message)
