"""What may come next: biases, penalties, grammars, constraints."""

import gc
import itertools
import json
import math
import re
import threading
import weakref

import aerie
from aerie import Code, Finish, constraint
from case import Case, DEMO, HEAD, PROMPT, ids, the_text

LIST = 'root ::= " " [a-z]+ (", " [a-z]+) (", " [a-z]+) "."'
IS_LIST = re.compile(r" [a-z]+, [a-z]+, [a-z]+\.")


class Constraints(Case):
    def setUp(self):
        self.head = self.model.drafter(HEAD)
        self.addCleanup(self.head.close)

    def said(self, session: aerie.Session, n: int = 200) -> tuple[list[int], Finish]:
        steps = list(session.steps(n))
        return [token.id for step in steps for token in step.tokens], steps[-1].finish

    def spelled(self, session: aerie.Session) -> str:
        return self.model.tokenizer.decode(session.tokens()[len(PROMPT):])

    def short_words(self) -> dict:
        """Settings with which the words of a LIST end soon."""
        ends = [self.model.tokenizer.encode(text, bos=False)[-1] for text in ("a,", "a.")]
        return {"temperature": 0.8, "seed": 5, "logit_bias": [(token, 6.0) for token in ends]}

    def test_logit_bias(self):
        plain = the_text(0.0, 0, 64)
        at = next(i for i in range(3, 64) if plain[i] not in plain[:i])
        text = ids(self.session(logit_bias={plain[at]: -math.inf}), 64)
        self.assertNotIn(plain[at], text)
        self.assertEqual(text[:at], plain[:at])
        session = self.session(drafter=self.head, logit_bias=((plain[at], -math.inf),))
        self.assertEqual(ids(session, 64), text)
        self.assertGreater(session.statistics().accepted, 0)
        # From now on, and no longer; a token that is listed twice has the sum.
        session.set_sampling(aerie.Sampling(logit_bias=[(77, 500), (77, 500.0)]))
        self.assertEqual(ids(session, 4), [77] * 4)
        session.set_sampling(aerie.Sampling())
        session.rewind(len(PROMPT))
        self.assertEqual(ids(session, 64), plain)
        for wrong in {-1: 1.0}, {1 << 30: 1.0}, {0: math.nan}:
            self.check_error(Code.INVALID_ARGUMENT, "logit_bias", session.set_sampling, aerie.Sampling(logit_bias=wrong))
        with self.assertRaises(OverflowError):
            session.set_sampling(aerie.Sampling(logit_bias={1 << 32: 1.0}))
        with self.assertRaises(TypeError):
            session.set_sampling(aerie.Sampling(logit_bias={"word": 1.0}))
        self.assertEqual(hash(aerie.Sampling(seed=1)), hash(aerie.Sampling(seed=1)))

    def test_penalties(self):
        texts = [the_text(0.0, 0, 64)]
        for options in ({"repetition_penalty": 1.3}, {"presence_penalty": 2.0}, {"frequency_penalty": 2.0},
                        {"repetition_penalty": 1.3, "penalty_window": 8}):
            text = ids(self.session(**options), 64)
            self.assertNotIn(text, texts, options)
            self.assertEqual(ids(self.session(drafter=self.head, **options), 64), text, options)
            texts.append(text)
        session = self.session()
        for name, wrong in (("repetition_penalty", -1.0), ("presence_penalty", math.nan), ("frequency_penalty", 1e9),
                            ("penalty_window", -1)):
            self.check_error(Code.INVALID_ARGUMENT, name, session.set_sampling, aerie.Sampling(**{name: wrong}))

    def test_grammar(self):
        with self.model.grammar(LIST, end_tokens=()) as grammar:
            session, drafted = self.session(**self.short_words()), self.session(drafter=self.head, **self.short_words())
            session.set_constraint(grammar)
            drafted.set_constraint(grammar)
        tokens, finish = self.said(session)
        self.assertEqual(finish, Finish.CONSTRAINT)
        self.assertRegex(self.spelled(session), IS_LIST)
        self.assertEqual(self.said(drafted), (tokens, finish))
        # Back in the text, and in a fork of it.
        session.rewind(len(PROMPT) + len(tokens) // 2)
        twin = session.fork()
        self.assertEqual(ids(session, 200), tokens[len(tokens) // 2:])
        self.assertEqual(self.said(twin)[1], Finish.CONSTRAINT)
        self.assertRegex(self.spelled(twin), IS_LIST)
        # With the tokens that end the model's texts.
        session.rewind(len(PROMPT))
        session.set_constraint(self.model.grammar(LIST))
        ended = ids(session, 200)
        self.assertEqual(ended[:-1], tokens)
        self.assertIn(ended[-1], self.model.info.eos_ids)
        session.set_constraint(None)
        session.rewind(len(PROMPT))
        session.set_sampling(aerie.Sampling(temperature=0.8, seed=5))
        self.assertEqual(ids(session, 64), the_text(0.8, 5, 64))

    def test_json_schema(self):
        schema = {"type": "object", "required": ["old", "name"], "additionalProperties": False,
                  "properties": {"old": {"type": "boolean"}, "name": {"enum": ["Tom", "Ann"]}}}
        texts = []
        for drafter in None, self.head:
            for each in schema, json.dumps(schema):
                session = self.session(temperature=0.8, seed=5, drafter=drafter)
                session.set_constraint(self.model.json_grammar(each, end_tokens=()))
                self.assertEqual(self.said(session)[1], Finish.CONSTRAINT)
                texts.append(self.spelled(session))
        self.assertEqual(len(set(texts)), 1, texts)
        made = json.loads(texts[0])
        self.assertEqual(sorted(made), ["name", "old"])
        self.assertTrue(made["name"] in ("Tom", "Ann") and isinstance(made["old"], bool), made)
        lines = []
        for drafter in None, self.head:
            for foresight in True, False:
                session = self.session(temperature=0.8, seed=5, drafter=drafter, foresight=foresight)
                session.set_constraint(self.model.json_grammar(schema, end_tokens=(), layout="one-line"))
                self.assertEqual(self.said(session)[1], Finish.CONSTRAINT)
                lines.append(self.spelled(session))
                counts = session.statistics()
                self.assertEqual(counts.foreseen_accepted > 0, foresight)
                self.assertLessEqual(counts.foreseen_accepted, counts.foreseen_verified)
        self.assertEqual(lines, [json.dumps(json.loads(lines[0]))] * 4)
        session = self.session(temperature=0.8, seed=5)
        session.set_constraint(self.model.json_grammar(schema, end_tokens=(), layout="compact"))
        self.said(session)
        compact = self.spelled(session)
        self.assertEqual(compact, json.dumps(json.loads(compact), separators=(",", ":")))
        with self.assertRaisesRegex(ValueError, "one-line"):
            self.model.json_grammar(schema, layout="pretty")

    def test_grammar_closed_first(self):
        session, other = [self.session(drafter=drafter, **self.short_words()) for drafter in (self.head, None)]
        tokenizer = aerie.Tokenizer(self.model.blob("tokenizer"))
        grammar = aerie.Grammar(tokenizer, LIST)
        session.set_constraint(grammar)
        other.set_constraint(grammar)
        tokenizer.close()
        grammar.close()
        grammar.close()
        with self.assertRaises(ValueError):
            self.session().set_constraint(grammar)
        self.said(session)
        self.assertRegex(self.spelled(session), IS_LIST)
        session.close()
        self.said(other)
        self.assertRegex(self.spelled(other), IS_LIST)

    def test_grammar_errors(self):
        model = self.model
        self.check_error(Code.BAD_FORMAT, "2", model.grammar, 'root ::= "a"\nroot2 ::= (')
        self.check_error(Code.UNSUPPORTED, "root", model.grammar, 'root ::= root "a" | "b"')
        self.check_error(Code.INVALID_ARGUMENT, "end_tokens", model.grammar, LIST, end_tokens=[-1])
        self.check_error(Code.BAD_FORMAT, "", model.json_grammar, "{")
        self.check_error(Code.UNSUPPORTED, "frobnicate", model.json_grammar, {"frobnicate": 1})
        with self.assertRaises(ValueError):
            model.grammar("root ::= \"\0\"")
        for wrong in "root", LIST, object():
            with self.assertRaises(TypeError):
                self.session().set_constraint(wrong)
        with self.assertRaises(TypeError):
            aerie.Grammar(model, LIST)
        model.grammar(LIST).close()


class Failed(Exception):
    pass


class Counting(aerie.Constraint):
    """Token 40, then 41, and so on, until 59. The state is a list of one number."""

    def __init__(self, fails: str = "", begins: int = 40):
        self.fails, self.begins, self.states = fails, begins, weakref.WeakSet()

    class State(list):
        __hash__ = object.__hash__

    def check(self, where: str, state: list) -> None:
        if where == self.fails and state[0] == 45:
            raise Failed(where)

    def begin(self):
        state = self.State([self.begins])
        self.states.add(state)
        self.check("begin", state)
        return state

    def copy(self, state):
        self.check("copy", state)
        twin = self.State(state)
        self.states.add(twin)
        return twin

    def allowed(self, state):
        self.check("allowed", state)
        return [-1, 1 << 40] + ([state[0]] if state[0] < 60 else [])

    def accept(self, state, token):
        self.check("accept", state)
        state[0] += 1
        return token + 1 == state[0]


class Own(Case):
    def test_own_constraint(self):
        head = self.model.drafter(HEAD)
        for drafter in None, head:
            session, counting = self.session(drafter=drafter, temperature=0.8, seed=5), Counting()
            session.set_constraint(counting)
            self.assertEqual(ids(session, 8), list(range(40, 48)))
            twin = session.fork()
            steps = list(session.steps(100))
            self.assertEqual([t.id for step in steps for t in step.tokens], list(range(48, 60)))
            self.assertEqual(steps[-1].finish, Finish.CONSTRAINT)
            session.close()
            twin.rewind(len(PROMPT) + 2)
            self.assertEqual(ids(twin, 4), [42, 43, 44, 45])
            twin.append([7])  # begins anew
            self.assertEqual(ids(twin, 2), [40, 41])
            twin.set_constraint(None)
            self.assertEqual((len(counting.states), constraint._held), (0, {}))

    def test_own_constraint_by_bits(self):
        never = the_text(0.8, 5, 4)[3]

        class But(aerie.Constraint):
            def begin(self):
                return {}

            def fill(self, state, mask):
                self.kept = mask  # which does no harm
                for i in range(len(mask)):
                    mask[i] = 0xFFFFFFFF
                mask[never // 32] &= ~(1 << never % 32)

            def accept(self, state, token):
                return token != never

        with self.model.drafter(HEAD) as head:
            session = self.session(drafter=head, temperature=0.8, seed=5)
            session.set_constraint(But())
            text = ids(session, 64)
        self.assertEqual(text, ids(self.session(temperature=0.8, seed=5, logit_bias={never: -math.inf}), 64))

    def test_own_constraint_that_forces(self):
        class Forcing(Counting):
            def __init__(self, says):
                super().__init__()
                self.says = says

            def forced(self, state):
                return self.says(state[0])

        def raising(n):
            yield n
            raise Failed

        def said_by(own: Counting, drafter_of=lambda model: None) -> tuple[int, int]:
            with aerie.Model(DEMO, self.runtime) as model:  # one that has not seen what usually comes
                session = model.session(ignore_eos=True, tree="chain", temperature=0.8, seed=5, drafter=drafter_of(model))
                session.append(PROMPT)
                session.set_constraint(own)
                self.assertEqual(ids(session, 30), list(range(40, 60)))
                counts = session.statistics()
                session.close()
            self.assertEqual((len(own.states), constraint._held), (0, {}))
            return counts.cycles, counts.foreseen_accepted

        self.assertEqual(said_by(Counting()), (20, 0))
        for says in lambda n: range(n, 60), lambda n: itertools.count(n), lambda n: [n]:  # more than it is asked for, and less
            cycles, accepted = said_by(Forcing(says))
            self.assertTrue(cycles <= 10 and accepted >= 10, (cycles, accepted))
        for says in (lambda n: [n + 1, 7], lambda n: [-1], lambda n: [1 << 40], lambda n: ["word"], lambda n: None, raising,
                     lambda n: 1 // 0):
            self.assertEqual(said_by(Forcing(says)), (20, 0))
        for says in lambda n: range(n, 60), lambda n: [n + 1, 7], raising:
            said_by(Forcing(says), lambda model: model.drafter(HEAD))

    def test_constraint_that_fails(self):
        head = self.model.drafter(HEAD)
        for where in "copy", "allowed", "accept":
            for drafter in None, head:
                # With foresight a cycle may pass by what cannot be copied, once sessions have learned what usually comes.
                session, counting = self.session(drafter=drafter, foresight=where != "copy"), Counting(where)
                session.set_constraint(counting)
                for _ in range(2):
                    with self.assertRaisesRegex(Failed, where):
                        ids(session, 20)
                with self.assertRaisesRegex(Failed, where):
                    session.result()
                with self.model.batch() as batch:  # it is that session's alone
                    other = self.session()
                    batch.add(session)
                    batch.add(other)
                    while batch.step().n_failed == 0:
                        pass
                    with self.assertRaisesRegex(Failed, where):
                        session.result()
                    self.assertTrue(other.result().tokens)
                said = session.tokens()[len(PROMPT):]
                self.assertEqual(said, list(range(40, 40 + len(said))))  # nothing was lost, and the text goes on
                session.set_constraint(None)
                self.assertEqual(len(ids(session, 4)), 4)
                del session, batch, other
                gc.collect()
                self.assertEqual(len(counting.states), 0)
        session = self.session()
        session.set_constraint(Counting())
        for wrong, kind in ((Counting("begin", 45), Failed), (Counting("allowed", 45), Failed),
                            (Counting(begins=60), aerie.Error), (aerie.Constraint(), NotImplementedError)):
            with self.assertRaises(kind):
                session.set_constraint(wrong)
        self.assertEqual(ids(session, 2), [40, 41])  # the one before stays
        session.close()
        self.assertEqual(constraint._held, {})

    def test_an_interrupt_in_a_constraint(self):
        class Interrupted(Counting):
            def accept(self, state, token):
                if token == 45:
                    raise KeyboardInterrupt
                return super().accept(state, token)

        session = self.session()
        session.set_constraint(Interrupted())
        with self.assertRaises(KeyboardInterrupt):
            ids(session, 20)

    def test_an_interrupt_in_what_is_forced(self):
        class Interrupted(Counting):
            def forced(self, state):
                raise KeyboardInterrupt

        session = self.session()
        session.set_constraint(Interrupted())
        with self.assertRaises(KeyboardInterrupt):
            ids(session, 20)
        said = session.tokens()[len(PROMPT):]
        self.assertEqual(said, list(range(40, 40 + len(said))))

    def test_constraints_on_threads(self):
        counting, said = Counting(), []
        first = self.session()
        first.set_constraint(counting)
        sessions = [first] + [first.fork() for _ in range(3)]
        threads = [threading.Thread(target=lambda s=session: said.append(ids(s, 100))) for session in sessions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(said, [list(range(40, 60))] * 4)
