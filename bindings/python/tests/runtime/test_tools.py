"""Cost tables, conversion, inspection."""

import os
import tempfile
import threading
from pathlib import Path
from unittest import mock

import aerie
import backend
from aerie import Code, _library
from case import DEMO, HEAD, PROMPT, Case, ids, the_text


class Tools(Case):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def test_where_the_library_is(self):
        for place in "lib", "lib64", "lib/x86_64-linux-gnu":
            file = self.folder / place / place / "libaerie.so.1"
            file.parent.mkdir(parents=True)
            file.touch()
            with mock.patch.dict(os.environ, AERIE_DIR=str(self.folder / place)):
                self.assertEqual(list(_library._candidates("aerie")), [str(file)])

    def test_what_the_wheel_brings(self):
        names = {"libaerie.so.1", "libaerie-text.so.1", "aerie/libaerie-cuda.so", "aerie/drafters/ngram.so"}
        for name in names:
            file = self.folder / "lib64" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        with mock.patch.dict(os.environ, AERIE_DIR=str(self.folder)), mock.patch("shutil.which", return_value=None):
            self.assertEqual(set(backend._library_files(self.folder / "scratch")), {f"aerie/_lib/{name}" for name in names})
            (self.folder / "lib64/aerie/libaerie-cuda.so").unlink()
            self.assertEqual(len(backend._library_files(self.folder / "scratch")), 3)

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
        again = self.folder / "again.aerie"
        aerie.convert(out, again, dtype="stored")
        self.assertEqual(again.read_bytes(), out.read_bytes())
        aerie.convert(DEMO, again, dtype="q4_1", head_dtype="stored")
        dtypes = {tensor["name"]: tensor["dtype"] for tensor in aerie.inspect(again)["tensors"]}
        self.assertEqual((dtypes["embed"], dtypes["layers.0.mlp.down"]), ("bf16", "q4_1"))
        for wrong in ({"dtype": "q4_0"}, {"head_dtype": "int3"}):
            with self.assertRaisesRegex(ValueError, "dtype: .* is none of .*q4_1, mxfp4, stored"):
                aerie.convert(DEMO, again, **wrong)
        self.check_error(Code.NOT_FOUND, "/no/source", aerie.convert, "/no/source", self.folder / "x.aerie")
        with self.assertRaises(aerie.Cancelled):
            aerie.convert(DEMO, self.folder / "x.aerie", progress=lambda done, total: False)
        self.assertFalse((self.folder / "x.aerie").exists())
        self.check_error(Code.NOT_FOUND, "/no/package", aerie.inspect, "/no/package")
