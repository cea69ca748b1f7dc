"""What the trainers of all heads share: frozen target, mixture, losses per level, held-out agreement and tau."""

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F

from . import evaluate, packaged, stream, tree
from .draft import drafter
from .heads import files
from .heads.base import Head
from .loop import Job, LoopSettings
from .model import Llama
from .muon import Muon
from .precision import autocast
from .rows import read, spreads


@dataclass
class HeadSettings(LoopSettings):
    target: Path
    initial: str            # folder of a trained head to start from, or nothing
    features: str           # package of the target whose features to train on, or nothing: the PyTorch twin's
    generated_share: float  # share of rows from generated.u16, the target's own text
    greedy_share: float     # and from greedy.u16, at temperature 0
    whole_share: float      # and whole texts of continuations.u16, `sequence` + 1 tokens each
    prompt: int             # tokens at the head of each row that no token loss is taken on
    token_share: float      # share of positions with a token loss: a random stretch of each row
    rejected_weight: float  # of a level's token loss where a level before has another best token than the text
    level_decay: float
    lr: float
    beta1: float
    beta2: float
    weight_decay: float
    muon_lr: float          # > 0: Muon for the matrices of decoder layers and MLPs, AdamW for the rest


def level_losses(target: Llama, head: Head, tokens: torch.Tensor, start: torch.Tensor, length: int, rejected: float):
    """tokens [B,T] -> (token losses [N], feature losses [N]): cross-entropy against the target's distribution on the
    `length` rows from `start` on, and SmoothL1 to the target's feature on all rows.

    A chain ends at the first draft that is not the text's token, and what the levels below draft there is never looked
    at: `rejected` is the weight of their cross-entropy (1: the papers' losses). Without it a level that cannot see the
    token before, as FastEagle's, learns what follows *any* token there; with it, what follows the one that was drafted."""
    with autocast():
        with torch.no_grad():
            rows = read(target, tokens)
        states = head.levels(target, rows)
        window = start + torch.arange(length + len(states) - 1)
        with torch.no_grad():
            teacher = head.teacher(target, rows.features[:, 1 + window]).float().softmax(-1)
        token, feature, reached = [], [], torch.ones(())
        for i, state in enumerate(states):
            logs = head.scores(target, state[:, window[:length]]).float().log_softmax(-1)
            entropy = -(teacher[:, i:i + length] * logs).sum(-1)
            token.append((torch.where(reached > 0, 1.0, rejected) * entropy).mean())
            if i + 1 < len(states):
                reached = reached * (head.drafted(logs.detach().argmax(-1)) == tokens[:, 2 + i + window[:length]])
            wanted = rows.features[:, 1 + i:1 + i + state.shape[1]]
            feature.append(F.smooth_l1_loss(state.float(), wanted.float()))
    return torch.stack(token), torch.stack(feature)


@torch.no_grad()
def agreement(target: Llama, head: Head, data: Path, kind: str, length: int, rows: int) -> list[float]:
    """Per level, the share of held-out positions where head and target have the same best token.

    The tokens before are those of the text, at every level; a head that cannot see them does worse for it.
    """
    same, texts = None, stream.held_rows(data, kind, rows, length)
    for text in texts:
        read_rows = read(target, text[None])
        best = target.logits(read_rows.features).argmax(-1)
        states = head.levels(target, read_rows)
        level = torch.tensor([(head.logits(target, s).argmax(-1) == best[:, 1 + i:1 + i + s.shape[1]]).float().mean()
                              for i, s in enumerate(states)])
        same = level if same is None else same + level
    return (same / len(texts)).tolist()


class HeadJob(Job):
    """`build` makes the head; `combine` weighs the losses of its levels."""

    levels: int
    tau_prompts = 16  # of each kind

    def __init__(self, s: HeadSettings, levels: int):
        self.s, self.levels = s, levels
        self.metrics = ["tau"] + [f"{kind}_{i + 1}" for kind in stream.kinds(s.data) for i in range(levels)]
        self.target = packaged.load(s.target, s.features, keep=stream.text_length(s.data) > 0).requires_grad_(False)
        torch.manual_seed(s.seed)
        self.mixture = stream.mixture(s.data, s.python_share, s.sequence + 1, s.seed, {
            "generated": s.generated_share, "greedy": s.greedy_share, "continuations": s.whole_share})
        first = self.mixture.sources[0].stream[:4 * (s.sequence + 1)].astype("int64")
        self.trained = self.build(spreads(self.target, torch.from_numpy(first).view(4, -1)[:, :-1]))
        if s.initial:
            self.start_from(Path(s.initial))
        matrices, rest = [], []
        for name, parameter in self.trained.named_parameters():
            use_muon = s.muon_lr > 0 and parameter.ndim == 2 and not name.startswith(("lm_head", "embed_tokens"))
            (matrices if use_muon else rest).append(parameter)
        self.optimisers = [torch.optim.AdamW(rest, lr=s.lr, betas=(s.beta1, s.beta2), weight_decay=s.weight_decay)]
        if matrices:
            self.optimisers.append(Muon(matrices, lr=s.muon_lr, weight_decay=s.weight_decay))
        self._losses = torch.compile(level_losses) if s.compile else level_losses
        self._text = None

    def start_from(self, folder: Path) -> None:
        files.put(self.trained, files.read(folder)[1]).train()

    def build(self, rms: dict[str, list[float]]) -> Head:
        raise NotImplementedError

    def combine(self, token: torch.Tensor, feature: torch.Tensor) -> torch.Tensor:
        """[N] twice -> the loss. By default cross-entropy alone, weight level_decay^i as in Medusa."""
        return (self.s.level_decay ** torch.arange(self.levels) * token).sum()

    def losses(self, rows: torch.Tensor) -> torch.Tensor:
        s, tokens = self.s, rows[:, :-1]
        room = tokens.shape[1] - self.levels
        length = max(1, min(room - s.prompt, round(s.token_share * tokens.shape[1])))
        start = s.prompt + torch.randint(0, room - s.prompt - length + 1, ())
        return self.combine(*self._losses(self.target, self.trained, tokens, start, length, s.rejected_weight))

    def evaluate(self, rows: int) -> dict[str, float]:
        values = {"tau": self.tau()}
        for kind in stream.kinds(self.s.data):
            shares = agreement(self.target, self.trained, self.s.data, kind, self.s.sequence, min(rows, 16))
            values |= {f"{kind}_{i + 1}": share for i, share in enumerate(shares)}
        return values

    def tau(self) -> float:
        """Of chains of up to five on a few held-out prompts, at temperature 0."""
        if self._text is None:
            prompt = torch.cat([evaluate.prompts(self.s.data, kind, self.tau_prompts, 64) for kind in stream.kinds(self.s.data)])
            self._text = evaluate.write(self.target, prompt, 64, 0.0, self.s.seed)
        return evaluate.mean(evaluate.cycles(drafter(self.target, self.trained), self._text, "none", tree.chain))
