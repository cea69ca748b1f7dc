"""Text and what a session says of itself."""

import tempfile
from unittest import mock

import aerie
from aerie import Code, _native
from case import DEMO, Case, HEAD, PROMPT, ids, the_text


class Text(Case):
    def test_emoji_by_bytes(self):
        text, tokenizer = "a😀é✓b", self.model.tokenizer
        tokens = tokenizer.encode(text, bos=False)
        self.assertGreater(len(tokens), len(text))
        with aerie.Decoder(tokenizer) as decoder:
            pieces = [decoder.push(token) for token in tokens] + [decoder.finish()]
            self.assertEqual("".join(pieces), text)
            for token in tokens[:2]:
                cut = decoder.push(token)
            self.assertEqual(cut, "")
            self.assertEqual(set(decoder.finish()), {"\ufffd"})
        self.assertEqual(tokenizer.decode(tokens), text)

    def test_stop_string(self):
        tokenizer, tokens = self.model.tokenizer, the_text(0.0, 5, 64)
        text = tokenizer.decode(PROMPT + tokens)[len(tokenizer.decode(PROMPT)):]
        stop = text[len(text) // 2:len(text) // 2 + 6]
        session = self.session()
        session.set_stop_strings([stop])
        steps = list(session.steps(64))
        said = tokenizer.decode(session.tokens())[len(tokenizer.decode(PROMPT)):]
        self.assertEqual(steps[-1].finish, aerie.Finish.STOP_STRING)
        self.assertEqual(said.encode()[:len(said.encode()) - steps[-1].stop_bytes].decode(), text[:text.index(stop)])
        self.assertEqual("".join(self.session().generate(max_tokens=64, stop=[stop])), text[:text.index(stop)])
        self.assertEqual("".join(self.session().generate(max_tokens=64, stop=["never said"])), text)

    def test_stop_string_that_began_before(self):
        """In text that an earlier `generate` has handed out: what comes after it is cut, and no more."""
        text = "".join(self.session().generate(max_tokens=64))
        for n in range(8, 24):
            session = self.session()
            before = "".join(session.generate(max_tokens=n))
            stop = text[len(before) - 4:len(before) + 4]
            if text.index(stop) == len(before) - 4:
                self.assertEqual("".join(session.generate(max_tokens=64, stop=[stop])), "", repr(stop))
                return
        self.fail("the text repeats itself all along")

    def test_stop_string_before_half_a_character(self):
        """A token may bring the end of the stop string and half a character: the decoder then has U+FFFD to say, more bytes
        than stop_bytes counts. No token of the demo model is one."""
        class Half(aerie.Decoder):
            def finish(self):
                return super().finish() + "\ufffd"

        text = "".join(self.session().generate(max_tokens=64))
        stop = text[len(text) // 2:len(text) // 2 + 6]
        with mock.patch("aerie.session.Decoder", Half):
            self.assertEqual("".join(self.session().generate(max_tokens=64, stop=[stop])), text[:text.index(stop)])

    def test_stop_strings_stay_set(self):
        text = "".join(self.session().generate(max_tokens=64))
        stop = text[len(text) // 2:len(text) // 2 + 6]
        until = text[:text.index(stop)]
        session = self.session()
        session.set_stop_strings(stop)
        self.assertEqual("".join(session.fork().generate(max_tokens=64)), until)
        self.assertEqual("".join(session.generate(max_tokens=64)), until)
        session = self.session()
        self.assertEqual("".join(session.generate(max_tokens=1, stop=[stop])), "".join(self.session().generate(max_tokens=1)))
        self.assertEqual(list(session.steps(64))[-1].finish, aerie.Finish.STOP_STRING)
        session = self.session()
        session.set_stop_strings(stop)
        self.assertEqual("".join(session.generate(max_tokens=64, stop=[])), text)

    def test_rewind(self):
        session = self.session()
        ids(session, 32)
        session.rewind(len(PROMPT) + 22)
        ids(session, 32)
        self.assertEqual(session.tokens(), PROMPT + the_text(0.0, 5, 64)[:54])

    def test_fork(self):
        session = self.session()
        ids(session, 20)
        twin = session.fork()
        self.addCleanup(twin.close)
        self.assertEqual(ids(twin, 44), the_text(0.0, 5, 64)[20:])
        session.close()
        again = twin.fork(stream=3)
        twin.close()
        self.assertEqual(again.tokens(), PROMPT + the_text(0.0, 5, 64))
        again.close()

    def test_fork_has_noise_of_its_own(self):
        session = self.session(temperature=1.0, seed=5)
        twin = session.fork()
        self.assertNotEqual(ids(twin, 32), ids(session, 32))
        twin.close()

    def test_kept_prefix(self):
        def reused(model):
            for _ in range(2):
                with model.session(tree="chain") as session:
                    session.append(PROMPT * 40)
                    session.step()
                    count = session.statistics().reused_tokens
            return count

        self.assertGreater(reused(self.model), 100)
        with aerie.Model(DEMO, self.runtime, keep_prefixes=False) as model:
            self.assertEqual(reused(model), 0)

    def test_kv_full(self):
        asked = []

        def full(positions):
            asked.append(positions)
            held.close()
            return True

        with aerie.Model(DEMO, self.runtime, kv_positions=640, keep_prefixes=False, kv_full=full) as model:
            held = model.session(tree="chain")
            held.append(PROMPT * 25)
            held.step()
            with model.session(tree="chain") as session:
                session.append(PROMPT * 30)
                session.step()
        self.assertEqual(len(asked), 1)
        self.assertGreater(asked[0], 0)

    def test_kv_full_drops_a_session(self):
        """Nobody refers to it any more: it is closed at once, not when the step that wants its room has ended."""
        held = []

        def full(positions):
            return bool(held) and not held.clear()

        with aerie.Model(DEMO, self.runtime, kv_positions=640, keep_prefixes=False, kv_full=full) as model:
            held.append(model.session(tree="chain"))
            held[0].append(PROMPT * 25)
            held[0].step()
            with model.session(tree="chain") as session:
                session.append(PROMPT * 30)
                self.assertEqual(session.step().state, aerie.State.TOKENS)

    def test_save_restore(self):
        for file in False, True:
            session = self.session()
            ids(session, 20)
            with tempfile.NamedTemporaryFile() as saved:
                if file:
                    session.save_file(saved.name)
                else:
                    data = session.save()
                session.close()
                again = (self.model.restore_file(saved.name, ignore_eos=True) if file else
                         self.model.restore(data, ignore_eos=True))
            self.assertEqual(ids(again, 44), the_text(0.0, 5, 64)[20:])
            self.assertEqual(again.statistics().prefill_tokens, 0)
            again.close()
        data[len(data) // 2] ^= 1
        self.check_error(Code.BAD_FORMAT, "", self.model.restore, data)

    def test_statistics(self):
        with self.model.drafter(HEAD) as head:
            session = self.session(drafter=head)
            ids(session, 64)
            statistics = session.statistics()
        self.assertEqual(statistics.emitted, 64)
        self.assertLessEqual(statistics.cycles, statistics.emitted)
        self.assertGreater(statistics.tau, 1)
        names = {field for field, *_ in _native.aerie_statistics._fields_} - {"struct_size"}
        names = {name for name in names if not name.startswith("reserved")}
        self.assertLessEqual(names, set(vars(statistics)), "aerie.Statistics lacks a field")

    def test_several_drafters(self):
        with self.model.drafter(HEAD) as head, self.model.drafter(plugin="ngram") as ngram:
            session = self.session(drafter=[head, ngram], tree="auto", temperature=0.8, seed=5)
            self.assertEqual(ids(session, 64), the_text(0.8, 5, 64))
            statistics = session.statistics()
            self.assertEqual(sum(statistics.chosen_cycles) + statistics.plain_cycles, statistics.cycles)
            session.close()

    def test_stream(self):
        session = self.session(temperature=0.8, seed=5)
        self.assertEqual([token.id for token in session.stream(64)], the_text(0.8, 5, 64))
        session = self.session(temperature=0.8, seed=5)
        for token in session.stream(64):
            if len(session.tokens()) > len(PROMPT) + 10:
                break
        done = len(session.tokens()) - len(PROMPT)
        self.assertEqual(session.tokens()[len(PROMPT):] + ids(session, 64 - done), the_text(0.8, 5, 64))
