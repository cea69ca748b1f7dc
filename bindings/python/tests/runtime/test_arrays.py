"""Features and logits, written where the caller wants them."""

import ctypes

from aerie import Code
from case import Case, PROMPT, the_text


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

    def test_numpy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("no numpy")
        features = self.model.features(numpy.array(PROMPT, numpy.int32), taps=(1, -1))
        self.assertIsInstance(features, numpy.ndarray)
        self.assertEqual(features.dtype, numpy.float32)
        wanted = numpy.empty_like(features)
        self.model.features(PROMPT, taps=(1, -1), out=wanted)
        self.assertTrue((features == wanted).all())
