"""What the cases of bindings/conformance.md share. AERIE_DIR is a build tree of the `tests` preset, AERIE_MODELS
samples/models."""

import functools
import os
import subprocess
import unittest
from pathlib import Path

import aerie
from aerie import Code

DIR = Path(os.environ["AERIE_DIR"]).resolve()
MODELS = Path(os.environ["AERIE_MODELS"]).resolve()
DEMO, HEAD = MODELS / "demo.aerie", MODELS / "demo-eagle.aerie"
PLUGINS = DIR / "lib" / "test-plugins"
PROMPT = [260, 513, 1021, 88, 300, 47, 911, 1500, 12, 345]
LAYOUT = Path(__file__).resolve().parents[4] / "tests" / "abi" / "layout.txt"


@functools.cache
def the_text(temperature: float, seed: int, n: int) -> list[int]:
    """What the C API says."""
    command = [DIR / "bin" / "conformance_tokens", DEMO, str(temperature), str(seed), str(n)]
    return [int(t) for t in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()]


def ids(session: aerie.Session, n: int) -> list[int]:
    return [token.id for token in session.stream(n)]


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runtime = aerie.Runtime()
        cls.model = aerie.Model(DEMO, cls.runtime)

    def session(self, **options) -> aerie.Session:
        session = self.model.session(**{"ignore_eos": True, "tree": "chain", **options})
        self.addCleanup(session.close)
        session.append(PROMPT)
        return session

    def check_error(self, code: Code, text: str, function, *arguments, **options):
        with self.assertRaises(aerie.Error) as raised:
            function(*arguments, **options)
        self.assertEqual(raised.exception.code, code, raised.exception)
        self.assertIn(text, str(raised.exception))
