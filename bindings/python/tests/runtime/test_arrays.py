"""Features and logits, written where the caller wants them."""

import array
import ctypes
import gc
import tracemalloc

import aerie
from aerie import Code
from case import Case, DEMO, PROMPT, the_text


class Arrays(Case):
    def test_logits_are_those_of_the_text(self):
        text = PROMPT + the_text(0.0, 5, 64)
        logits = self.model.logits(text)
        rows = memoryview(logits)
        self.assertEqual(rows.shape, (len(text), self.model.info.vocab_size))
        for i in range(len(PROMPT) - 1, len(text) - 1):
            row = [rows[i, token] for token in range(rows.shape[1])]
            self.assertEqual(row.index(max(row)), text[i + 1])

    def test_features_into_given_memory(self):
        hidden = self.model.info.hidden_size
        memory = (ctypes.c_float * (len(PROMPT) * 2 * hidden))()
        self.assertIs(self.model.features(PROMPT, taps=(0, -1), out=memory), memory)
        alone = memoryview(self.model.features(PROMPT))
        for row in range(len(PROMPT)):
            self.assertEqual(memory[(2 * row + 1) * hidden:(2 * row + 2) * hidden], alone[row:row + 1].tolist()[0]
                             if alone.ndim == 1 else [alone[row, column] for column in range(hidden)])
        with self.assertRaises(ValueError):
            self.model.features(PROMPT, taps=(0, 1, -1), out=memory)
        with self.assertRaises(ValueError):
            self.model.features(PROMPT, out=bytes(4 * len(PROMPT) * hidden))
        self.check_error(Code.INVALID_ARGUMENT, "tap", self.model.features, PROMPT, taps=(99,))

    def test_of_no_tokens(self):
        for nothing in self.model.features([]), self.model.logits([]):
            self.assertEqual(memoryview(nothing).nbytes, 0)

    def test_nothing_is_copied(self):
        """No second array of that size is ever there; of one that is given, none at all."""
        self.model.logits(PROMPT)
        tokens, size = PROMPT * 20, 4 * len(PROMPT) * 20 * self.model.info.vocab_size
        out = memoryview(bytearray(size)).cast("f")

        def peak(**options) -> int:
            tracemalloc.start()
            self.model.logits(tokens, **options)
            try:
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

        self.assertLess(peak(out=out), size // 20)
        self.assertLess(peak(), size + size // 20)

    def test_memory_stays_while_it_is_written(self):
        memory, tried = array.array("f", bytes(4 * len(PROMPT) * self.model.info.hidden_size)), []

        def grow(done, total):
            with self.assertRaises(BufferError):
                memory.append(0.0)  # would move it
            tried.append(done)

        self.model.features(PROMPT, out=memory, progress=grow)
        self.assertTrue(tried)
        memory.append(0.0)

    def test_arrays_outlive_the_model(self):
        with aerie.Model(DEMO, self.runtime) as model:
            logits = memoryview(model.logits(PROMPT))
        del model
        gc.collect()
        self.assertEqual(logits.tolist(), memoryview(self.model.logits(PROMPT)).tolist())

    def test_numpy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("no numpy")
        features = self.model.features(numpy.array(PROMPT, numpy.int32), taps=(1, -1))
        self.assertIsInstance(features, numpy.ndarray)
        self.assertEqual(features.dtype, numpy.float32)
        self.assertTrue(features.flags.owndata and features.flags.c_contiguous)
        half = numpy.zeros((2 * len(PROMPT), features.shape[1]), numpy.float32)
        self.assertIs(self.model.features(PROMPT, taps=(1, -1), out=half[:len(PROMPT)]).base, half)
        self.assertTrue((half[:len(PROMPT)] == features).all() and not half[len(PROMPT):].any())
        for wrong in numpy.empty(features.shape), features[::2], features.T:
            with self.assertRaises(ValueError):
                self.model.features(PROMPT, taps=(1, -1), out=wrong)
        wanted = numpy.empty_like(features)
        self.model.features(PROMPT, taps=(1, -1), out=wanted)
        self.assertTrue((features == wanted).all())
