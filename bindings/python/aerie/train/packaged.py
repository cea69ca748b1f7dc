"""The target's features as the runtime computes them: a head then learns from what it will be shown, quantised weights
included. Embeddings and LM head stay those of the PyTorch twin, which gradients go through."""

from pathlib import Path

import numpy as np
import torch

import aerie

from . import hf
from .model import Llama


class PackagedLlama(Llama):
    """A twin whose `features` of whole texts come from its package; taps of the layers alone that a drafter may read.

    Those of texts that come again, as rows of dialogues do every epoch, are kept in bfloat16 (`keep`): 8 bytes for each token and
    component of the hidden state."""

    MOST_KEPT = 8 << 30  # bytes

    def __init__(self, twin: Llama, package: Path, keep: bool = False):
        super().__init__(twin.config)
        self.kept: dict[bytes, np.ndarray] | None = {} if keep else None
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
        layers = self.config.tap_layers() if taps is not None else []
        hidden = self.config.hidden_size
        out = np.empty((*tokens.shape, (len(layers) + 1) * hidden), np.float32)
        for row, text in zip(out, tokens.to(torch.int32).numpy()):
            self._read(text, layers, row)
        read = torch.from_numpy(out).to(self.embed_tokens.weight.device)
        if taps is not None:
            taps.extend(read[..., layers.index(i) * hidden:][..., :hidden] if i in layers else None
                        for i in range(self.config.num_hidden_layers))
        return read[..., len(layers) * hidden:]

    def _read(self, text: np.ndarray, layers: list[int], out: np.ndarray) -> None:
        name = text.tobytes()
        if self.kept is not None and layers and name in self.kept:
            out[:] = torch.from_numpy(self.kept[name]).view(torch.bfloat16).float().numpy()
            return
        self.package.features(text, taps=(*layers, -1), out=out)
        if self.kept is not None and layers and (len(self.kept) + 1) * out.size * 2 <= self.MOST_KEPT:
            self.kept[name] = torch.from_numpy(out).to(torch.bfloat16).view(torch.int16).numpy()


def load(folder: Path, package: str, keep: bool = False) -> Llama:
    """The twin of `folder`; with a package, its features from there, kept in memory if texts come again."""
    twin = hf.load(folder)
    return PackagedLlama(twin, Path(package), keep).eval() if package else twin
