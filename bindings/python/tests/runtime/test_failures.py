"""What goes wrong: drafters, plugins, files, callbacks."""

import copy
import sys
import tempfile
import threading

import aerie
from aerie import Code
from case import Case, DEMO, HEAD, PLUGINS, PROMPT, ids, the_text


class Failures(Case):
    def test_injected_failure(self):
        heard = []
        runtime = aerie.Runtime(log=lambda level, message: heard.append((level, message)))
        runtime.load_plugin(PLUGINS / "hostile.so")
        with aerie.Model(DEMO, runtime) as model, model.drafter(plugin="throw") as drafter:
            with model.session(drafter=drafter, temperature=0.8, seed=5, ignore_eos=True, tree="chain") as session:
                session.append(PROMPT)
                self.assertEqual(ids(session, 64), the_text(0.8, 5, 64))
                statistics = session.statistics()
        self.assertEqual(statistics.drafter_failures, 3)
        self.assertTrue(statistics.quarantined)
        self.assertTrue(heard)

    def test_foreign_thread_callback(self):
        heard = []
        runtime = aerie.Runtime(log=lambda level, message: heard.append((threading.get_ident(), message)))
        runtime.load_plugin(PLUGINS / "foreign_log.so")
        with aerie.Model(DEMO, runtime) as model:
            model.drafter(plugin="foreign_log").close()
        told = [thread for thread, message in heard if "from a foreign thread" in message]
        self.assertTrue(told)
        self.assertNotIn(threading.get_ident(), told)

    def test_numbers_that_do_not_fit(self):
        """ctypes would take them modulo 2**32 or 2**64: as another token, as no limit, as a text of no length."""
        with aerie.Model(DEMO) as model, model.session() as session:
            session.append(PROMPT)
            for wrong in (lambda: session.append([2**40]), lambda: session.rewind(2**70), lambda: session.step(budget_us=2**63),
                          lambda: session.step(max_tokens=2**32), lambda: session.fork(stream=2**32), lambda: model.session(seed=-1),
                          lambda: model.session(max_context=2**40), lambda: aerie.Model(DEMO, kv_positions=2**40),
                          lambda: model.tokenizer.decode([2**32 + 5]), lambda: model.features(PROMPT, taps=(2**32,))):
                self.assertRaises(OverflowError, wrong)
            self.assertEqual(session.tokens(), list(PROMPT))

    def test_objects_of_another_kind(self):
        """The library would believe them."""
        with aerie.Model(DEMO) as model, model.session() as session, aerie.Runtime() as runtime, model.batch() as batch, \
                model.drafter(plugin="ngram") as drafter, aerie.Profile() as profile:
            for wrong in (lambda: aerie.Model(DEMO, model), lambda: aerie.Session(runtime), lambda: aerie.Batch(runtime),
                          lambda: aerie.Drafter(runtime, plugin="ngram"), lambda: aerie.Session.restored(runtime, b"x"),
                          lambda: model.session(drafter="ngram"), lambda: model.session(drafter=[drafter, "ngram"]),
                          lambda: model.session(sampling={}), lambda: model.session(tree=5), lambda: session.set_tree(None),
                          lambda: session.set_sampling(0.7), lambda: session.append(b"It was"), lambda: model.restore(5),
                          lambda: batch.add(model), lambda: batch.remove(drafter), lambda: profile.measure(drafter),
                          lambda: profile.measure(model, [session]), lambda: profile.attach(runtime), lambda: aerie.Decoder(model),
                          lambda: aerie.Runtime(log=5), lambda: aerie.Model(DEMO, kv_full=5), lambda: aerie.Model(DEMO, progress=5), lambda: aerie.convert(DEMO, "x", log=5)):
                self.assertRaises(TypeError, wrong)
            self.assertEqual(session.tokens(), [])

    def test_copies(self):
        """Two objects would give back one."""
        with aerie.Model(DEMO) as model, model.session() as session:
            for each in model, session, model.tokenizer:
                self.assertRaises(TypeError, copy.copy, each)
                self.assertRaises(TypeError, copy.deepcopy, each)

    def test_less_than_no_tokens(self):
        with aerie.Model(DEMO) as model, model.session() as session:
            session.append(PROMPT)
            self.assertRaises(ValueError, lambda: list(session.steps(-1)))
            self.assertRaises(ValueError, lambda: list(session.generate(max_tokens=-1)))

    def test_kv_full_that_fails(self):
        class Mine(Exception):
            pass

        asked = []

        def fails(positions):
            asked.append(positions)
            raise Mine

        with aerie.Model(DEMO, self.runtime, kv_positions=640, kv_full=fails) as model, model.session() as held, model.session() as session:
            held.append(PROMPT * 25)
            held.step()
            session.append(PROMPT * 45)
            self.assertRaises(Mine, session.step)
            self.assertEqual(len(asked), 1)
            held.close()
            self.assertEqual(session.step().state, aerie.State.TOKENS)  # it goes on where there is room

    def test_texts_with_a_nul(self):
        with aerie.Model(DEMO) as model, model.session() as session:
            for wrong in (lambda: aerie.Model(f"{DEMO}\0"), lambda: session.set_stop_strings(["a\0b"]), lambda: model.blob("tokenizer\0"),
                          lambda: aerie.Runtime(device="cpu\0"), lambda: session.save_file("x\0"), lambda: aerie.inspect(f"{DEMO}\0")):
                self.assertRaises(ValueError, wrong)

    def test_one_stop_string(self):
        with aerie.Model(DEMO) as model:
            text = "".join(model.session().generate("It was", max_tokens=40))
            self.assertEqual("".join(model.session().generate("It was", stop=text[9:12], max_tokens=40)), text[:text.index(text[9:12])])

    def test_callback_that_fails(self):
        class Mine(Exception):
            pass

        def fails(*_):
            raise Mine("by the callback")

        unraisable = []
        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = lambda raised: unraisable.append(raised.exc_type)
        runtime = aerie.Runtime(log=fails)
        runtime.load_plugin(PLUGINS / "hostile.so")
        with self.assertRaises(Mine):
            aerie.Model(DEMO, runtime, progress=fails)
        with aerie.Model(DEMO, runtime) as model, model.drafter(plugin="throw") as drafter:
            with model.session(drafter=drafter, ignore_eos=True, tree="chain") as session:
                session.append(PROMPT)
                self.assertEqual(ids(session, 16), the_text(0.0, 5, 64)[:16])
        self.assertIn(Mine, unraisable)

    def test_load_progress(self):
        calls = []
        aerie.Model(DEMO, self.runtime, progress=lambda done, total: calls.append((done, total))).close()
        self.assertEqual(calls, sorted(calls))
        self.assertEqual(*calls[-1])
        self.assertGreater(calls[-1][1], 0)

    def test_load_cancel(self):
        with self.assertRaises(aerie.Cancelled):
            aerie.Model(DEMO, self.runtime, progress=lambda done, total: False)
        aerie.Model(DEMO, self.runtime).close()

    def test_drafter_progress(self):
        calls = []
        self.model.drafter(HEAD, progress=lambda *at: calls.append(at)).close()
        self.assertEqual(calls, sorted(calls))
        self.assertEqual(*calls[-1])
        self.assertGreater(calls[-1][1], 0)
        with self.assertRaises(aerie.Cancelled):
            self.model.drafter(HEAD, progress=lambda done, total: False)
        self.assertEqual(ids(self.session(), 16), the_text(0.0, 5, 64)[:16])

    def test_bad_plugin(self):
        with tempfile.NamedTemporaryFile(suffix=".so") as text:
            text.write(b"not a library")
            text.flush()
            self.check_error(Code.PLUGIN, text.name, self.runtime.load_plugin, text.name)
        self.check_error(Code.INVALID_ARGUMENT, "absolute", self.runtime.load_plugin, "hostile.so")
        self.check_error(Code.NOT_FOUND, "/no/such.so", self.runtime.load_plugin, "/no/such.so")
        self.check_error(Code.PLUGIN, "aerie_drafter_plugin_entry", self.runtime.load_plugin, PLUGINS / "no_entry.so")
        self.check_error(Code.PLUGIN, "ABI", self.runtime.load_plugin, PLUGINS / "wrong_major.so")
        self.check_error(Code.PLUGIN, "ABI", self.runtime.load_plugin, PLUGINS / "too_new.so")
        self.runtime.load_plugin(PLUGINS / "hostile.so")
        with self.assertRaises(aerie.Error):
            self.model.drafter(plugin="open_fails")
        self.assertIn("ngram", [plugin.id for plugin in self.runtime.plugins()])
        self.assertEqual(ids(self.session(), 8), the_text(0.0, 5, 64)[:8])

    def test_errors(self):
        self.check_error(Code.NOT_FOUND, "/no/model.aerie", aerie.Model, "/no/model.aerie", self.runtime)
        with tempfile.NamedTemporaryFile(suffix=".aerie") as cut:
            cut.write(DEMO.read_bytes()[:100_000])
            cut.flush()
            self.check_error(Code.BAD_FORMAT, cut.name, aerie.Model, cut.name, self.runtime)
        self.check_error(Code.MISMATCH, str(HEAD), aerie.Model, HEAD, self.runtime)
        with self.assertRaises(ValueError):
            self.model.session(tree="bush")
