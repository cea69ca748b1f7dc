"""A target model: what sessions, batches and drafters stand on."""

import ctypes
import functools
import os
from typing import Any, Callable, NamedTuple, Sequence

from . import _arrays, _native
from ._library import Handle, c_path, c_string, call, check_hook, inside, int32_array, new, raise_later, release_late
from ._progress import Progress, ProgressFunction
from .runtime import Runtime
from .text import Tokenizer

_KV_DTYPES = {"f32": 0, "bf16": 1, "int8": 2}
FINAL = _native.AERIE_FEATURE_FINAL  # tap: the hidden state after the final norm


class ModelInfo(NamedTuple):
    vocab_size: int
    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    max_context: int
    bos_id: int | None
    eos_ids: tuple[int, ...]
    name: str
    fingerprint: str
    weight_bytes: int
    kv_bytes_per_token: int


class Target(Handle):
    """What every model is, whatever is made of it (`Model`)."""

    _release = "aerie_model_release"
    _kind = "Model"

    def __init__(self, path: str | os.PathLike[str], runtime: Runtime | None = None, *, kv_positions: int = 0,
                 kv_dtype: str = "f32", check_data: bool = False, progress: ProgressFunction | None = None,
                 keep_prefixes: bool = True, fast_prefill: bool = False,
                 kv_full: Callable[[int], Any] | None = None):
        if kv_dtype not in _KV_DTYPES:
            raise ValueError(f"kv_dtype: {kv_dtype!r} is none of {', '.join(_KV_DTYPES)}")
        runtime = Runtime._of_kind(runtime, "runtime") if runtime is not None else Runtime()
        hook = Progress(progress)
        options = new(_native.aerie_model_options, kv_positions=kv_positions, kv_dtype=_KV_DTYPES[kv_dtype],
                      check_data=int(check_data), progress=hook.hook, keep_prefixes=0 if keep_prefixes else -1,
                      prefill=_native.AERIE_PREFILL_FAST if fast_prefill else _native.AERIE_PREFILL_EXACT)
        check_hook(kv_full, "kv_full")
        if kv_full is not None:
            def full(_user: Any, positions: int) -> int:
                try:
                    with inside.left():  # the library holds no lock: a session that is dropped here makes room at once
                        release_late()
                        return 1 if kv_full(positions) else 0
                except BaseException as e:  # left to ctypes it would be any answer, "try again" among them
                    raise_later(e)
                    return 0
            self._kv_full = options.kv_full = _native.aerie_kv_full_fn(full)  # kept: sessions call it
        out = ctypes.c_void_p()
        with runtime._use() as parent:
            hook.call("aerie_model_open", parent, c_path(path), ctypes.byref(options), ctypes.byref(out))
        super().__init__(out, runtime)
        self.runtime = runtime

    @functools.cached_property
    def info(self) -> ModelInfo:
        native = new(_native.aerie_model_info)
        with self._use() as handle:
            call("aerie_model_info_get", handle, ctypes.byref(native))
            values = {name: getattr(native, name) for name in ModelInfo._fields}
            values.update(bos_id=None if native.bos_id < 0 else native.bos_id,
                          eos_ids=tuple(native.eos_ids[:native.n_eos]), name=native.name.decode("utf-8", "replace"),
                          fingerprint=native.fingerprint.decode())
        return ModelInfo(**values)

    def blob(self, name: str) -> bytes:
        """A byte blob of the package ("tokenizer", "chat_template"); empty when absent."""
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        with self._use() as handle:
            call("aerie_model_blob", handle, c_string(name), ctypes.byref(data), ctypes.byref(size))
            return ctypes.string_at(data, size.value) if size.value else b""

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        """The package's tokenizer; LookupError when it has none."""
        blob = self.blob("tokenizer")
        if not blob:
            raise LookupError(f"{self.info.name}: the package has no tokenizer")
        return Tokenizer(blob)

    def features(self, tokens: Sequence[int], taps: Sequence[int] = (FINAL,), *, out: Any = None,
                 progress: ProgressFunction | None = None) -> Any:
        """Hidden states float32 [tokens, len(taps) * hidden_size]: column block i is the input of layer taps[i], the last
        one's output (info.layers), or that after the final norm (-1). The library writes into `out` (any writable
        float32 memory of that size) or a new numpy array; without numpy, a memoryview."""
        return self._evaluate(tokens, "features", len(taps) * self.info.hidden_size, out, progress, taps)

    def logits(self, tokens: Sequence[int], *, out: Any = None, progress: ProgressFunction | None = None) -> Any:
        """float32 [tokens, vocab_size]: row i is what the model says after tokens[:i + 1]. Written like `features`."""
        return self._evaluate(tokens, "logits", self.info.vocab_size, out, progress, ())

    def _evaluate(self, tokens: Sequence[int], field: str, columns: int, out: Any, progress: ProgressFunction | None,
                  taps: Sequence[int]) -> Any:
        rows = len(tokens)
        out = _arrays.floats(rows, columns) if out is None else out
        ids, layers, hook = int32_array(tokens), int32_array(taps), Progress(progress)
        options = new(_native.aerie_evaluate_options, n_taps=len(taps), progress=hook.hook)
        options.taps = ctypes.cast(layers, ctypes.POINTER(ctypes.c_int32))
        setattr(options, field, _arrays.float_pointer(out, rows, columns, "out"))
        with self._use() as handle:
            hook.call("aerie_model_evaluate", handle, ids, rows, ctypes.byref(options))
        return out
