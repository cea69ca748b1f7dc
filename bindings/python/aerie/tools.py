"""Packages: made from checkpoints, and looked into (libaerie-text)."""

import ctypes
import json
import os
from typing import Any

from . import _native
from ._library import c_path, call, check_hook, inside, library, new
from ._progress import Progress, ProgressFunction
from .runtime import LogFunction

_DTYPES = {"bf16": _native.AERIE_WEIGHTS_BF16, "f32": _native.AERIE_WEIGHTS_F32, "int8": _native.AERIE_WEIGHTS_INT8,
           "int4": _native.AERIE_WEIGHTS_INT4, "fp8": _native.AERIE_WEIGHTS_FP8,
           "q4_1": _native.AERIE_WEIGHTS_Q4_1, "mxfp4": _native.AERIE_WEIGHTS_MXFP4, "stored": _native.AERIE_WEIGHTS_STORED}
PathLike = str | os.PathLike[str]


def convert(source: PathLike, output: PathLike, *, dtype: str | None = None, head_dtype: str | None = None,
            drafter_for: PathLike | None = None, tokenizer: PathLike | None = None, compress: bool = False, candidate_rank: int = 0, context: int = 0,
            progress: ProgressFunction | None = None, log: LogFunction | None = None) -> None:
    """A package from a Hugging Face directory, a GGUF or llama2.c file, a drafter's directory (`drafter_for`: its target's
    package) or another package, its weights of `dtype` ("stored": each of that which is nearest to what the source has it in; by itself the
    same, but bf16 for f32), embedding and LM head of `head_dtype` if that is given. `context` is the
    longest text that a target will read, 0 as long as it can. `output` appears whole or not at all; `log` hears what a user should know."""
    for name, given in (("dtype", dtype), ("head_dtype", head_dtype)):
        if given is not None and given not in _DTYPES:
            raise ValueError(f"{name}: {given!r} is none of {', '.join(_DTYPES)}")

    check_hook(log, "log")

    def heard(_user: Any, level: int, message: bytes) -> None:
        if log is not None:
            with inside:
                log(level, message.decode("utf-8", "replace"))

    hook = Progress(progress)
    options = new(_native.aerie_convert_options, dtype=_DTYPES[dtype] if dtype else _native.AERIE_WEIGHTS_DEFAULT, source=c_path(source),
                  output=c_path(output), compress=int(compress), candidate_rank=candidate_rank, context=context,
                  head_dtype=_DTYPES[head_dtype] if head_dtype else _native.AERIE_WEIGHTS_DEFAULT, progress=hook.hook, log=_native.aerie_log_fn(heard))
    options.drafter_for = None if drafter_for is None else c_path(drafter_for)
    options.tokenizer = None if tokenizer is None else c_path(tokenizer)
    hook.call("aerie_convert", ctypes.byref(options), of="aerie-text")


def inspect(path: PathLike) -> dict[str, Any]:
    """What a package holds."""
    text = ctypes.POINTER(ctypes.c_char)()
    call("aerie_inspect", c_path(path), _native.AERIE_INSPECT_JSON, ctypes.byref(text), of="aerie-text")
    try:
        found: dict[str, Any] = json.loads(ctypes.string_at(text))
    finally:
        library("aerie-text").aerie_string_free(text)
    return found
