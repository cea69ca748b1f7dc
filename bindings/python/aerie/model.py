"""A target model, and all that is made of it."""

import functools
import os
from typing import Any, Iterable, Unpack

from ._progress import ProgressFunction
from ._target import Target
from .batch import Batch
from .chat import ChatTemplate
from .drafter import Drafter
from .grammar import Grammar
from .session import Session, SessionOptions


class Model(Target):
    """A target package, opened. Immutable; serves any number of sessions on any threads.

    Without a `runtime` it makes one of its own. `kv_positions`: KV budget of all its sessions together, in tokens.
    `progress(done, total)` may return False to cancel the load. `keep_prefixes`: later sessions that begin like
    earlier texts do not read that beginning again. `fast_prefill`: on cuda, long prompts are read by cuBLASLt, not
    bit for bit. `kv_full(positions)` is asked, on the stepping thread, when the KV budget is spent: it may close or
    rewind other sessions of the model and return True to try again; what it raises comes out of the step.
    """

    def drafter(self, package: str | os.PathLike[str] | None = None, *, plugin: str | None = None,
                max_sessions: int = 0, progress: ProgressFunction | None = None) -> Drafter:
        """A drafter package (or a target used as draft model), or the id of a plugin that needs none, like "ngram".
        `progress(done, total)`, while the package is read, may return False to cancel."""
        return Drafter(self, package, plugin=plugin, max_sessions=max_sessions, progress=progress)

    @functools.cached_property
    def chat_template(self) -> ChatTemplate:
        """The package's chat template; LookupError when it has none."""
        text = self.blob("chat_template")
        if not text:
            raise LookupError(f"{self.info.name}: the package has no chat template")
        return ChatTemplate(text.decode(), self)

    def grammar(self, gbnf: str, *, end_tokens: Iterable[int] | None = None) -> Grammar:
        """A form that text is to have (GBNF), for `Session.set_constraint`. `end_tokens` are allowed where it is complete;
        None: the model's own."""
        return Grammar(self.tokenizer, gbnf, end_tokens=self.info.eos_ids if end_tokens is None else end_tokens)

    def json_grammar(self, schema: Any, *, end_tokens: Iterable[int] | None = None, layout: str = "free") -> Grammar:
        """The same of JSON that a JSON Schema describes, given as text or as what json.loads makes of it. `layout`: "free",
        "one-line" or "compact", as in Grammar.json."""
        return Grammar.json(self.tokenizer, schema, end_tokens=self.info.eos_ids if end_tokens is None else end_tokens,
                            layout=layout)

    def session(self, **options: Unpack[SessionOptions]) -> Session:
        """A new text; docs/python.md."""
        return Session(self, **options)

    def restore(self, data: Any, **options: Unpack[SessionOptions]) -> Session:
        """The session that `Session.save` gave as bytes, going on with these options."""
        return Session.restored(self, data, **options)

    def restore_file(self, path: str | os.PathLike[str], **options: Unpack[SessionOptions]) -> Session:
        return Session.restored_file(self, path, **options)

    def batch(self, *, max_rows: int = 0) -> Batch:
        return Batch(self, max_rows=max_rows)
