"""Hugging Face directories: save the PyTorch twin as a LlamaForCausalLM, load it again, check it is one."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import torch

from .model import Llama, LlamaConfig


def config_json(config: LlamaConfig, dtype: str) -> dict:
    out = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **asdict(config),
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "attention_dropout": 0.0,
        "rope_scaling": None,
        "tie_word_embeddings": True,
        "initializer_range": 0.02,
        "use_cache": True,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "torch_dtype": dtype,
    }
    if config.num_hidden_layers >= 6:  # with fewer, low, middle and high are not three layers in order
        out["aerie_tap_layers"] = config.tap_layers()
    return out


def save(model: Llama, tokenizer: Path | None, out: Path, dtype: torch.dtype = torch.float32, settings: dict | None = None) -> None:
    """config.json, model.safetensors and, if given, tokenizer.json; each file appears whole or not at all. `settings` go into
    config.json, over what it says otherwise."""
    from safetensors.torch import save_file

    out.mkdir(parents=True, exist_ok=True)
    tensors = {f"model.{name}": value.detach().to(dtype).contiguous() for name, value in model.state_dict().items()}
    save_file(tensors, str(out / "model.safetensors.part"), metadata={"format": "pt"})
    name = str(dtype).removeprefix("torch.")
    (out / "config.json.part").write_text(json.dumps(config_json(model.config, name) | (settings or {}), indent=2) + "\n")
    files = ["model.safetensors", "config.json"]
    if tokenizer is not None:
        shutil.copyfile(tokenizer, out / "tokenizer.json.part")
        files.append("tokenizer.json")
    for file in files:
        (out / f"{file}.part").replace(out / file)


def load(folder: Path) -> Llama:
    from safetensors.torch import load_file

    raw = json.loads((folder / "config.json").read_text())
    config = LlamaConfig(**{k: raw[k] for k in asdict(LlamaConfig())})
    model = Llama(config)
    tensors = load_file(str(folder / "model.safetensors"))
    model.load_state_dict({k.removeprefix("model."): v.float() for k, v in tensors.items()})
    return model.eval()


@torch.no_grad()
def compare_with_transformers(folder: Path, tokens: int = 200) -> float:
    """Largest |logit difference| between the twin and transformers.LlamaForCausalLM on random tokens."""
    from transformers import LlamaForCausalLM

    theirs = LlamaForCausalLM.from_pretrained(str(folder), dtype=torch.float32).eval()
    ours = load(folder)
    ids = torch.randint(0, ours.config.vocab_size, (2, tokens), generator=torch.Generator().manual_seed(1))
    return float((theirs(ids).logits - ours(ids)).abs().max())


if __name__ == "__main__":
    import sys

    print("largest logit difference:", compare_with_transformers(Path(sys.argv[1])))
