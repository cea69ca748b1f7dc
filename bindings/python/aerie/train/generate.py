"""Text by the target itself: for the evaluator, and as training text for the head.

    python3 -m aerie.train.generate --target models/target --data data --tokens 1000000

A token is argmax(logits / T + Gumbel noise) with the noise given from outside, as in the runtime; at
temperature 0 it is the plain argmax.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from . import hf, report, stream
from .kv import GrowingCache
from .model import Llama


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


def write(model: Llama, data: Path, out: Path, total: int, length: int, temperatures: list[float],
          python_share: float, seed: int, rows: int = 192, prompt: int = 32) -> None:
    """Windows of `length` tokens that start with `prompt` tokens of training text, written end to end."""
    mixture = stream.mixture(data, python_share, prompt, seed + 1000)
    generator = torch.Generator().manual_seed(seed)
    each = torch.tensor(temperatures).repeat(rows // len(temperatures) + 1)[:rows]
    bar = report.Progress("generate")
    pieces, done = [], 0
    while done < total:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            text = continue_text(model, mixture.batch(rows), length - prompt, each, generator=generator)
        pieces.append(text.numpy().astype(np.uint16).reshape(-1))
        done += pieces[-1].size
        bar.show(min(1.0, done / total), f"{done} tokens")
    bar.close()
    np.concatenate(pieces).tofile(out)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write text with the target, to train a head on.")
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="takes prompts from, and writes the stream to")
    parser.add_argument("--name", default="generated", help="of the stream: NAME.u16")
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--length", type=int, default=257, help="tokens of one text, its prompt included")
    parser.add_argument("--temperatures", default="0,0.7,1")
    parser.add_argument("--python-share", type=float, default=0.3333)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    write(hf.load(args.target), args.data, args.data / f"{args.name}.u16", args.tokens, args.length,
          [float(t) for t in args.temperatures.split(",")], args.python_share, args.seed)


if __name__ == "__main__":
    main()
