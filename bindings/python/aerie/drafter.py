"""A drafter, bound to a target."""

import ctypes
import os

from . import _native
from ._library import Handle, c_path, c_string, call, new
from ._progress import Progress, ProgressFunction
from ._target import Target


class Drafter(Handle):
    """A plugin, and its weights, bound to a target."""

    _release = "aerie_drafter_release"

    def __init__(self, model: Target, package: str | os.PathLike[str] | None = None, *, plugin: str | None = None,
                 max_sessions: int = 0, progress: ProgressFunction | None = None):
        hook = Progress(progress)
        options = new(_native.aerie_drafter_options, max_sessions=max_sessions, progress=hook.hook)
        options.package = None if package is None else c_path(package)
        options.plugin = None if plugin is None else c_string(plugin)
        out = ctypes.c_void_p()
        with Target._of_kind(model, "model")._use() as parent:
            hook.call("aerie_drafter_open", parent, ctypes.byref(options), ctypes.byref(out))
        super().__init__(out, model)
