"""Text by the target itself: for the evaluator, and as training text for the head.

    python3 -m aerie.train.generate --target models/target --data data --tokens 1000000

A package as the target (`--target target.aerie`) writes through the runtime, which is faster than the PyTorch twin.

A token is argmax(logits / T + Gumbel noise) with the noise given from outside, as in the runtime; at
temperature 0 it is the plain argmax.
"""

import argparse
import itertools
from pathlib import Path

import numpy as np
import torch

from . import hf, report, stream
from .kv import GrowingCache
from .model import Llama
from .precision import autocast


def gumbel(shape, generator: torch.Generator) -> torch.Tensor:
    uniform = torch.rand(shape, generator=generator).clamp_(min=1e-20)
    return -torch.log((-torch.log(uniform)).clamp_(min=1e-20))


@torch.no_grad()
def continue_text(model: Llama, prompts: torch.Tensor, count: int, temperature, noise=None,
                  generator: torch.Generator | None = None) -> torch.Tensor:
    """prompts [B,P] -> [B,P+count]. `temperature`: a number or one per row [B]; `noise` [B,count,V] or drawn."""
    temperature = torch.as_tensor(temperature, dtype=torch.float32).expand(len(prompts))[:, None]
    caches = [GrowingCache(prompts.shape[1] + count) for _ in model.layers]
    tokens, out = prompts, [prompts]
    position = 0
    for index in range(count):
        positions = torch.arange(position, position + tokens.shape[1])
        logits = model.logits(model.features(tokens, positions, caches=caches)[:, -1]).float()
        position += tokens.shape[1]
        drawn = noise[:, index] if noise is not None else gumbel(logits.shape, generator)
        tokens = torch.where(temperature > 0, logits + temperature * drawn, logits).argmax(-1, keepdim=True)
        out.append(tokens)
    return torch.cat(out, dim=1)


def twin_writer(model: Llama, seed: int):
    """(prompts [B,P], count, temperatures [B]) -> [B,P+count], by the PyTorch twin."""
    generator = torch.Generator().manual_seed(seed)

    def continue_all(prompts, count, temperatures):
        with autocast():
            return continue_text(model, prompts, count, temperatures, generator=generator)

    return continue_all


def runtime_writer(package: Path, seed: int, length: int, threads: int, together: int = 16):
    """The same by the runtime, `together` texts in a pass; a text that ends before its length is left out."""
    import aerie

    model = aerie.Model(package, aerie.Runtime(threads=threads), kv_positions=2 * together * (length + 64))
    seeds = itertools.count(seed << 32)

    def continue_some(prompts, count, temperatures):
        with model.batch() as batch:
            sessions = []
            for prompt, temperature in zip(prompts.tolist(), temperatures.tolist()):
                session = model.session(temperature=temperature, seed=next(seeds))
                session.append(prompt)
                batch.add(session)
                sessions.append(session)
            while list(batch):
                batch.step()
                for session in batch:
                    if session.result().state == aerie.State.DONE or len(session.tokens()) >= length:
                        batch.remove(session)
            texts = [session.tokens()[:length] for session in sessions]
            for session in sessions:
                session.close()
        return [text for text in texts if len(text) == length]

    def continue_all(prompts, count, temperatures):
        parts = zip(prompts.split(together), temperatures.split(together))
        return torch.tensor([text for part in parts for text in continue_some(part[0], count, part[1])])

    return continue_all


def write(continue_all, data: Path, out: Path, total: int, length: int, temperatures: list[float],
          python_share: float, seed: int, rows: int = 192, prompts: tuple[int, ...] = (32,)) -> None:
    """Texts of `length` tokens, written end to end, that start with tokens of training text: `rows` texts with as many as the
    first of `prompts` says, as many with the second, and so on in turn."""
    mixture = stream.mixture(data, python_share, max(prompts), seed + 1000)
    each = torch.tensor(temperatures).repeat(rows // len(temperatures) + 1)[:rows]
    shuffle = torch.Generator().manual_seed(seed)  # a mixture's kinds come in turn, too: each is to meet every temperature
    bar = report.Progress("generate")
    pieces, done = [], 0
    for prompt in itertools.cycle(prompts):
        if done >= total:
            break
        text = continue_all(mixture.batch(rows)[:, :prompt], length - prompt, each[torch.randperm(rows, generator=shuffle)])
        pieces.append(text.numpy().astype(np.uint16).reshape(-1))
        done += pieces[-1].size
        bar.show(min(1.0, done / total), f"{done} tokens")
    bar.close()
    np.concatenate(pieces).tofile(out)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write text with the target, to train a head on.")
    parser.add_argument("--target", type=Path, required=True, help="folder, or package (.aerie)")
    parser.add_argument("--data", type=Path, required=True, help="takes prompts from, and writes the stream to")
    parser.add_argument("--name", default="generated", help="of the stream: NAME.u16")
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--length", type=int, default=257, help="tokens of one text, its prompt included")
    parser.add_argument("--prompt", default="32",
                        help="tokens of training text that a text starts with; of several, such as 16,64, each in turn")
    parser.add_argument("--temperatures", default="0,0.7,1")
    parser.add_argument("--python-share", type=float, default=0.3333)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    writer = (runtime_writer(args.target, args.seed, args.length, args.threads) if args.target.suffix == ".aerie"
              else twin_writer(hf.load(args.target), args.seed))
    write(writer, args.data, args.data / f"{args.name}.u16", args.tokens, args.length,
          [float(t) for t in args.temperatures.split(",")], args.python_share, args.seed,
          prompts=tuple(int(p) for p in args.prompt.split(",")))


if __name__ == "__main__":
    main()
