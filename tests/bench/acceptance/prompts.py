"""Prompts of the study: held-out books and Python modules (where the training data is at hand), and story openings."""

import json
from pathlib import Path

STORIES = [
    "Once upon a time there was a little girl who lived in a small house near the forest.",
    "One day a boy named Tom found an old map under the stairs.",
    "The fox looked at the moon and said to the owl,",
    "It was raining when the old sailor came back to the village.",
    "There was once a king who had three daughters, and the youngest",
    "Anna opened the box. Inside there was a letter, and it said",
    "\"Please do not go,\" said her brother, \"the river is too high.\"",
    "In the middle of the night the clock in the hall struck thirteen.",
    "The two friends walked along the beach until they saw a light.",
    "Nobody in the town knew where the stranger had come from.",
    "When the last of the snow had melted, the children ran out to",
    "The cat sat on the wall and watched the postman come up the road.",
]
CHARACTERS = 240


def windows(texts: dict[str, str], count: int) -> list[str]:
    """`count` windows of about CHARACTERS, spread evenly over all documents, from the start of a line or word."""
    whole = "\n".join(texts[name] for name in sorted(texts))
    step = (len(whole) - 2 * CHARACTERS) // count
    out = []
    for i in range(count):
        at = i * step
        cut = max(whole.find("\n", at, at + 120), whole.find(" ", at))
        out.append(whole[cut + 1:cut + 1 + CHARACTERS].rstrip())
    return out


def write(folder: Path, data: Path | None, count: int) -> dict[str, Path]:
    """{kind: JSON lines file}. Without `data` (the folder of aerie.train.corpus) there are stories only."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = {"stories": STORIES[:count]}
    if data:
        for kind in ("novels", "python"):
            kinds[kind] = windows(json.loads((data / f"{kind}.held.json").read_text()), count)
    files = {}
    for kind, texts in kinds.items():
        files[kind] = folder / f"{kind}.jsonl"
        files[kind].write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
    return files
