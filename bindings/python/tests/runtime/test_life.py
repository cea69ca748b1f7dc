"""Closing, in every order, and 1,000 times."""

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import aerie
from case import Case, DEMO, HEAD, PLUGINS, PROMPT, ids, the_text


class Life(Case):
    def test_double_close(self):
        runtime = aerie.Runtime(threads=1)
        model = aerie.Model(DEMO, runtime)
        drafter = model.drafter(HEAD)
        session = model.session(drafter=drafter)
        batch = model.batch()
        for thing in batch, session, drafter, model, runtime:
            thing.close()
            thing.close()
            self.assertTrue(thing.closed)
        for late in session.step, session.cancel, session.statistics, batch.step, runtime.plugins, lambda: model.blob("x"):
            with self.assertRaises(ValueError):
                late()

    def test_parent_closed_first(self):
        runtime = aerie.Runtime(threads=1, log=lambda level, message: None)
        model = aerie.Model(DEMO, runtime)
        drafter = model.drafter(HEAD)
        session = model.session(drafter=drafter, ignore_eos=True, tree="chain")
        for parent in runtime, model, drafter:
            parent.close()
        del runtime, model, drafter, parent
        gc.collect()
        session.append(PROMPT)
        self.assertEqual(ids(session, 64), the_text(0.0, 5, 64))
        session.close()

    def test_a_signal_handler_closes(self):
        """In the middle of a call on its own thread, which it cannot wait for. In a process of its own, as below."""
        program = f"""
import signal
import aerie

runtime = aerie.Runtime(threads=1)
session = aerie.Model({str(DEMO)!r}, runtime).session(ignore_eos=True, tree="chain")
session.append({PROMPT!r})

def close(*_):
    with session._use():  # wherever the signal came
        session.close()
        assert session.closed

signal.signal(signal.SIGALRM, close)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    while True:
        session.step()
        if session.length > 400:
            session.rewind(len({PROMPT!r}))
except (aerie.Cancelled, ValueError):
    print("closed", session.closed)
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.stdout, done.returncode), ("closed True\n", 0), done.stderr)

    def test_load_cycles(self):
        def resident() -> int:
            return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        for cycle in range(1000):
            with aerie.Runtime(threads=1) as runtime, aerie.Model(DEMO, runtime, kv_positions=512) as model:
                with model.session(tree="chain") as session:  # `auto` would measure passes
                    session.append(PROMPT)
                    session.step()
            if cycle == 199:
                gc.collect()
                before = resident()
        gc.collect()
        self.assertLess(resident() - before, 4 << 20)

    def test_garbage_found_in_the_log_hook(self):
        """The plugin logs in a call that the library holds a lock around, which a session's release waits for. In a process
        of its own, which can be ended where it hangs."""
        program = f"""
import gc
import aerie, case

class Chat:
    def __init__(self):
        self.me, self.session = self, model.session(drafter=drafter, tree="chain", ignore_eos=True)
        self.session.append(case.PROMPT)
        self.session.step()

found = []
gc.disable()
runtime = aerie.Runtime(threads=1, log=lambda level, message: found.append(gc.collect()))
runtime.load_plugin({str(PLUGINS / "extra_rows.so")!r})
model = aerie.Model(case.DEMO, runtime)
drafter = model.drafter(plugin="extra", max_sessions=3)
for _ in range(20):  # more than max_sessions: they are given back, too
    Chat()
assert any(found)
with aerie._library.inside:
    gc.collect()  # the last one, which is given back at exit
print("done")
"""
        done = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "done\n", ""))

    def test_close_during_a_step(self):
        """Closing waits for the thread that steps, which hears of it."""
        session = self.model.session(ignore_eos=True)
        session.append(PROMPT)
        started, ended = threading.Event(), []

        def step_on():
            try:
                while True:
                    session.step()
                    started.set()
                    if session.length > 400:
                        session.rewind(len(PROMPT))
            except (aerie.Cancelled, ValueError) as e:
                ended.append(e)

        thread = threading.Thread(target=step_on)
        thread.start()
        started.wait()
        session.close()
        thread.join(10)
        self.assertEqual(len(ended), 1)
