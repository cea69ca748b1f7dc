"""The drafter heads in PyTorch: one file per head, each with `save` and `load` for its checkpoint format.

A head reads `Rows` of the target (rows.py). For training, `levels(target, rows)` gives one tensor of states per drafted
token: index j of level i (0-based) stands for token t_{j+2+i} and is compared with the target's f_{j+1+i}.
`logits(target, state)` turns a state into logits.
"""

from pathlib import Path


def load(folder: Path):
    """The head in a folder, or a small model: which, config.json's `model_type` and `architectures` say."""
    import json

    from .. import hf
    from . import dflash, eagle, eagle3, fasteagle, hydra, medusa

    config = json.loads((folder / "config.json").read_text())
    kinds = {"LlamaForCausalLMEagle3": eagle3, "EagleModel": eagle, "LlamaForCausalLM": hf,
             "medusa": medusa, "hydra": hydra, "fasteagle": fasteagle, "DFlashDraftModel": dflash}
    for name in (*config.get("architectures", []), config["model_type"]):
        if name in kinds:
            return kinds[name].load(folder)
    raise ValueError(f"{folder}: no head or model that this package knows")
