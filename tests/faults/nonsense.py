"""Nonsense: in a model folder whose checksums agree, in an option, or in a file."""

import functools
import json
import math
import re
import shutil
from pathlib import Path
from random import Random
from typing import Any

import yaml

from onmt_entmax.files.checksums import write_list
from tests.commands import run
from tests.faults.attacked_calls import CALLS, Outcome, bug, words

NONSENSE: tuple[Any, ...] = (  # values of a configuration or a vocabulary
    0, -1, 3, 10**9, 2**63, 0.5, 1e308, math.nan, -math.inf, None, True, "", "nan", "LSTM",
    "x" * 100_000, "\0", "../..", [], [[]], ["a"], {}, {"a": {"b": []}},
)  # fmt: skip
OPTION_VALUES = (
    "", " ", "-1", "0", "1", "1.5", "nan", "-inf", "1e400", "9" * 5000, "1_000", "１", "true",
    "-", "--", "*", "%s", "[1, 2", "{{'a': 1}}", "x" * 100_000, "\udcff", "a\nb", "\x1b[2J", "ä",
    "/dev/full", "/dev/zero", "/", ".", "{o}/missing/file", "{w}/valid.src", "{w}/run",
)  # fmt: skip
BAD_CONTENTS = (b"", b"\n", b"\0", b"a\n\xff\n", b"x " * 3000, b"{}\n", b"[" * 9999)  # of files


def damage_header(path: Path, random: Random) -> str:
    """Replace a byte in the header of a safetensors file; return what was done."""
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


def folders(world: Path, random: Random, folder: Path) -> Outcome:
    """Put nonsense into a model folder, with checksums that agree."""
    model = Path(shutil.copytree(world / "run", folder / "run")) / "step_30"
    name = random.choice(["config.yaml", "config.yaml", "vocab.json", "model.safetensors"])
    value = random.choice(NONSENSE)
    if name == "model.safetensors":
        change = damage_header(model / name, random)
    else:
        change = replace_value(model / name, value, random)
    write_list(model)
    call = random.choice(["translate", "score", "suggest", "export", "train"])
    arguments = words(CALLS[call].replace("{w}/run", str(model)), world, folder)
    if call == "train":
        arguments += ["-train_from", str(model), "-save_model", str(folder / "new")]
    return Outcome(f"{call} of {name} with {change}", bug(run("onmt_entmax", *arguments)))


@functools.cache
def options(command: str) -> list[str]:
    """Return the options that the help of a command names."""
    done = run("onmt_entmax", command, "--help-all" if command in ("train", "translate") else "-h")
    return sorted(
        set(re.findall(r"(?<![\w-])--?[a-z_]{3,}", done.stdout)) - {"--help", "--help-all"}
    )


def inputs(world: Path, random: Random, folder: Path) -> Outcome:
    """Give an option a bad value, or a command a bad file in place of one that it reads."""
    call = random.choice([*CALLS])
    arguments = words(CALLS[call], world, folder)
    if options(call) and random.random() < 0.7:
        option = random.choice(options(call))
        value = random.choice(OPTION_VALUES).format(w=world, o=folder)
        arguments += [option, value]
        case = f"{call} {option} {value!a:.60}"
    else:
        files = [n for n, word in enumerate(arguments) if word.startswith(f"{world}/") and n]
        place = random.choice(files)
        content = random.choice(BAD_CONTENTS)
        (folder / "bad").write_bytes(content)
        arguments[place] = str(folder / "bad")
        case = f"{call} {arguments[place - 1]} {content!r:.40}"
    return Outcome(case, bug(run("onmt_entmax", *arguments, cwd=folder)))
