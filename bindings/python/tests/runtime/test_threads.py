"""Several sessions, threads and batches; cancelling."""

import threading
from concurrent.futures import ThreadPoolExecutor

import aerie
from aerie import Code
from case import Case, HEAD, PROMPT, ids, the_text


class Threads(Case):
    def test_two_sessions(self):
        texts = {}

        def run(seed):
            with self.model.session(temperature=0.8, seed=seed, ignore_eos=True) as session:
                session.append(PROMPT)
                texts[seed] = ids(session, 64)

        threads = [threading.Thread(target=run, args=(seed,)) for seed in (5, 6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(texts, {seed: the_text(0.8, seed, 64) for seed in (5, 6)})

    def test_longest_budget(self):
        with self.model.session() as session:
            session.append(PROMPT)
            self.assertEqual(session.step(budget_us=2**63 - 1).state, aerie.State.TOKENS)

    def test_cancel_in_prefill(self):
        prompt = PROMPT[::-1] * 40  # no other text begins so: nothing of it is kept

        def said(cancelled):
            with self.model.session(ignore_eos=True) as session:
                session.append(prompt)
                if cancelled:
                    self.assertEqual(session.step(budget_us=1).state, aerie.State.PENDING)
                    self.assertEqual(session.statistics().prefill_tokens // 400, 0)
                    thread = threading.Thread(target=session.cancel)
                    thread.start()
                    thread.join()
                    with self.assertRaises(aerie.Cancelled):
                        session.step()
                return ids(session, 16)

        self.assertEqual(said(True), said(False))

    def test_cancel_while_stepping(self):
        session = self.session()
        timer = threading.Timer(0.2, session.cancel)
        timer.start()
        with self.assertRaises(aerie.Cancelled):
            while True:
                session.step()
                if session.length > 400:
                    session.rewind(len(PROMPT))
        timer.join()
        session.rewind(len(PROMPT))
        self.assertEqual(ids(session, 16), the_text(0.0, 5, 64)[:16])

    def test_late_cancel(self):
        session = self.session(temperature=0.8, seed=5)
        with self.model.batch() as batch:
            for canceller, step in (session, session.step), (batch, batch.step):
                canceller.cancel()
                canceller.clear_cancel()
                step(max_tokens=1)
                canceller.cancel()
                with self.assertRaises(aerie.Cancelled):
                    step(max_tokens=1)
                if canceller is session:
                    batch.add(session)
            batch.remove(session)
        done = session.length - len(PROMPT)
        ids(session, 16 - done)
        self.assertEqual(session.tokens()[len(PROMPT):], the_text(0.8, 5, 16))

    def test_busy(self):
        """A second thread gets an error, not a race."""
        session, codes = self.session(), []
        session.append((PROMPT * 40)[:400])

        def step():
            try:
                session.step()
            except aerie.Error as e:
                codes.append(e.code)

        for _ in range(400):
            threads = [threading.Thread(target=step) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if len(codes) > 20:
                break
        self.assertEqual(set(codes), {Code.BUSY})

    def from_threads(self, call):
        """What `call` gave to several threads at once; where it told one that the object is busy, nothing."""
        def run(_):
            results = []
            for _ in range(400):
                try:
                    results.append(call())
                except aerie.Error as e:
                    self.assertEqual(e.code, Code.BUSY)
            return results

        with ThreadPoolExecutor(4) as threads:
            results = [result for some in threads.map(run, range(4)) for result in some]
        self.assertGreater(len(results), 0)
        return results

    def test_what_is_lent_is_whole(self):
        """A thread has copied what the library lends before another one's call takes it back."""
        word = max(range(self.model.tokenizer.vocab_size), key=lambda token: len(self.model.tokenizer.decode([token])))
        with aerie.Decoder(self.model.tokenizer) as decoder:
            texts = self.from_threads(lambda: decoder.push(word))
            self.assertEqual(set(texts), {self.model.tokenizer.decode([word])})
        with aerie.Profile() as profile:
            profile.measure(self.model, quick=True, contexts=[8])
            tables = profile.tables()
            self.assertTrue(all(one == tables for one in self.from_threads(profile.tables)))
        session = self.session(temperature=1.0, seed=7)
        steps = self.from_threads(lambda: session.step(max_tokens=1))
        said = [token.id for step in steps for token in step.tokens]
        self.assertEqual(sorted(said), sorted(session.tokens()[len(PROMPT):]))

    def test_batch(self):
        with self.model.drafter(HEAD) as head, self.model.batch() as batch:
            sessions = {seed: self.session(temperature=0.8, seed=seed, drafter=head if seed == 6 else None)
                        for seed in (5, 6, 7)}
            texts = {seed: [] for seed in sessions}
            for session in sessions.values():
                batch.add(session)
            self.assertEqual(list(batch), list(sessions.values()))
            while min(map(len, texts.values())) < 64:
                batch.step()
                for seed, session in sessions.items():
                    if session in list(batch):
                        texts[seed] += [token.id for token in session.result().tokens]
                if len(texts[7]) >= 32 and sessions[7] in list(batch):
                    batch.remove(sessions[7])
                    texts[7] += ids(sessions[7], 64)
            for seed in sessions:
                self.assertEqual(texts[seed][:64], the_text(0.8, seed, 64), seed)
            sessions[5].close()
            self.assertEqual(list(batch), [sessions[6]])
            batch.cancel()
            with self.assertRaises(aerie.Cancelled):
                batch.step()
