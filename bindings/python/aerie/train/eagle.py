"""Train an EAGLE-1/2 head for a target.

    python3 -m aerie.train.eagle --target models/target --data data --work runs/eagle --out models/eagle

Features and target distributions come from the PyTorch twin of the target, on the fly: nothing is stored.
The default losses, noise, betas and clipping are the paper's (arXiv 2401.15077, section 3.2). The same
command continues an interrupted run.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F

from . import packaged, report, self_feed, settings, stream
from .heads import eagle as heads
from .loop import Job, Loop, LoopSettings
from .model import Llama
from .precision import autocast


@dataclass
class Settings(LoopSettings):
    target: Path
    features: str  # package of the target whose features to train on, or nothing: the PyTorch twin's
    generated_share: float
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    bias: bool
    inputs: str
    regression_weight: float
    token_weight: float
    final_share: float
    final_regression_weight: float
    final_token_weight: float
    final_passes: int
    noise: float
    lr: float
    beta1: float
    beta2: float
    weight_decay: float


def eagle_losses(target: Llama, head: heads.EagleHead, rows: torch.Tensor, noise: float, passes: int):
    """rows [B,T+1] -> (regression loss, token loss), means over all rows and passes.

    Row j reads t_{j+1} and f_j (with noise; see EagleHead for other inputs), and is compared with f_{j+1} and its
    distribution.
    """
    with autocast():
        with torch.no_grad():
            features = target.features(rows[:, :-1]).float()
            embeddings = target.embed_tokens(head.paired(rows[:, :-1]))
            wanted = features[:, 1:]
            probabilities = target.logits(wanted).float().softmax(-1)
            given = features[:, :-1]
            spread = noise * given.pow(2).mean().sqrt()
            given = given + (torch.rand_like(given) * 2 - 1) * spread
        if passes == 1:
            outputs = [head(embeddings, given)]
        else:
            outputs = self_feed.passes(head, embeddings, given, passes)
        regression = token = 0.0
        for index, output in enumerate(outputs):
            output = output[:, index:]
            regression = regression + F.smooth_l1_loss(output.float(), wanted[:, index:])
            logs = target.logits(output).float().log_softmax(-1)
            token = token - (probabilities[:, index:] * logs).sum(-1).mean()
    return regression / passes, token / passes


@torch.no_grad()
def agreement(target: Llama, head: heads.EagleHead, data: Path, kind: str, length: int, rows: int):
    """Held-out (share of rows where head and target have the same best token, mean KL divergence)."""
    texts = stream.held_rows(data, kind, rows, length)
    same = divergence = 0.0
    for text in texts:
        row = text[None]
        features = target.features(row)
        ours = target.logits(head(target.embed_tokens(head.paired(row)), features[:, :-1])).log_softmax(-1)
        theirs = target.logits(features[:, 1:]).log_softmax(-1)
        same += (ours.argmax(-1) == theirs.argmax(-1)).float().mean().item()
        divergence += (theirs.exp() * (theirs - ours)).sum(-1).mean().item()
    return same / len(texts), divergence / len(texts)


class EagleJob(Job):
    title = "eagle"

    def __init__(self, s: Settings):
        self.s = s
        self.metrics = [f"{kind}_{measure}" for kind in stream.kinds(s.data) for measure in ("agreement", "kl")]
        self.target = packaged.load(s.target, s.features).requires_grad_(False)
        c = self.target.config
        torch.manual_seed(s.seed)
        self.trained = heads.EagleHead(heads.HeadConfig(
            hidden_size=c.hidden_size, intermediate_size=s.intermediate_size,
            num_attention_heads=s.num_attention_heads, num_key_value_heads=s.num_key_value_heads,
            head_dim=s.head_dim, rms_norm_eps=c.rms_norm_eps, rope_theta=c.rope_theta, vocab_size=c.vocab_size,
            max_position_embeddings=c.max_position_embeddings, bias=s.bias), s.inputs)
        self.optimisers = [torch.optim.AdamW(
            self.trained.parameters(), lr=s.lr, betas=(s.beta1, s.beta2), weight_decay=s.weight_decay)]
        self.mixture = stream.mixture(s.data, s.python_share, s.sequence + 1, s.seed, {"generated": s.generated_share})
        self._losses = torch.compile(eagle_losses) if s.compile else eagle_losses

    def losses(self, rows: torch.Tensor) -> torch.Tensor:
        s = self.s
        final = self.loop.clock.progress >= 1 - s.final_share
        regression, token = self._losses(self.target, self.trained, rows, s.noise, s.final_passes if final else 1)
        if final:
            return s.final_regression_weight * regression + s.final_token_weight * token
        return s.regression_weight * regression + s.token_weight * token

    def evaluate(self, rows: int) -> dict[str, float]:
        values = {}
        for kind in stream.kinds(self.s.data):
            same, kl = agreement(self.target, self.trained, self.s.data, kind, self.s.sequence, rows)
            values |= {f"{kind}_agreement": same, f"{kind}_kl": kl}
        return values

    def export(self, folder: Path) -> None:
        heads.save(self.trained, folder)


def main(argv=None) -> None:
    s = settings.parse(Settings, "eagle.toml", "Train an EAGLE-1/2 head.", argv)
    torch.set_num_threads(s.threads)
    loop = Loop(s, EagleJob(s))
    loop.run()
    report.plot(loop.csv, s.work / "eagle-loss.png", {"loss": "training loss"}, "EAGLE head", "loss")
    lines = {f"{kind}_agreement": kind for kind in stream.kinds(s.data)}
    report.plot(loop.csv, s.work / "eagle-agreement.png", lines, "EAGLE head: best token as the target's",
                "share of held-out positions")


if __name__ == "__main__":
    main()
