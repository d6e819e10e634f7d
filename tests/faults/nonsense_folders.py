"""An attack: nonsense in a model folder whose checksums agree, as a stranger may make one."""

import json
import math
import shutil
from pathlib import Path
from random import Random
from typing import Any

import torch
import yaml

from onmt_entmax.checkpoint import STATE, checkpoint_steps
from onmt_entmax.files.checksums import write_list
from tests.commands import run
from tests.faults.attacked_calls import TriedCase, arguments_of, bug

# Values to put into a configuration or a vocabulary.
NONSENSE: tuple[Any, ...] = (
    0, -1, 3, 10**9, 2**63, 0.5, 1e308, math.nan, -math.inf, None, True, "", "nan", "LSTM",
    "x" * 100_000, "\0", "../..", [], [[]], ["a"], {}, {"a": {"b": []}},
)  # fmt: skip
_CALLS = ("translate", "score", "suggest", "export", "train")  # that read a model folder
_WHOLE_ENTRIES = 0.3  # share of the collections in a training state that are replaced whole


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


def replace_part_of_state(path: Path, random: Random) -> str:
    """Put nonsense in the place of an entry of a training state; return what was done."""
    state = torch.load(path, weights_only=True)
    part, keys = state, []
    while True:
        keys.append(random.choice([*part] if isinstance(part, dict) else range(len(part))))
        entry = part[keys[-1]]
        is_collection = isinstance(entry, (dict, list)) and len(entry) > 0
        if not is_collection or random.random() < _WHOLE_ENTRIES:
            break
        part = entry
    value = random.choice(NONSENSE)
    part[keys[-1]] = value
    torch.save(state, path)
    return f"{'.'.join(map(str, keys))} = {value!r:.40}"


_SPOILERS = {
    "config.yaml": replace_value,
    "vocab.json": replace_value,
    "model.safetensors": damage_header,
    STATE: replace_part_of_state,
}


def _arguments(call: str, model: Path, world: Path, folder: Path) -> list[str]:
    """Return the arguments of a call that reads the model in place of the run in `world`."""
    if call != "train":
        return arguments_of(call, world, folder, model)
    # A training that has nothing left to do would not restore its state.
    one_more = int(model.name.removeprefix("step_")) + 1
    more = ["-train_from", str(model), "-train_steps", str(one_more)]
    return [*arguments_of(call, world, folder), *more]


def spoil_model_folder(world: Path, random: Random, folder: Path) -> TriedCase:
    """Put nonsense into a model folder, with checksums that agree, and use the folder.

    Args:
        world: has the run, see `attacked_calls.build`.
        random: chooses the nonsense and the call.
        folder: an empty one, for the damaged copy of the run and the outputs.
    """
    run_folder = Path(shutil.copytree(world / "run", folder / "spoiled"))
    model = run_folder / f"step_{checkpoint_steps(run_folder)[-1]}"
    # The configuration has the most settings.
    (name,) = random.choices([*_SPOILERS], weights=[3, 1, 1, 1])
    change = _SPOILERS[name](model / name, random)
    write_list(model)
    call = "train" if name == STATE else random.choice(_CALLS)  # others do not read it
    done = run("onmt_entmax", *_arguments(call, model, world, folder))
    return TriedCase(f"{call} of {name} with {change}", bug(done))
