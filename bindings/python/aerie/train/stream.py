"""Token streams: the encoded text on disk, and a resumable, seeded order of training windows over it."""

import hashlib
import json
from pathlib import Path

import numpy as np
import torch

from . import corpus

KINDS = ("novels", "python")


def kinds(data: Path) -> tuple[str, ...]:
    """The kinds of text that a folder holds: dialogues (aerie.train.chat), or documents."""
    return ("chat",) if text_length(data) else KINDS


def text_length(data: Path) -> int:
    """Tokens of each text in a folder of dialogues, which are training rows as they are; 0: documents, rows are cut anywhere."""
    about = data / "chat.json"
    return json.loads(about.read_text())["length"] if about.exists() else 0


def encoder(tokenizer_file: Path):
    """texts -> token ids of each, by a tokenizer.json or by the tokenizer of a package (through the runtime)."""
    if tokenizer_file.suffix == ".aerie":
        import aerie

        model = aerie.Model(tokenizer_file)
        return lambda texts: [model.tokenizer.encode(text, bos=False) for text in texts]
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    return lambda texts: [encoding.ids for encoding in tokenizer.encode_batch(texts)]


def encode(data: Path, tokenizer_file: Path) -> None:
    """Writes {novels,python}.{train,held}.u16: documents end to end, each preceded by token 0."""
    encode_all = encoder(tokenizer_file)
    for kind in KINDS:
        for part in ("train", "held"):
            texts = corpus.load(data, kind, part)
            order = sorted(texts, key=lambda name: hashlib.sha256(name.encode()).digest())
            pieces = [np.array([0, *ids], dtype=np.uint16) for ids in encode_all([texts[name] for name in order])]
            np.concatenate(pieces).tofile(data / f"{kind}.{part}.u16")


def tokens(data: Path, kind: str, part: str = "") -> np.ndarray:
    """One stream; without a part, one that another step wrote, such as `generated`."""
    name = f"{kind}.{part}.u16" if part else f"{kind}.u16"
    return np.fromfile(data / name, dtype=np.uint16)


def held_rows(data: Path, kind: str, count: int, length: int) -> torch.Tensor:
    """[n, length] int64, n <= count: windows spread evenly over the held-out text; of dialogues, their beginnings."""
    held = tokens(data, kind, "held").astype(np.int64)
    each = text_length(data) or length
    if each < length:
        raise ValueError(f"{data}: rows of {length} tokens of dialogues that have {each}")
    texts = held[:len(held) // each * each].reshape(-1, each)
    count = min(count, len(texts))
    return torch.from_numpy(np.stack([texts[index * len(texts) // count, :length] for index in range(count)]))


class Windows:
    """Every window of `length` tokens of one stream, in a fresh order each epoch. State: one counter.

    `whole`: the stream is texts of `length` tokens, and a window is one of them; else windows start anywhere.
    """

    def __init__(self, stream: np.ndarray, length: int, seed: int, whole: bool = False):
        self.stream, self.length, self.seed = stream, length, seed
        self.taken = 0
        self._epoch = -1
        self._room = 0 if whole else len(stream) % length + length
        self.per_epoch = (len(stream) - self._room) // length
        if self.per_epoch < 1:
            raise ValueError("the stream is shorter than one window")

    def next(self) -> np.ndarray:
        epoch, index = divmod(self.taken, self.per_epoch)
        if epoch != self._epoch:
            random = np.random.default_rng([self.seed, epoch])
            self._order = random.permutation(self.per_epoch)
            self._shift = int(random.integers(0, self._room)) if self._room else 0
            self._epoch = epoch
        self.taken += 1
        start = self._shift + int(self._order[index]) * self.length
        return self.stream[start:start + self.length]


class Mixture:
    """Batches of windows from several streams in fixed proportions. `state`/`restore` make it resumable."""

    def __init__(self, streams: list[np.ndarray], weights: list[float], length: int, seed: int, whole: int = -1):
        """`whole`: index of the stream whose windows are whole texts, if there is one."""
        self.sources = [Windows(s, length, seed + i, i == whole) for i, s in enumerate(streams)]
        self.weights = np.array(weights) / sum(weights)

    def batch(self, rows: int) -> torch.Tensor:
        """[rows, length] int64; the source that is furthest behind its share gives the next row."""
        out = []
        for _ in range(rows):
            total = sum(s.taken for s in self.sources) + 1
            behind = self.weights * total - np.array([s.taken for s in self.sources])
            out.append(self.sources[int(behind.argmax())].next())
        return torch.from_numpy(np.stack(out).astype(np.int64))

    def state(self) -> list[int]:
        return [s.taken for s in self.sources]

    def restore(self, state: list[int]) -> None:
        for source, taken in zip(self.sources, state, strict=True):
            source.taken = taken


def shares(data: Path, python_share: float) -> list[float]:
    """Of the rows, for each of `kinds`."""
    return [1.0] if text_length(data) else [1 - python_share, python_share]


def mixture(data: Path, python_share: float, length: int, seed: int, own: dict[str, float] | None = None) -> Mixture:
    """Rows of every kind, and from streams that the target wrote into the folder, `own` with their shares of the rows."""
    own = {name: share for name, share in (own or {}).items() if share > 0}
    texts = text_length(data)
    if texts and (own or length != texts):
        raise ValueError(f"{data}: dialogues of {texts} tokens are rows of {texts - 1}, and there are no other streams")
    names = [*((kind, "train") for kind in kinds(data)), *((name, "") for name in own)]
    weights = [share * (1 - sum(own.values())) for share in shares(data, python_share)] + list(own.values())
    whole = 0 if texts else next((i for i, (name, _) in enumerate(names) if name == "continuations"), -1)
    return Mixture([tokens(data, *name) for name in names], weights, length, seed, whole)


def main() -> None:
    import argparse

    parser = argparse.ArgumentParser(description="Encode the text.")
    parser.add_argument("--data", type=Path, required=True, help="folder written by aerie.train.corpus")
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json or a package (.aerie)")
    args = parser.parse_args()
    encode(args.data, args.tokenizer)
    for kind in KINDS:
        print(kind, {part: len(tokens(args.data, kind, part)) for part in ("train", "held")}, "tokens")


if __name__ == "__main__":
    main()
