"""Settings of a training run: a dataclass filled from a TOML recipe, then from the command line."""

import argparse
import tomllib
from dataclasses import fields
from pathlib import Path

RECIPES = Path(__file__).parent / "recipes"


def parse(settings_class, default_recipe: str, description: str, argv=None):
    """`--recipe FILE` gives the values; every field is also an option (`--muon-lr 0.01`)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--recipe", type=Path, default=RECIPES / default_recipe)
    for field in fields(settings_class):
        option = "--" + field.name.replace("_", "-")
        if field.type is bool:
            parser.add_argument(option, action=argparse.BooleanOptionalAction, default=None)
        else:
            parser.add_argument(option, type=field.type, default=None)
    args = vars(parser.parse_args(argv))
    values = tomllib.loads(args.pop("recipe").read_text())
    unknown = set(values) - {field.name for field in fields(settings_class)}
    if unknown:
        parser.error(f"unknown keys in the recipe: {', '.join(sorted(unknown))}")
    values.update({key: value for key, value in args.items() if value is not None})
    missing = [f.name for f in fields(settings_class) if f.name not in values]
    if missing:
        parser.error("missing: " + ", ".join("--" + name.replace("_", "-") for name in missing))
    return settings_class(**{f.name: f.type(values[f.name]) for f in fields(settings_class)})
