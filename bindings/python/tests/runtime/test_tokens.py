"""Tokens equal those of the C API, and the declarations its layout."""

import ctypes

from aerie import Code, _native
from case import Case, HEAD, LAYOUT, ids, the_text


class Tokens(Case):
    def test_tokens_equal_c_api(self):
        with self.model.drafter(HEAD) as head, self.model.drafter(plugin="ngram") as ngram:
            for temperature in 0.0, 0.8:
                for drafter in None, head, ngram:
                    session = self.session(temperature=temperature, seed=5, drafter=drafter)
                    self.assertEqual(ids(session, 64), the_text(temperature, 5, 64))
                    if drafter is head:
                        self.assertGreater(session.statistics().accepted, 0)

    def test_layout(self):
        golden = {}
        for line in LAYOUT.read_text().splitlines():
            name, size_or_offset = line.split()
            golden[name] = int(size_or_offset)
        checked = 0
        for name, kind in vars(_native).items():
            if not (isinstance(kind, type) and issubclass(kind, ctypes.Structure)) or kind is ctypes.Structure:
                continue
            self.assertEqual(ctypes.sizeof(kind), golden[name], name)
            for field, *_ in kind._fields_:
                self.assertEqual(getattr(kind, field).offset, golden[f"{name}.{field}"], f"{name}.{field}")
                checked += 1
        self.assertGreater(checked, 100)
