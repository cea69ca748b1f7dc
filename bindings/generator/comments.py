"""Comments of a header, by line, so that a declaration finds its own."""
import re


class Comments:
    def __init__(self, text):
        self.lines = text.split("\n")
        self.before, self.beside = {}, {}  # by the line after, by the line the comment starts on; lines from 1
        for m in re.finditer(r"/\*.*?\*/", text, re.S):
            first, last = text.count("\n", 0, m.start()) + 1, text.count("\n", 0, m.end()) + 1
            words = self._clean(m.group())
            if "----" in words:
                continue
            if self.lines[first - 1][:m.start() - text.rfind("\n", 0, m.start()) - 1].strip():
                self.beside[first] = words
            else:
                self.before[last + 1] = words

    @staticmethod
    def _clean(comment):
        lines = [re.sub(r"^\s*\*( |$)", "", line).rstrip() for line in comment[2:-2].split("\n")]
        if len(lines) > 1:
            indent = min((len(s) - len(s.lstrip()) for s in lines[1:] if s), default=0)
            lines = [lines[0].strip()] + [s[indent:] for s in lines[1:]]
        return "\n".join(lines).strip()

    def of(self, first, last=None):
        """The comment that stands before line `first`, then the one that starts on line `last`."""
        return "\n".join(filter(None, [self.before.get(first), self.beside.get(last or first)]))

    def top(self):
        return self.before[min(self.before)]
