"""Cost tables, conversion, inspection."""

import tempfile
import threading
from pathlib import Path

import aerie
from aerie import Code
from case import DEMO, HEAD, PROMPT, Case, ids, the_text


class Tools(Case):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def test_profile(self):
        calls = []
        with self.model.drafter(HEAD) as head, aerie.Profile() as profile:
            profile.measure(self.model, [head], quick=True, contexts=[64], progress=lambda *at: calls.append(at))
            self.assertTrue(calls)
            self.assertLessEqual(profile.target_ms(1, context=64), profile.target_ms(32, context=64))
            profile.save(self.folder / "costs")
            with aerie.Profile(self.folder / "costs") as again:
                self.assertEqual(again.tables(), profile.tables())
                again.attach(self.model)
                again.attach(head)
            session = self.session(drafter=head, tree="auto")
            self.assertEqual(ids(session, 32), the_text(0.0, 5, 64)[:32])
            with self.assertRaises(aerie.Cancelled):
                profile.measure(self.model, quick=True, progress=lambda done, total: False)
            threading.Timer(0.05, profile.cancel).start()
            with self.assertRaises(aerie.Cancelled):
                profile.measure(self.model)
        (self.folder / "costs").write_text("{")
        self.check_error(Code.BAD_FORMAT, "costs", aerie.Profile, self.folder / "costs")

    def test_convert_and_inspect(self):
        calls, out = [], self.folder / "int8.aerie"
        aerie.convert(DEMO, out, dtype="int8", progress=lambda *at: calls.append(at))
        self.assertEqual(*calls[-1])
        self.assertEqual(aerie.inspect(out)["fingerprint"], aerie.inspect(DEMO)["fingerprint"])
        self.assertLess(out.stat().st_size, DEMO.stat().st_size)
        with aerie.Model(out, self.runtime) as model, model.session() as session:
            session.append(PROMPT)
            self.assertEqual(len(ids(session, 8)), 8)
        self.check_error(Code.NOT_FOUND, "/no/source", aerie.convert, "/no/source", self.folder / "x.aerie")
        with self.assertRaises(aerie.Cancelled):
            aerie.convert(DEMO, self.folder / "x.aerie", progress=lambda done, total: False)
        self.assertFalse((self.folder / "x.aerie").exists())
        self.check_error(Code.NOT_FOUND, "/no/package", aerie.inspect, "/no/package")
