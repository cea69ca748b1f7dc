"""Dialogues that an instruction-tuned target makes up by itself: training text for its heads, with no data but the model.

    python3 -m aerie.train.chat --target smollm2.aerie --data data --tokens 600000

After the chat template's head of a user's turn the target writes a question, after the head of its own turn the answer
(Magpie, arXiv 2406.08464), and so on until the text has its length. Questions are drawn at temperature 1 with top-p 0.95;
half of the first ones begin with one of OPENINGS, so that tasks come up that the model rarely thinks of. Answers are
written at the temperatures that users read them at, one for each dialogue.

Writes chat.train.u16 and chat.held.u16, texts of one length end to end, and chat.json, which says the length.
"""

import argparse
import itertools
import json
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import aerie

from . import report

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
OPENINGS = (
    "Write a Python function that", "Write a short story about", "Write a poem about", "Write an email to", "Write a blog post",
    "Explain", "Explain the difference between", "How do I", "How does", "What is", "What are the", "Why", "Who was", "When did",
    "Give me a list of", "Give an example of", "Summarize the following text:", "Rewrite the following sentence", "Translate",
    "Describe", "Compare", "Imagine", "Design", "Create a", "Suggest", "Generate", "Name", "Edit the following", "Classify",
    "Calculate", "Solve the following", "Find the", "Complete the following code:\n\ndef ", "Complete the code I provided.\n\ndef ",
    "Fix the bug in this code:\n\n", "Implement", "Convert", "Discuss", "Analyze", "Tell me about", "You are given", "Suppose")


@dataclass
class Template:
    """Token ids around the turns of ChatML."""

    system: list[int]
    user: list[int]       # from the end of the turn before on
    assistant: list[int]
    end: int

    @classmethod
    def of(cls, model: aerie.Model, system: str) -> "Template":
        def ids(text: str) -> list[int]:
            return model.tokenizer.encode(text, bos=False, special=True)

        end = ids("<|im_end|>")
        if len(end) != 1 or end[0] not in model.info.eos_ids:
            raise SystemExit("<|im_end|> is no token that ends this model's texts: its chat template is another than ChatML")
        return cls(ids(f"<|im_start|>system\n{system}<|im_end|>"), ids("\n<|im_start|>user\n"), ids("\n<|im_start|>assistant\n"), end[0])


class Dialogue:
    """One text on its way to `length` tokens."""

    QUESTION = 96  # tokens at most
    ASKING = {"temperature": 1.0, "top_p": 0.95}

    def __init__(self, model: aerie.Model, template: Template, temperature: float, length: int, seed: int):
        self.template, self.temperature, self.length, self.seed = template, temperature, length, seed
        choice = random.Random(seed)
        opening = model.tokenizer.encode(choice.choice(OPENINGS), bos=False) if choice.random() < 0.5 else []
        self.session = model.session(**self.ASKING, seed=seed)
        self.session.append([*template.system, *template.user, *opening])
        self.asking, self.turn_end = True, self.session.length + self.QUESTION

    def finished(self) -> bool:
        """Looks at what the batch's step gave; begins the next turn where one has ended."""
        ended = self.session.result().state == aerie.State.DONE
        if self.session.length >= self.length:
            return True
        if ended or (self.asking and self.session.length >= self.turn_end):
            self.asking = not self.asking
            close = [] if self.session.tokens()[-1] == self.template.end else [self.template.end]
            self.session.append(close + (self.template.user if self.asking else self.template.assistant))
            self.turn_end = self.session.length + self.QUESTION
            settings = self.ASKING if self.asking else {"temperature": self.temperature}
            self.session.set_sampling(aerie.Sampling(seed=self.seed, **settings))
        return self.session.length >= self.length


def write(model: aerie.Model, template: Template, length: int, temperatures: list[float], seeds, together: int):
    """Dialogues of `length` tokens, `together` at a time, endlessly."""
    with model.batch() as batch:
        running: list[Dialogue] = []
        for temperature in itertools.cycle(temperatures):
            dialogue = Dialogue(model, template, temperature, length, next(seeds))
            batch.add(dialogue.session)
            running.append(dialogue)
            while len(running) == together:
                batch.step()
                for each in [each for each in running if each.finished()]:
                    yield each.session.tokens()[:length]
                    running.remove(each)
                    batch.remove(each.session)
                    each.session.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Let a target make up dialogues, to train a head on.")
    parser.add_argument("--target", type=Path, required=True, help="package (.aerie) of a model with ChatML's template")
    parser.add_argument("--data", type=Path, required=True, help="folder to write to")
    parser.add_argument("--tokens", type=int, default=600_000)
    parser.add_argument("--length", type=int, default=321, help="tokens of a dialogue")
    parser.add_argument("--held", type=float, default=0.03, help="share of the dialogues for evaluation")
    parser.add_argument("--temperatures", default="0,0,0,0.7,1", help="of the answers")
    parser.add_argument("--system", default=SYSTEM)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--together", type=int, default=32, help="dialogues in a pass")
    parser.add_argument("--kv-dtype", default="bf16", help="of keys and values")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    if not 0 < args.held <= 1:
        parser.error(f"--held: {args.held} is not in (0, 1]")
    model = aerie.Model(args.target, aerie.Runtime(threads=args.threads), kv_dtype=args.kv_dtype, kv_positions=2 * args.together * (args.length + 64))
    if model.info.vocab_size > 1 << 16:
        raise SystemExit(f"{args.target}: the streams hold ids of 16 bits, and its vocabulary has {model.info.vocab_size} tokens")
    temperatures = [float(t) for t in args.temperatures.split(",")]
    args.data.mkdir(parents=True, exist_ok=True)
    count, every = -(-args.tokens // args.length), round(1 / args.held)
    texts = write(model, Template.of(model, args.system), args.length, temperatures, itertools.count(args.seed << 32), args.together)
    bar = report.Progress("chat")
    with open(args.data / "chat.train.u16", "wb") as train, open(args.data / "chat.held.u16", "wb") as held:
        for done, text in enumerate(itertools.islice(texts, count), 1):
            (train if done % every else held).write(np.array(text, np.uint16).tobytes())
            bar.show(done / count, f"{done * args.length} tokens")
    bar.close()
    (args.data / "chat.json").write_text(json.dumps({"length": args.length}) + "\n")  # last: the folder is whole


if __name__ == "__main__":
    main()
