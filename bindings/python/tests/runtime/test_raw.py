"""Struct sizes of other versions of the header, and allocators that fail, by the declarations of the C functions."""

import ctypes
import os

import aerie
from aerie import Code, _native
from aerie._library import library, new
from case import Case, DEMO, PLUGINS, PROMPT, ids, the_text


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

    def said_with(self, n: int, **options) -> tuple[int, list[int]]:
        """The first code that is not OK, and n tokens, of a runtime with these options."""
        runtime, model, session = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        prompt = (ctypes.c_int32 * len(PROMPT))(*PROMPT)
        sampling = new(_native.aerie_sampling, temperature=0.8, seed=5)
        settings = new(_native.aerie_session_options, ignore_eos=1, sampling=ctypes.pointer(sampling))
        options = new(_native.aerie_runtime_options, **options)
        small = new(_native.aerie_model_options, kv_positions=1024)
        code = (self.core.aerie_runtime_create(ctypes.byref(options), ctypes.byref(runtime), None)
                or self.core.aerie_model_open(runtime, os.fsencode(DEMO), ctypes.byref(small), ctypes.byref(model), None)
                or self.core.aerie_session_create(model, ctypes.byref(settings), ctypes.byref(session), None)
                or self.core.aerie_session_append(session, prompt, len(PROMPT), None))
        self.core.aerie_runtime_release(runtime)
        self.core.aerie_model_release(model)
        step, result, said = new(_native.aerie_step_options), new(_native.aerie_step_result), []
        while not code and len(said) < n:
            step.max_tokens = n - len(said)
            code = self.core.aerie_session_step(session, ctypes.byref(step), ctypes.byref(result), None)
            said += [result.tokens[i].id for i in range(result.n_tokens)] if not code else []
        self.core.aerie_session_release(session)
        return code, said

    def test_no_memory(self):
        """The n-th allocation fails, for every n, and nothing is lost."""
        memory = Memory()
        for n in range(1000):
            memory.left = n
            code, _ = self.said_with(1, threads=1, alloc=memory.alloc, free=memory.free)
            self.assertEqual(memory.live, set(), n)
            if code == 0:
                break
            self.assertEqual(code, Code.OUT_OF_MEMORY, n)
        self.assertEqual(code, 0)
        self.assertGreater(n, 3)

    def test_own_allocator_and_jobs(self):
        memory, rounds = Memory(), 0
        memory.left = 1 << 30
        task = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)

        def run(_user, function, context, n):
            nonlocal rounds
            rounds += 1
            for i in reversed(range(n)):
                task(ctypes.cast(function, ctypes.c_void_p).value)(context, i)

        jobs = _native.aerie_parallel_for_fn(run)
        code, said = self.said_with(16, threads=2, alloc=memory.alloc, free=memory.free, parallel_for=jobs)
        self.assertEqual((code, said), (0, the_text(0.8, 5, 64)[:16]))
        self.assertEqual(memory.live, set())
        self.assertGreater(rounds, 20)
        self.assertLess(memory.left, 1 << 30)

    def test_linked_plugin(self):
        def add(name):
            entry = ctypes.CDLL(str(PLUGINS / f"{name}.so")).aerie_drafter_plugin_entry
            with runtime._use() as handle:
                function = ctypes.cast(entry, _native.aerie_plugin_entry_fn)
                return self.core.aerie_runtime_add_plugin(handle, b"linked", function, ctypes.byref(self.err))

        runtime = aerie.Runtime(drafters=False)
        self.assertEqual(add("foreign_log"), 0, self.err.message)
        self.assertEqual([plugin.id for plugin in runtime.plugins()], ["foreign_log"])
        with aerie.Model(DEMO, runtime) as model, model.drafter(plugin="foreign_log") as drafter:
            with model.session(drafter=drafter, ignore_eos=True, temperature=0.8, seed=5) as session:
                session.append(PROMPT)
                self.assertEqual(ids(session, 16), the_text(0.8, 5, 64)[:16])
        self.assertEqual(add("wrong_major"), Code.PLUGIN)
        self.assertIn(b"linked", self.err.message)


class Memory:
    """An allocator that knows what is out, and gives no more than `left` pieces."""

    def __init__(self):
        libc = ctypes.CDLL(None)
        libc.aligned_alloc.restype, libc.aligned_alloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t, ctypes.c_size_t)
        libc.free.argtypes = (ctypes.c_void_p,)
        self.live, self.left = set(), 0

        def take(_user, size, alignment):
            self.left -= 1
            if self.left < 0:
                return None
            memory = libc.aligned_alloc(alignment, (size + alignment - 1) // alignment * alignment)
            self.live.add(memory)
            return memory

        def give(_user, memory):
            if memory:
                self.live.remove(memory)
                libc.free(memory)

        self.alloc, self.free = _native.aerie_alloc_fn(take), _native.aerie_free_fn(give)
