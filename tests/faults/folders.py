"""Hostile model folders: what a stranger may send, with checksums that agree.

A case changes one thing in a good model folder and calls a command. It must end within seconds and
a bounded memory, with status 0 or one line.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
import yaml

from onmt_entmax.checksums import write_list
from tests.faults.attack import Attack
from tests.faults.running import attempt
from tests.faults.world import STEPS, World, existing

ABSURD: tuple[Any, ...] = (
    0, -1, 3, 10**9, 2**63, 10**400, 0.5, 1.25, 1e308, float("nan"), float("inf"), -float("inf"),
    None, True, False, "", "nan", "LSTM", "x" * 100_000, "1_" * 20_000, "1:" * 20_000, "\0",
    "../..", [], [[]], [1, 2], ["a"], {}, {"a": 1}, {"a": {"b": []}},
)  # fmt: skip
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
TEXTS = (
    "", "\0", "[" * 100_000, "{a: " * 5_000, "- " * 20_000, BOMB, "a: &a [*a]\n", "&a {a: *a}",
    "null", "[1, 2]", "!!python/object/apply:os.system [true]", "a: b\na: c\n", "\t", "? ? ?",
    "\ufeff{}",
    "2001-02-30", '{"source": [], "target": []}', "%YAML 9.9\n---\n", "'" * 10_001, "<<: *a",
)  # fmt: skip
REPLACEMENTS = ("pipe", "zero", "full", "loop", "folder", "missing", "hole", "text")
FILES = ("config.yaml", "vocab.json", "model.safetensors", "training/state.pt")
CALLS = {
    "translate": "-model {m} -src {w}/valid.src -output {o}/out -max_length 8",
    "score": "-model {m} -src {w}/valid.src -tgt {w}/valid.tgt -output {o}/out",
    "suggest": "{m} --source lang=english --prefix a --max_length 8",
    "inflect": "--model {m} --input {w}/queries --output {o}/out",
    "train": "-config {w}/toy.yaml -save_model {o}/run -train_from {m} -train_steps 32",
    "verify": "{m}",
    "export": "{m} {o}/released",
}


@dataclass(frozen=True)
class Case:
    """A changed file of a model folder, and the command that uses the folder."""

    call: str
    file: str
    change: str  # how to change it; see `CHANGES`
    seed: int  # of the change

    def __str__(self) -> str:
        return f"{self.call} of a model whose {self.file} has {self.change} {self.seed}"


def leaves(content: Any, path: tuple = ()) -> list[tuple]:
    """Return the paths of all values in nested dictionaries and lists, but few of long lists."""
    found = [path] if path else []
    if isinstance(content, dict):
        for key, value in content.items():
            found += leaves(value, (*path, key))
    elif isinstance(content, (list, tuple)):
        for number in sorted(
            {0, 1, len(content) // 2, len(content) - 1} & set(range(len(content)))
        ):
            found += leaves(content[number], (*path, number))
    return found


def changed(content: Any, generator: Random, values: tuple[Any, ...] = ABSURD) -> tuple[Any, str]:
    """Return a copy in which one value is absurd, missing, or new; and what was done."""
    content = copy.deepcopy(content)
    path = generator.choice(leaves(content))
    above = content
    for key in path[:-1]:
        above = above[key]
    if isinstance(above, tuple):  # cannot be changed in place: its place gets the value
        return changed(content, generator, values)
    what = generator.random()
    if what < 0.1:
        del above[path[-1]]
        return content, f"no {path}"
    if what < 0.15 and isinstance(above, dict):
        above["surprise"] = 1
        return content, f"more in {path[:-1]}"
    above[path[-1]] = value = generator.choice(values)
    return content, f"{path}: {value!r:.40}"


def _change_config(path: Path, generator: Random) -> str:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    part = generator.choice(["model"] * 6 + ["options", "all"])
    if part == "all":
        content, what = changed(content, generator)
    else:
        content[part], what = changed(content[part], generator)
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return what


def _change_vocabulary(path: Path, generator: Random) -> str:
    content = json.loads(path.read_text(encoding="utf-8"))
    side = generator.choice(["source", "target"])
    tokens = content[side]
    kind = generator.choice("value value twice missing order many newline side".split())
    if kind == "value":
        content, what = changed(content, generator)
        path.write_text(json.dumps(content), encoding="utf-8")
        return what
    number = generator.randrange(len(tokens))
    if kind == "twice":
        tokens[number] = generator.choice(tokens)
    elif kind == "missing":
        del tokens[number]
    elif kind == "order":
        generator.shuffle(tokens)
    elif kind == "many":
        tokens += [f"t{i}" for i in range(generator.choice([1, 1_000_000]))]
    elif kind == "newline":
        tokens[number] = generator.choice(["a\nb", "a b", "", "\x1b[2J", "\u2028", "\ud800", " "])
    else:
        del content[side]
    path.write_text(json.dumps(content), encoding="utf-8")
    return f"{kind} {side} {number}"


def _change_weights(path: Path, generator: Random) -> str:
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header, body = json.loads(raw[8 : 8 + size]), bytearray(raw[8 + size :])
    kind = generator.choice("header header dtype shape size nan infinite missing".split())
    name = generator.choice([key for key in header if key != "__metadata__"])
    start, end = header[name]["data_offsets"]
    if kind == "header":
        header, _ = changed(header, generator)
    elif kind == "dtype":
        header[name]["dtype"] = generator.choice(["F64", "F16", "BF16", "I64", "BOOL", "F8_E4M3"])
    elif kind == "shape":
        header[name]["shape"] = generator.choice([[], [0], [2**40, 2**40], [-1], [end - start]])
    elif kind in ("nan", "infinite"):
        value = struct.pack("<f", float("nan" if kind == "nan" else "inf"))
        body[start:end] = value * ((end - start) // 4)
    elif kind == "missing":
        del header[name]
    text = json.dumps(header).encode()
    length = generator.choice([0, 2**40, 2**63, len(text) - 1]) if kind == "size" else len(text)
    path.write_bytes(struct.pack("<Q", length) + text + body)
    return f"{kind} {name}"


def _change_state(path: Path, generator: Random) -> str:
    content = torch.load(path, map_location="cpu", weights_only=True)
    tensors = (
        torch.zeros(0), torch.zeros(3, 1), torch.full((2,), float("nan")), torch.tensor(1),
        torch.zeros(2, dtype=torch.int64), torch.zeros(2, dtype=torch.uint8), torch.zeros(1, 1, 1),
        torch.zeros(5056, dtype=torch.uint8), torch.zeros(2, 2).to_sparse(),
        torch.zeros(1).expand(9),
    )  # fmt: skip
    plain = tuple(value for value in ABSURD if value != 10**400)
    content, what = changed(content, generator, (*plain, *tensors, *tensors))
    torch.save(content, path)
    return what


def _replace(path: Path, generator: Random, kind: str | None = None) -> str:
    """Put something else in the place of a file."""
    kind = kind or generator.choice(REPLACEMENTS)
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind in ("zero", "full"):
        path.symlink_to(f"/dev/{kind}")
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "folder":
        path.mkdir()
    elif kind == "hole":
        with open(path, "wb") as file:
            file.truncate(1 << 40)
    elif kind == "text":
        path.write_text(generator.choice(TEXTS), encoding="utf-8")
    return kind


CHANGES: dict[str, Callable[[Path, Random], str]] = {
    "config.yaml": _change_config,
    "vocab.json": _change_vocabulary,
    "model.safetensors": _change_weights,
    "training/state.pt": _change_state,
    "best.json": _replace,
}


def draw(world: World, generator: Random) -> Case:
    """Draw a file, a change and a command that reads the file."""
    file = generator.choice([*FILES, *FILES, "config.yaml", "best.json"])
    calls = [call for call in CALLS if call in existing()]
    if file == "training/state.pt":
        calls = [call for call in calls if call in ("train", "verify", "export")] + ["train"] * 4
    change = "replaced" if file == "best.json" or generator.random() < 0.3 else "changed"
    return Case(generator.choice(calls), file, change, generator.randrange(2**32))


def check(world: World, case: Case, place: Path) -> str | None:
    """Change a copy of a model folder and use it."""
    generator = Random(case.seed)
    if case.file == "best.json":
        model = place / "model"
        shutil.copytree(world.run, model)
    else:
        model = place / "model"
        shutil.copytree(world.run / f"step_{STEPS}", model)
    path = model / case.file
    what = (_replace if case.change == "replaced" else CHANGES[case.file])(path, generator)
    regular = path.is_file() and not path.is_symlink() and what != "hole"
    if case.file != "best.json" and (regular or what == "missing"):
        write_list(model)  # so that it is not the checksum that refuses the file
    arguments = [word.format(m=model, w=world.folder, o=place) for word in CALLS[case.call].split()]
    ended = attempt([case.call, *arguments], place)
    wrong = ended.bug()
    if wrong is None and ended.status == 0:
        wrong = _nonsense(case, world, place, ended.stdout)
    return None if wrong is None else f"({what}) {wrong}"


def _nonsense(case: Case, world: World, place: Path, printed: str) -> str | None:
    """Say what no good model can have answered."""
    text = printed
    if (place / "out").is_file():
        text += (place / "out").read_text(encoding="utf-8")
        sources = (world.folder / "valid.src").read_text(encoding="utf-8").count("\n")
        if case.call == "translate" and text.count("\n") - printed.count("\n") != sources:
            return "status 0 and another number of lines"
    if "nan" in text.lower().split() or "NaN" in text:
        return "status 0 and nan"
    return None


FOLDERS = Attack("folders", draw, check)
