"""A runtime: device, threads, hooks and plugins."""

import ctypes
import os
from typing import Any, Callable, NamedTuple

from . import _native
from ._library import Handle, c_path, c_string, call, check_hook, inside, library, new
from .errors import Code, Error

LogFunction = Callable[[int, str], None]


class PluginInfo(NamedTuple):
    id: str
    title: str
    version: str
    path: str
    flags: int


class Runtime(Handle):
    """`log(level, message)` hears what the library has to say (0 error, 1 warning, 2 info, 3 debug), on whatever thread
    noticed it; it must not call the library. What it raises goes to sys.unraisablehook. `drafters`: load those that
    are installed with the library."""

    _release = "aerie_runtime_release"

    def __init__(self, *, threads: int = 0, device: str | None = None, log: LogFunction | None = None,
                 drafters: bool = True):
        options = new(_native.aerie_runtime_options, threads=threads)
        options.device = c_string(device) if device is not None else None
        check_hook(log, "log")
        if log is not None:
            def heard(_user: Any, level: int, message: bytes) -> None:
                with inside:
                    log(level, message.decode("utf-8", "replace"))
            self._log = options.log = _native.aerie_log_fn(heard)  # kept: the library calls it as long as it lives
        out = ctypes.c_void_p()
        call("aerie_runtime_create", ctypes.byref(options), ctypes.byref(out))
        super().__init__(out)
        if drafters:
            self.load_plugins()

    @property
    def description(self) -> str:
        """Device, instruction set and threads."""
        with self._use() as handle:
            return str(library("aerie").aerie_runtime_description(handle), "utf-8")

    def load_plugin(self, path: str | os.PathLike[str]) -> None:
        """Load one drafter plugin from an absolute path."""
        with self._use() as handle:
            call("aerie_runtime_load_plugin", handle, c_path(path))

    def load_plugins(self, directory: str | os.PathLike[str] | None = None) -> None:
        """Load every plugin of an absolute directory; None: those installed with the library."""
        with self._use() as handle:
            call("aerie_runtime_load_plugin_directory", handle, None if directory is None else c_path(directory))

    def plugins(self) -> list[PluginInfo]:
        found: list[PluginInfo] = []
        with self._use() as handle:
            while True:
                info = new(_native.aerie_plugin_info)
                try:
                    call("aerie_runtime_plugin_info", handle, len(found), ctypes.byref(info))
                except Error as e:
                    if e.code == Code.NOT_FOUND:
                        return found
                    raise
                texts = {name: getattr(info, name).decode("utf-8", "replace") for name in ("id", "title", "version", "path")}
                found.append(PluginInfo(flags=info.flags, **texts))
