"""Conversations as the text that a model was trained on."""

import ctypes
import json
from typing import Any, Iterable, Mapping

from . import _native
from ._library import Handle, c_string, call, new
from ._target import Target
from .errors import Code, Error

_OF = "aerie-text"


class ChatTemplate(Handle):
    """A model's chat template, as Hugging Face has them (Jinja); usually `Model.chat_template`. Immutable; any thread.

    The template's bos_token and eos_token are those of `model`; without one it does without.
    """

    _release, _of = "aerie_chat_template_release", _OF

    def __init__(self, text: str, model: Target | None = None):
        data, out = text.encode(), ctypes.c_void_p()
        if model is None:
            call("aerie_chat_template_create", data, len(data), None, None, ctypes.byref(out), of=_OF)
        else:
            info = new(_native.aerie_model_info)
            with Target._of_kind(model, "model")._use() as handle, model.tokenizer._use() as tokenizer:
                call("aerie_model_info_get", handle, ctypes.byref(info))
                call("aerie_chat_template_create", data, len(data), tokenizer, ctypes.byref(info), ctypes.byref(out), of=_OF)
        super().__init__(out)

    def render(self, messages: Iterable[Mapping[str, Any]], *, tools: Iterable[Any] | None = None,
               add_generation_prompt: bool = True, **variables: Any) -> str:
        """The conversation as one text, up to what begins the model's answer. Encode it with `bos=False, special=True`.

        Messages are dicts with "role" and "content", and what else the template knows; `variables` are further ones of its own, such
        as `enable_thinking=False`.
        """
        options = new(_native.aerie_chat_options, add_generation_prompt=bool(add_generation_prompt),
                      messages_json=c_string(json.dumps(list(messages))),
                      tools_json=None if tools is None else c_string(json.dumps(list(tools))),
                      variables_json=c_string(json.dumps(variables)) if variables else None)
        size, capacity = ctypes.c_size_t(), 4096
        with self._use() as handle:
            while True:
                out = ctypes.create_string_buffer(capacity)
                try:
                    call("aerie_chat_template_render", handle, ctypes.byref(options), out, capacity, ctypes.byref(size), of=_OF)
                    return out.raw[:size.value].decode()
                except Error as e:
                    if e.code != Code.LIMIT or size.value <= capacity:
                        raise
                    capacity = size.value
