"""Training data of dialogues (no model, no data): what a target would be asked to write, and how trainers read it."""

import contextlib
import itertools
import json
import tempfile
import types
import unittest
from pathlib import Path

import aerie
import numpy as np
import torch

from aerie.train import chat, evaluate, precision, stream

SYSTEM, USER, ASSISTANT, END, WORD = 1, 2, 3, 9, 50


class Session:
    """Writes words; every turn ends after `turn` of them."""

    def __init__(self, turn: int, options: dict):
        self.turn, self.text, self.drawn = turn, [], [(options["temperature"], 0)]
        self.state, self.closed = aerie.State.TOKENS, False

    def append(self, tokens):
        self.text += tokens
        self.left, self.state = self.turn, aerie.State.TOKENS

    def step(self):
        self.left -= 1
        self.text.append(END if self.left < 0 else WORD)
        self.state = aerie.State.DONE if self.left < 0 else aerie.State.TOKENS

    length = property(lambda self: len(self.text))
    tokens = lambda self: list(self.text)
    result = lambda self: types.SimpleNamespace(state=self.state)
    set_sampling = lambda self, sampling: self.drawn.append((sampling.temperature, self.length))

    def close(self):
        self.closed = True


class Model:
    tokenizer = types.SimpleNamespace(encode=lambda text, **_: [])  # no opening

    def __init__(self, turn: int):
        self.turn, self.sessions = turn, []

    def session(self, **options):
        self.sessions.append(Session(self.turn, options))
        return self.sessions[-1]

    @contextlib.contextmanager
    def batch(self):
        members = []
        yield types.SimpleNamespace(add=members.append, remove=members.remove, step=lambda: [s.step() for s in members])


def dialogues(model: Model, length: int, count: int) -> list[list[int]]:
    template = chat.Template([SYSTEM], [USER], [ASSISTANT], END)
    texts = chat.write(model, template, length, [0.0, 0.7], itertools.count(5), together=3)
    return list(itertools.islice(texts, count))


class Dialogues(unittest.TestCase):
    def test_turns_alternate_until_the_text_has_its_length(self):
        model = Model(turn=2)
        texts = dialogues(model, 11, 4)
        self.assertEqual(texts, [[SYSTEM, USER, WORD, WORD, END, ASSISTANT, WORD, WORD, END, USER, WORD]] * 4)
        self.assertEqual(model.sessions[1].drawn[:3], [(1.0, 0), (0.7, 6), (1.0, 10)])  # answers at the dialogue's temperature
        self.assertTrue(model.sessions[0].closed)

    def test_a_question_without_end_is_ended(self):
        text = dialogues(Model(turn=10_000), 120, 1)[0]
        self.assertEqual(text.index(END), 2 + chat.Dialogue.QUESTION)
        self.assertEqual(text[text.index(END) + 1:], [ASSISTANT] + [WORD] * (120 - 4 - chat.Dialogue.QUESTION))


class Streams(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.data = Path(folder.name)
        for part, texts in (("train", 6), ("held", 4)):
            np.repeat(np.arange(texts, dtype=np.uint16), 7).tofile(self.data / f"chat.{part}.u16")
        (self.data / "chat.json").write_text(json.dumps({"length": 7}))

    def test_dialogues_are_rows_as_they_are(self):
        self.assertEqual(stream.kinds(self.data), ("chat",))
        rows = stream.mixture(self.data, 0.3, 7, seed=1, own={"generated": 0.0}).batch(6)
        self.assertEqual(sorted(rows[:, 0].tolist()), list(range(6)))
        self.assertTrue(torch.equal(rows, rows[:, :1].expand(6, 7)))
        with self.assertRaisesRegex(ValueError, "dialogues of 7 tokens"):
            stream.mixture(self.data, 0.3, 9, seed=1)

    def test_held_out_prompts_are_beginnings(self):
        self.assertEqual(evaluate.prompts(self.data, "chat", 2, 3).tolist(), [[0, 0, 0], [2, 2, 2]])
        with self.assertRaisesRegex(ValueError, "rows of 8 tokens"):
            stream.held_rows(self.data, "chat", 2, 8)


class Precision(unittest.TestCase):
    def test_bfloat16_is_used_where_the_processor_has_it(self):
        with tempfile.TemporaryDirectory() as folder:
            cpuinfo = Path(folder) / "cpuinfo"
            for line, expected in (("flags\t\t: fpu avx2 fma", False), ("flags\t\t: avx512_bf16 fma", True), ("Features\t: fp asimd bf16", True)):
                cpuinfo.write_text(f"processor\t: 0\n{line}\n")
                self.assertEqual(precision.multiplies_bfloat16(cpuinfo), expected)


if __name__ == "__main__":
    unittest.main()
