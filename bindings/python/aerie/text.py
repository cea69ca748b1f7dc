"""Tokens and text (libaerie-text, loaded when it is wanted)."""

import ctypes
from typing import Any

from . import _native
from ._library import Handle, call, library
from .errors import Code, Error

_OF = "aerie-text"


class Tokenizer(Handle):
    """From a package's "tokenizer" blob; usually `Model.tokenizer`. May be shared by threads."""

    _release, _of = "aerie_tokenizer_release", _OF

    def __init__(self, blob: Any):
        blob = bytes(memoryview(blob))
        out = ctypes.c_void_p()
        call("aerie_tokenizer_create", blob, len(blob), ctypes.byref(out), of=_OF)
        super().__init__(out)

    @property
    def vocab_size(self) -> int:
        with self._use() as handle:
            return int(library(_OF).aerie_tokenizer_vocab_size(handle))

    def encode(self, text: str, *, bos: bool = True, special: bool = False) -> list[int]:
        """`special`: "<|endoftext|>" in the text is that token."""
        data = text.encode()
        flags = (0 if bos else _native.AERIE_ENCODE_NO_BOS) | (_native.AERIE_ENCODE_SPECIAL if special else 0)
        n, capacity = ctypes.c_size_t(), len(data) + 8
        with self._use() as handle:
            while True:
                ids = (ctypes.c_int32 * capacity)()
                try:
                    call("aerie_tokenizer_encode", handle, data, len(data), flags, ids, capacity, ctypes.byref(n), of=_OF)
                    return list(ids[:n.value])
                except Error as e:
                    if e.code != Code.LIMIT or n.value <= capacity:
                        raise
                    capacity = n.value

    def decode(self, tokens: Any) -> str:
        with Decoder(self) as decoder:
            return "".join([decoder.push(token) for token in tokens]) + decoder.finish()


class Decoder(Handle):
    """Tokens to text, never splitting a character. One thread at a time (another gets Error with Code.BUSY)."""

    _release, _of = "aerie_decoder_release", _OF

    def __init__(self, tokenizer: Tokenizer):
        out = ctypes.c_void_p()
        with Tokenizer._of_kind(tokenizer, "tokenizer")._use() as handle:
            call("aerie_decoder_create", handle, ctypes.byref(out), of=_OF)
        super().__init__(out, tokenizer)

    def _text(self, name: str, *arguments: int) -> str:
        text, size = ctypes.POINTER(ctypes.c_char)(), ctypes.c_size_t()
        with self._borrow() as handle:
            call(name, handle, *arguments, ctypes.byref(text), ctypes.byref(size), of=_OF)
            return str(ctypes.string_at(text, size.value), "utf-8") if size.value else ""

    def push(self, token: int) -> str:
        """The complete characters that this token brings; may be none."""
        return self._text("aerie_decoder_push", token)

    def finish(self) -> str:
        """What was held back, as U+FFFD; the decoder is then fresh."""
        return self._text("aerie_decoder_finish")
