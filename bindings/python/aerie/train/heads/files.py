"""config.json and model.safetensors of a head: each file appears whole or not at all."""

import json
from pathlib import Path

import torch
from torch import nn

from .scaled import ScaledLinear


def tensors(head: nn.Module) -> dict[str, torch.Tensor]:
    """The parameters as they are saved: input scales folded into the weights."""
    out = {name: value.detach() for name, value in head.state_dict().items()}
    for name, module in head.named_modules():
        if isinstance(module, ScaledLinear):
            out[f"{name}.weight"] = module.folded().detach()
            del out[f"{name}.column_scale"]
    return out


def put(head: nn.Module, saved: dict[str, torch.Tensor]) -> nn.Module:
    """Loads saved tensors into a head, which keeps its input scales; any missing or unexpected one is an error."""
    saved = {name: value.float() if value.is_floating_point() else value for name, value in saved.items()}
    for name, module in head.named_modules():
        if isinstance(module, ScaledLinear):
            saved[f"{name}.column_scale"] = module.column_scale
            if f"{name}.weight" in saved:
                saved[f"{name}.weight"] = saved[f"{name}.weight"] / module.column_scale
    head.load_state_dict(saved)
    return head.eval()


def write(saved: dict[str, torch.Tensor], config: dict, out: Path, dtype: torch.dtype = torch.float32) -> None:
    from safetensors.torch import save_file

    out.mkdir(parents=True, exist_ok=True)
    saved = {name: (value.to(dtype) if value.is_floating_point() else value).clone().contiguous()
             for name, value in saved.items()}
    save_file(saved, str(out / "model.safetensors.part"), metadata={"format": "pt"})
    config = {**config, "torch_dtype": str(dtype).removeprefix("torch.")}
    (out / "config.json.part").write_text(json.dumps(config, indent=2) + "\n")
    (out / "model.safetensors.part").chmod(0o644)  # safetensors writes it for the owner alone
    for file in ("model.safetensors", "config.json"):
        (out / f"{file}.part").replace(out / file)


def read(folder: Path) -> tuple[dict, dict[str, torch.Tensor]]:
    from safetensors.torch import load_file

    return json.loads((folder / "config.json").read_text()), load_file(str(folder / "model.safetensors"))
