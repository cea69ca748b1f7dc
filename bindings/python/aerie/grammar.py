"""Text of a given form."""

import ctypes
import json
from typing import Any, Iterable

from . import _native
from ._library import Handle, c_string, call, int32_array, new
from .text import Tokenizer

_OF = "aerie-text"
_LAYOUTS = {"free": _native.AERIE_JSON_FREE, "one-line": _native.AERIE_JSON_ONE_LINE, "compact": _native.AERIE_JSON_COMPACT}


class Grammar(Handle):
    """A form that text is to have, for `Session.set_constraint`; usually by `Model.grammar` or `Model.json_grammar`.
    Immutable; serves any number of sessions, which hold it by themselves.

    `gbnf` is in llama.cpp's notation, whose start is the rule "root". `end_tokens` are allowed where the text is complete:
    the model's `info.eos_ids`. Without any it ends once nothing can follow (Finish.CONSTRAINT).
    """

    _release, _of = "aerie_grammar_release", _OF

    def __init__(self, tokenizer: Tokenizer, gbnf: str, *, end_tokens: Iterable[int] = ()):
        self._open("aerie_grammar_create", tokenizer, gbnf, end_tokens)

    @classmethod
    def json(cls, tokenizer: Tokenizer, schema: Any, *, end_tokens: Iterable[int] = (), layout: str = "free") -> "Grammar":
        """JSON that a JSON Schema describes, given as text or as what json.loads makes of it; {} is any JSON.

        `layout`: "free", as the model likes; "one-line", a space behind `:` and `,` as json.dumps has it; "compact", no white
        space. The less it leaves open, the faster the text comes.
        """
        if layout not in _LAYOUTS:
            raise ValueError(f"layout: {layout!r} is none of {', '.join(_LAYOUTS)}")
        grammar = cls.__new__(cls)
        text = schema if isinstance(schema, str) else json.dumps(schema)
        grammar._open("aerie_grammar_create_json", tokenizer, text, end_tokens, _LAYOUTS[layout])
        return grammar

    def _open(self, function: str, tokenizer: Tokenizer, text: str, end_tokens: Iterable[int],
              layout: int = _native.AERIE_JSON_FREE) -> None:
        ends = int32_array(list(end_tokens))
        options = new(_native.aerie_grammar_options, n_end_tokens=len(ends), end_tokens=ends, json_layout=layout)
        out = ctypes.c_void_p()
        with Tokenizer._of_kind(tokenizer, "tokenizer")._use() as handle:
            call(function, handle, c_string(text), ctypes.byref(options), ctypes.byref(out), of=_OF)
        super().__init__(out)

    def _constraint(self) -> Any:
        """For a session, which holds the grammar from then on."""
        native = new(_native.aerie_constraint)
        with self._use() as handle:
            call("aerie_grammar_constraint", handle, ctypes.byref(native), of=_OF)
        return native
