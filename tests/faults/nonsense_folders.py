"""An attack: nonsense in a model folder whose checksums agree, as a stranger may make one."""

import json
import math
import shutil
from pathlib import Path
from random import Random
from typing import Any

import yaml

from onmt_entmax.files.checksums import write_list
from tests.commands import run
from tests.faults.attacked_calls import CALLS, Outcome, bug, words

# Values of a configuration or a vocabulary.
NONSENSE: tuple[Any, ...] = (
    0, -1, 3, 10**9, 2**63, 0.5, 1e308, math.nan, -math.inf, None, True, "", "nan", "LSTM",
    "x" * 100_000, "\0", "../..", [], [[]], ["a"], {}, {"a": {"b": []}},
)  # fmt: skip
_WEIGHTS = "model.safetensors"
# Files to choose from: the configuration, which has the most settings, in half of the cases.
_FILES = ("config.yaml", "config.yaml", "vocab.json", _WEIGHTS)
_CALLS = ("translate", "score", "suggest", "export", "train")  # that read a model folder
_STEP = "step_30"  # the last checkpoint of the run


def damage_header(path: Path, random: Random) -> str:
    """Replace a byte in the header of a safetensors file by up to three; return what was done.

    The header is JSON; the first eight bytes of the file are its length.
    """
    content = path.read_bytes()
    size = 8 + int.from_bytes(content[:8], "little")
    position = random.randrange(size)
    inserted = random.randbytes(random.randrange(4))
    path.write_bytes(content[:position] + inserted + content[position + 1 :])
    return f"header at {position}"


def replace_value(path: Path, value: Any, random: Random) -> str:
    """Put a value into a YAML or JSON file; return what was done."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    part = random.choice([key for key in content if isinstance(content[key], (dict, list))])
    inner = content[part]
    key = random.choice([*inner] if isinstance(inner, dict) else range(len(inner)))
    inner[key] = value
    dump = json.dumps if path.suffix == ".json" else yaml.safe_dump
    path.write_text(dump(content), encoding="utf-8")
    return f"{part}.{key} = {value!r:.40}"


def spoil_model_folder(world: Path, random: Random, folder: Path) -> Outcome:
    """Put nonsense into a model folder, with checksums that agree, and use the folder."""
    model = Path(shutil.copytree(world / "run", folder / "run")) / _STEP
    name = random.choice(_FILES)
    value = random.choice(NONSENSE)
    if name == _WEIGHTS:
        change = damage_header(model / name, random)
    else:
        change = replace_value(model / name, value, random)
    write_list(model)
    call = random.choice(_CALLS)
    arguments = words(CALLS[call].replace("{w}/run", str(model)), world, folder)
    if call == "train":
        arguments += ["-train_from", str(model), "-save_model", str(folder / "new")]
    return Outcome(f"{call} of {name} with {change}", bug(run("onmt_entmax", *arguments)))
