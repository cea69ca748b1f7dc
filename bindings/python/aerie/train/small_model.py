"""Train a small Llama to draft for a target, distilled from the target's distributions.

    python3 -m aerie.train.small_model --target models/target --data data --work runs/small --out models/small

Same tokenizer, tied embeddings, Muon and AdamW as the target's recipe; the loss is cross-entropy against the target's
distribution on a stretch of each row. The result is a Hugging Face directory like the target's.
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from . import curves, evaluate, hf, settings, stream
from .head_job import HeadJob, HeadSettings
from .model import Llama, LlamaConfig, initialise
from .precision import autocast


@dataclass
class Settings(HeadSettings):
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int


def distillation_loss(target: Llama, model: Llama, tokens: torch.Tensor, start: torch.Tensor, length: int):
    """tokens [B,T] -> mean cross-entropy against the target's distribution on `length` rows from `start` on."""
    window = start + torch.arange(length)
    with autocast():
        with torch.no_grad():
            teacher = target.logits(target.features(tokens)[:, window]).float().softmax(-1)
        logs = model.logits(model.features(tokens)[:, window]).float().log_softmax(-1)
    return -(teacher * logs).sum(-1).mean()


class SmallModelJob(HeadJob):
    title = "small"

    def __init__(self, s: Settings):
        super().__init__(s, levels=1)
        self._losses = torch.compile(distillation_loss) if s.compile else distillation_loss

    def build(self, rms) -> Llama:
        s, c = self.s, self.target.config
        model = Llama(LlamaConfig(
            vocab_size=c.vocab_size, hidden_size=s.hidden_size, intermediate_size=s.intermediate_size,
            num_hidden_layers=s.num_hidden_layers, num_attention_heads=s.num_attention_heads,
            num_key_value_heads=s.num_key_value_heads, head_dim=s.head_dim, rope_theta=c.rope_theta,
            rms_norm_eps=c.rms_norm_eps, max_position_embeddings=c.max_position_embeddings))
        initialise(model, s.seed)
        return model

    def start_from(self, folder: Path) -> None:
        self.trained.load_state_dict(hf.load(folder).state_dict())

    def losses(self, rows: torch.Tensor) -> torch.Tensor:
        s, tokens = self.s, rows[:, :-1]
        room = tokens.shape[1] - s.prompt
        length = max(1, min(room, round(s.token_share * tokens.shape[1])))
        start = s.prompt + torch.randint(0, room - length + 1, ())
        return self._losses(self.target, self.trained, tokens, start, length)

    @torch.no_grad()
    def evaluate(self, rows: int) -> dict[str, float]:
        values = {"tau": self.tau()}
        for kind in stream.kinds(self.s.data):
            text = evaluate.prompts(self.s.data, kind, min(rows, 16), self.s.sequence)
            same = [(self.trained(row[None]).argmax(-1) == self.target(row[None]).argmax(-1)).float().mean().item()
                    for row in text]
            values[f"{kind}_1"] = sum(same) / len(same)
        return values

    def export(self, folder: Path) -> None:
        tokenizer = self.s.target / "tokenizer.json"  # an unpacked target has none
        hf.save(self.trained, tokenizer if tokenizer.exists() else None, folder)


def main(argv=None) -> None:
    s = settings.parse(Settings, "small.toml", "Train a small model to draft for a target.", argv)
    curves.train(s, SmallModelJob)


if __name__ == "__main__":
    main()
