"""A packaged target as a Hugging Face directory, to train drafters for a model of which only the package is at hand; or a
packaged head as a directory in its repository's format, to train it on (`--initial`; aerie.train.eagle has no such option).

    python3 -m aerie.train.unpack samples/models/demo.aerie --out models/target

A quantised package gives the values that the runtime computes with. A target's own tokenizer stays in the package: the
directory has none, and `aerie.train.stream --tokenizer PACKAGE` encodes with it.
"""

import argparse
from pathlib import Path

from flatbuffers import number_types as types

from . import hf, unpack_head
from .model import Llama, LlamaConfig
from .package_file import Package


def target_of(package: Package):
    if package.target is None:
        raise SystemExit(f"{package.path}: a drafter's package, not a target's")
    return package.target


def settings(package: Path) -> dict:
    """What config.json says beside the twin's shape: the tokens that begin and end a text, and where features are tapped."""
    target = target_of(Package(package))
    begin = target.number(14, types.Int32Flags, -1)
    return {"bos_token_id": begin if begin >= 0 else None, "eos_token_id": target.integers(15) or None,
            "aerie_tap_layers": target.integers(16)}


def twin(package: Path) -> Llama:
    """The PyTorch twin of a target's package."""
    read = Package(package)
    target = target_of(read)
    whole = lambda field: target.number(field, types.Int32Flags)
    scaling = target.child(11)
    refused = {"biases of q, k and v": target.number(13, types.BoolFlags),
               "norms of q and k": target.number(17, types.BoolFlags),
               "RoPE scaling": scaling is not None and scaling.number(0, types.Uint8Flags),
               "padding in the vocabulary": whole(1) != whole(0),
               "an LM head of its own": not target.number(12, types.BoolFlags)}
    for what, found in refused.items():
        if found:
            raise SystemExit(f"{package}: {what}: the trainers' PyTorch twin has none")
    c = LlamaConfig(
        vocab_size=whole(0), hidden_size=whole(2), num_hidden_layers=whole(3), num_attention_heads=whole(4),
        num_key_value_heads=whole(5), head_dim=whole(6), intermediate_size=whole(7), max_position_embeddings=whole(8),
        rms_norm_eps=target.number(9, types.Float32Flags), rope_theta=target.number(10, types.Float32Flags))
    state = {"embed_tokens.weight": read["embed"], "norm.weight": read["norm"]}
    for index in range(c.num_hidden_layers):
        at = f"layers.{index}."
        layer = read.layer(at, c.num_attention_heads, c.num_key_value_heads, c.head_dim, c.intermediate_size)
        state |= {at + name: value for name, value in layer.items()}
    model = Llama(c)
    model.load_state_dict(state)
    return model.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description="Make a directory of a packaged target or head, as it was converted from.")
    parser.add_argument("package", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if (args.out / "tokenizer.json").exists():
        raise SystemExit(f"{args.out}: holds another model's tokenizer.json")
    package = Package(args.package)
    if package.target is not None:
        hf.save(twin(args.package), None, args.out, settings=settings(args.package))
    else:
        unpack_head.save(package, args.out)


if __name__ == "__main__":
    main()
