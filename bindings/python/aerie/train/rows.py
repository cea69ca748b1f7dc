"""What a drafter head may read of the target: embeddings, final features and taps of a batch of token rows."""

from dataclasses import dataclass

import torch

from .model import Llama


@dataclass
class Rows:
    """B sequences of T tokens, H hidden size. Row j of a head pairs f_j or taps_j with the tokens after t_j."""

    tokens: torch.Tensor      # [B,T]
    embeddings: torch.Tensor  # [B,T,H]
    features: torch.Tensor    # [B,T,H] after the final norm
    taps: torch.Tensor        # [B,T,3H] residual stream at the input of the tapped layers


def read(target: Llama, tokens: torch.Tensor) -> Rows:
    taps = []
    features = target.features(tokens, taps=taps)
    wanted = target.config.tap_layers()
    return Rows(tokens, target.embed_tokens(tokens), features, torch.cat([taps[layer] for layer in wanted], dim=-1))


@torch.no_grad()
def spreads(target: Llama, tokens: torch.Tensor) -> dict[str, list[float]]:
    """RMS of embedding, feature and the three taps, to scale a head's inputs with. Of the median token: the residual stream of a
    text's first one is often a hundred times as large (an attention sink)."""
    rows = read(target, tokens)

    def rms(x):
        return x.float().pow(2).mean(-1).sqrt().median().item()

    return {"embedding": [rms(rows.embeddings)], "feature": [rms(rows.features)],
            "taps": [rms(part) for part in rows.taps.chunk(3, dim=-1)]}
