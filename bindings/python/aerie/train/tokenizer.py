"""Byte-level BPE tokenizer (GPT-2 pre-tokenizer, full byte alphabet), saved as a Hugging Face tokenizer.json.

    python3 -m aerie.train.tokenizer --data data --out data/tokenizer.json
"""

import argparse
from pathlib import Path

from . import corpus

END_OF_TEXT = "<|endoftext|>"  # id 0: start, end and separator of documents


def train(data: Path, vocab_size: int, python_repeats: int = 3):
    """A tokenizer trained on the training split; Python counts several times, it is the smaller part."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = list(corpus.load(data, "novels", "train").values())
    texts += list(corpus.load(data, "python", "train").values()) * python_repeats
    tokenizer.train_from_iterator(texts, trainer=trainer)
    if tokenizer.get_vocab_size() != vocab_size or tokenizer.token_to_id(END_OF_TEXT) != 0:
        raise SystemExit("too little text for this vocabulary size")
    return tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the tokenizer.")
    parser.add_argument("--data", type=Path, required=True, help="folder written by aerie.train.corpus")
    parser.add_argument("--vocab-size", type=int, default=4096)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    train(args.data, args.vocab_size).save(str(args.out))


if __name__ == "__main__":
    main()
