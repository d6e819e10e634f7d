"""An attack: nonsense in a model folder whose checksums agree, as a stranger may make one."""

import json
import math
import shutil
from pathlib import Path
from random import Random
from typing import Any

import yaml

from onmt_entmax.checkpoint import checkpoint_steps
from onmt_entmax.files.checksums import write_list
from tests.commands import run
from tests.faults.attacked_calls import TriedCase, arguments_of, bug

# Values to put into a configuration or a vocabulary.
NONSENSE: tuple[Any, ...] = (
    0, -1, 3, 10**9, 2**63, 0.5, 1e308, math.nan, -math.inf, None, True, "", "nan", "LSTM",
    "x" * 100_000, "\0", "../..", [], [[]], ["a"], {}, {"a": {"b": []}},
)  # fmt: skip
_CALLS = ("translate", "score", "suggest", "export", "train")  # that read a model folder


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


def replace_value(path: Path, random: Random) -> str:
    """Put nonsense in the place of a value of a YAML or JSON file; return what was done."""
    value = random.choice(NONSENSE)
    # YAML 1.1, which reads JSON files, too.
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    part = random.choice([key for key in content if isinstance(content[key], (dict, list))])
    inner = content[part]
    key = random.choice([*inner] if isinstance(inner, dict) else range(len(inner)))
    inner[key] = value
    dump = json.dumps if path.suffix == ".json" else yaml.safe_dump
    path.write_text(dump(content), encoding="utf-8")
    return f"{part}.{key} = {value!r:.40}"


def _spoil_file(model: Path, random: Random) -> str:
    """Put nonsense into a file of a model folder; return what was done.

    In half of the cases it is the configuration, which has the most settings.
    """
    names = ("config.yaml", "vocab.json", "model.safetensors")
    (name,) = random.choices(names, weights=[2, 1, 1])
    spoil = damage_header if name == "model.safetensors" else replace_value
    return f"{name} with {spoil(model / name, random)}"


def _arguments(call: str, model: Path, world: Path, folder: Path) -> list[str]:
    """Return the arguments of a call that reads the model in place of the run in `world`."""
    if call == "train":
        return [*arguments_of(call, world, folder), "-train_from", str(model)]
    return arguments_of(call, world, folder, model)


def spoil_model_folder(world: Path, random: Random, folder: Path) -> TriedCase:
    """Put nonsense into a model folder, with checksums that agree, and use the folder.

    Args:
        world: has the run, see `attacked_calls.build`.
        random: chooses the nonsense and the call.
        folder: an empty one, for the damaged copy of the run and the outputs.
    """
    run_folder = Path(shutil.copytree(world / "run", folder / "spoiled"))
    model = run_folder / f"step_{checkpoint_steps(run_folder)[-1]}"
    change = _spoil_file(model, random)
    write_list(model)
    call = random.choice(_CALLS)
    done = run("onmt_entmax", *_arguments(call, model, world, folder))
    return TriedCase(f"{call} of {change}", bug(done))
