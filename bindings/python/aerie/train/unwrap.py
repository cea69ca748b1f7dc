"""Undo hard line wraps, so that a newline in a novel means the end of a paragraph."""

import re


def unwrap(text: str) -> str:
    """Joins a line with the next one where the next one's first word would not have fitted on it.

    The width is taken from the text itself (the length that only 1 % of the lines exceed). A text that is
    not wrapped, or has one paragraph a line, comes back as it was, blank runs collapsed.
    """
    lines = [line.rstrip() for line in text.split("\n")]
    lengths = sorted(len(line) for line in lines if line)
    if not lengths:
        return ""
    width = lengths[int(len(lengths) * 0.99)]
    wrapped = width <= 120
    out: list[str] = []
    open_line = False  # does the last line of `out` go on?
    for index, line in enumerate(lines):
        body = re.sub(r"(?<=\S) {2,}", " ", line)
        if open_line and body:
            out[-1] += ("" if out[-1].endswith("--") else " ") + body.lstrip()
        else:
            out.append(body)
        following = lines[index + 1] if index + 1 < len(lines) else ""
        first_word = following.split(" ", 1)[0] if following else ""
        open_line = bool(wrapped and body and first_word and len(line) + 1 + len(first_word) >= width - 2)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip() + "\n"
