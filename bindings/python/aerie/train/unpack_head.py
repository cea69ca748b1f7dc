"""A packaged head as the checkpoint that `aerie convert` made it from, values as the runtime computes with them."""

from pathlib import Path

import torch
from flatbuffers import number_types as types

from .heads import dflash, eagle, eagle3, fasteagle, files, hydra, medusa
from .package_file import Package, Table


def refuse(package: Package, what: str) -> None:
    raise SystemExit(f"{package.path}: {what}: the trainers' head has none")


def params(drafter: Table) -> dict[str, float]:
    return {p.string(0): p.number(1, types.Float64Flags, 0.0) for p in drafter.children(2)}


def shape(package: Package, said: dict[str, float]) -> dict:
    """Of the heads with decoder layers, by the names of their configurations."""
    if "rope_scaling" in said:
        refuse(package, "scaled RoPE")
    whole = {"hidden_size": "hidden", "num_attention_heads": "heads", "num_key_value_heads": "kv_heads", "head_dim": "head_dim",
             "intermediate_size": "ffn", "vocab_size": "vocab_size", "max_position_embeddings": "positions"}
    out = {theirs: int(said[ours]) for theirs, ours in whole.items()}
    out |= {"rms_norm_eps": said["rms_eps"], "rope_theta": said["rope_theta"]}
    if "taps" in said:
        if said["taps"] != 3:
            refuse(package, f"{said['taps']:.0f} taps")
        out["eagle_aux_hidden_state_layer_ids"] = [int(said[f"tap.{i}"]) for i in range(int(said["taps"]))]
    return out


def layer(package: Package, at: str, said: dict[str, float]) -> dict[str, torch.Tensor]:
    return package.layer(at, *(int(said[name]) for name in ("heads", "kv_heads", "head_dim", "ffn")))


def under(prefix: str, state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {prefix + name: value for name, value in state.items()}


def linears(package: Package, names: dict[str, str]) -> dict[str, torch.Tensor]:
    """Weights with their biases; names: theirs -> ours."""
    return {f"{theirs}.{part}": package[ours + end] for theirs, ours in names.items()
            for part, end in (("weight", ""), ("bias", ".bias"))}


def unpack_eagle(package: Package, said: dict[str, float]):
    bias = "fc.bias" in package
    config = eagle.HeadConfig(**shape(package, said), bias=bias, qkv_bias="layers.0.attn.qkv.bias" in package)
    state = {"fc.weight": package["fc"], **under("layers.0.", layer(package, "layers.0.", said))}
    return eagle, eagle.EagleHead(config), state | ({"fc.bias": package["fc.bias"]} if bias else {})


def unpack_eagle3(package: Package, said: dict[str, float]):
    if "layers.0.attn.qkv.bias" in package:
        refuse(package, "biases of q, k and v")
    if {"norm_before_fc", "fc_norm", "norm_before_residual", "norm_output"} & said.keys():
        refuse(package, "EAGLE-3.1's norms")
    if "layers" in said:
        refuse(package, "several layers")
    head = eagle3.Eagle3Head(eagle3.Eagle3Config(draft_vocab_size=int(said["draft_vocab"]), **shape(package, said)))
    head.set_vocabulary(package["vocab_map"].long() if "vocab_map" in package else torch.arange(int(said["draft_vocab"])))
    norms = {"input_layernorm.weight": package["input_norm"], "hidden_norm.weight": package["hidden_norm"]}
    return eagle3, head, {
        "fc.weight": package["fc"], "norm.weight": package["norm"], "lm_head.weight": package["lm_head"],
        "d2t": head.d2t, "t2d": head.t2d, **under("midlayer.", norms | layer(package, "layers.0.", said))}


def unpack_fasteagle(package: Package, said: dict[str, float]):
    levels = int(said["levels"])
    config = fasteagle.FastEagleConfig(num_hidden_layers=levels, draft_top_k=int(said["top_k"]), **shape(package, said))
    state = {"fc.weight": package["fc"], "fc_in.weight": package["fc_in"]}
    for at in (f"layers.{index}." for index in range(levels)):
        state |= under(at, layer(package, at, said))
    return fasteagle, fasteagle.FastEagle(config), state


def unpack_dflash(package: Package, said: dict[str, float]):
    decoder = package.drafter.child(3)
    whole = lambda field: decoder.number(field, types.Int32Flags)
    scaling = decoder.child(11)
    if decoder.child(18) is not None or decoder.number(13, types.BoolFlags) or (scaling is not None and scaling.number(0, types.Uint8Flags)):
        refuse(package, "biases, scaled RoPE, windows, or layers of another family")
    config = dflash.DFlashConfig(
        num_hidden_layers=whole(3), block_size=int(said["block"]), mask_token_id=int(said["mask"]), num_target_layers=None,
        target_layer_ids=[int(said[f"tap.{i}"]) - 1 for i in range(int(said["taps"]))], vocab_size=whole(0), hidden_size=whole(2),
        num_attention_heads=whole(4), num_key_value_heads=whole(5), head_dim=whole(6), intermediate_size=whole(7), max_position_embeddings=whole(8),
        rms_norm_eps=decoder.number(9, types.Float32Flags), rope_theta=decoder.number(10, types.Float32Flags))
    state = {"fc.weight": package["fc"], "hidden_norm.weight": package["hidden_norm"], "norm.weight": package["norm"]}
    for at in (f"layers.{index}." for index in range(config.num_hidden_layers)):
        state |= under(at, package.layer(at, config.num_attention_heads, config.num_key_value_heads, config.head_dim, config.intermediate_size))
        state |= {f"{at}self_attn.{n}_norm.weight": package[f"{at}attn.{n}_norm"] for n in "qk"}
    return dflash, dflash.DFlash(config), state


def plain_heads(package: Package, said: dict[str, float]) -> tuple[int, int, int]:
    """Hidden size, heads and vocabulary of Medusa and Hydra as they are trained here."""
    if said["own_lm_heads"] or said["blocks"] != 1:
        refuse(package, "LM heads of its own, or other than one block a head")
    return int(said["hidden"]), int(said["heads"]), int(said["vocab_size"])


def unpack_medusa(package: Package, said: dict[str, float]):
    head = medusa.MedusaHead(*plain_heads(package, said))
    return medusa, head, linears(package, {f"{i}.0.linear": f"heads.{i}.0.linear" for i in range(len(head))})


def unpack_hydra(package: Package, said: dict[str, float]):
    if "prefix.norm" in package:
        refuse(package, "a prefix layer")
    head = hydra.HydraHead(*plain_heads(package, said))
    names = {}
    for i in range(len(head.hydra_mlp)):
        names |= {f"hydra_mlp.{i}.0.linear": f"heads.{i}.0.linear", f"hydra_mlp.{i}.0.res_connection": f"heads.{i}.res_connection"}
    return hydra, head, linears(package, names)


KINDS = {"eagle": unpack_eagle, "eagle3": unpack_eagle3, "fasteagle": unpack_fasteagle, "medusa": unpack_medusa,
         "hydra": unpack_hydra, "dflash": unpack_dflash}


def save(package: Package, out: Path) -> None:
    plugin = package.drafter.string(0)
    if plugin not in KINDS:
        raise SystemExit(f"{package.path}: {plugin}: no head that the trainers know")
    if "embed" in package:
        refuse(package, "an embedding of its own")
    kind, head, state = KINDS[plugin](package, params(package.drafter))
    kind.save(files.put(head, state), out)
