"""The target's features as the runtime computes them: a head then learns from what it will be shown, quantised weights
included. Embeddings and LM head stay those of the PyTorch twin, which gradients go through."""

from pathlib import Path

import numpy as np
import torch

import aerie

from . import hf
from .model import Llama


class PackagedLlama(Llama):
    """A twin whose `features` of whole texts come from its package."""

    def __init__(self, twin: Llama, package: Path):
        super().__init__(twin.config)
        self.load_state_dict(twin.state_dict())
        self.package = aerie.Model(package)
        info, config = self.package.info, twin.config
        theirs = (info.vocab_size, info.hidden_size, info.layers)
        ours = (config.vocab_size, config.hidden_size, config.num_hidden_layers)
        if theirs != ours:
            raise ValueError(f"{package}: vocabulary, hidden size and layers are {theirs}, the target's {ours}")

    @torch.compiler.disable
    def features(self, tokens, positions=None, mask=None, caches=None, taps=None) -> torch.Tensor:
        if positions is not None or mask is not None or caches is not None:
            return super().features(tokens, positions, mask, caches, taps)
        layers = list(range(self.config.num_hidden_layers)) if taps is not None else []
        hidden = self.config.hidden_size
        out = np.empty((*tokens.shape, (len(layers) + 1) * hidden), np.float32)
        for row, text in zip(out, tokens.to(torch.int32).numpy()):
            self.package.features(text, taps=(*layers, -1), out=row)
        read = torch.from_numpy(out).to(self.embed_tokens.weight.device)
        if taps is not None:
            taps.extend(read[..., i * hidden:(i + 1) * hidden] for i in range(len(layers)))
        return read[..., len(layers) * hidden:]


def load(folder: Path, package: str) -> Llama:
    """The twin of `folder`; with a package, its features from there."""
    twin = hf.load(folder)
    return PackagedLlama(twin, Path(package)).eval() if package else twin
