"""Struct sizes of other versions of the header, and allocators that fail, by the declarations of the C functions."""

import ctypes
import os

import aerie
from aerie import Code, _native
from aerie._library import library, new
from case import Case, DEMO, PROMPT


class Raw(Case):
    def setUp(self):
        self.core = library("aerie")
        self.err = new(_native.aerie_error)
        self.session_ = ctypes.c_void_p()

    def create(self, options) -> int:
        with self.model._use() as model:
            return self.core.aerie_session_create(
                model, ctypes.cast(options, ctypes.POINTER(_native.aerie_session_options)),
                ctypes.byref(self.session_), ctypes.byref(self.err))

    def step(self, result) -> int:
        prompt = (ctypes.c_int32 * len(PROMPT))(*PROMPT)
        code = self.core.aerie_session_append(self.session_, prompt, len(PROMPT), None)
        return code or self.core.aerie_session_step(
            self.session_, None, ctypes.cast(result, ctypes.POINTER(_native.aerie_step_result)), ctypes.byref(self.err))

    def test_older_struct_size(self):
        options = (ctypes.c_uint32 * 4)(16)
        self.assertEqual(self.create(options), 0, self.err.message)
        result = (ctypes.c_uint8 * 64)(*[0xAB] * 64)
        ctypes.cast(result, ctypes.POINTER(ctypes.c_uint32))[0] = 16
        self.assertEqual(self.step(result), 0, self.err.message)
        self.assertEqual(ctypes.cast(result, ctypes.POINTER(ctypes.c_int32))[1], aerie.State.TOKENS)
        self.assertEqual(bytes(result[16:]), b"\xab" * 48)
        self.core.aerie_session_release(self.session_)

    def test_newer_struct_size(self):
        size = ctypes.sizeof(_native.aerie_session_options)
        options = (ctypes.c_uint8 * (size + 64))()
        ctypes.cast(options, ctypes.POINTER(ctypes.c_uint32))[0] = size + 64
        options[size + 60] = 1
        self.assertEqual(self.create(options), Code.UNSUPPORTED)
        options[size + 60] = 0
        self.assertEqual(self.create(options), 0, self.err.message)
        size = ctypes.sizeof(_native.aerie_step_result)
        result = (ctypes.c_uint8 * (size + 64))(*[0xAB] * (size + 64))
        ctypes.cast(result, ctypes.POINTER(ctypes.c_uint32))[0] = size + 64
        self.assertEqual(self.step(result), 0, self.err.message)
        self.assertEqual(bytes(result[size:]), bytes(64))
        self.core.aerie_session_release(self.session_)

    def test_no_memory(self):
        """The n-th allocation fails, for every n, and nothing is lost."""
        libc = ctypes.CDLL(None)
        libc.aligned_alloc.restype, libc.aligned_alloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t, ctypes.c_size_t)
        libc.free.argtypes = (ctypes.c_void_p,)
        live, left = set(), 0

        def take(_user, size, alignment):
            nonlocal left
            left -= 1
            if left < 0:
                return None
            memory = libc.aligned_alloc(alignment, (size + alignment - 1) // alignment * alignment)
            live.add(memory)
            return memory

        def give(_user, memory):
            if memory:
                live.remove(memory)
                libc.free(memory)

        hooks = _native.aerie_alloc_fn(take), _native.aerie_free_fn(give)
        prompt = (ctypes.c_int32 * len(PROMPT))(*PROMPT)

        def attempt() -> int:
            runtime, model, session = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
            options = new(_native.aerie_runtime_options, threads=1, alloc=hooks[0], free=hooks[1])
            small = new(_native.aerie_model_options, kv_positions=1024)
            code = (self.core.aerie_runtime_create(ctypes.byref(options), ctypes.byref(runtime), None)
                    or self.core.aerie_model_open(runtime, os.fsencode(DEMO), ctypes.byref(small), ctypes.byref(model), None)
                    or self.core.aerie_session_create(model, None, ctypes.byref(session), None)
                    or self.core.aerie_session_append(session, prompt, len(PROMPT), None)
                    or self.core.aerie_session_step(session, None, ctypes.byref(new(_native.aerie_step_result)), None))
            self.core.aerie_session_release(session)
            self.core.aerie_model_release(model)
            self.core.aerie_runtime_release(runtime)
            return code

        for n in range(1000):
            left = n
            code = attempt()
            self.assertEqual(live, set(), n)
            if code == 0:
                break
            self.assertEqual(code, Code.OUT_OF_MEMORY, n)
        self.assertEqual(code, 0)
        self.assertGreater(n, 3)
