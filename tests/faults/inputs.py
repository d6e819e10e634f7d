"""Bad arguments and bad files for every option and every input of every command.

A case changes one thing in a good call. None may end in a traceback, a hang, or silently: with
status 0, but without the outputs of the good call.
"""

from __future__ import annotations

import argparse
import functools
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import yaml

from onmt_entmax.cli.main import COMMANDS
from onmt_entmax.options.reader import register
from onmt_entmax.options.train import training_parser
from onmt_entmax.options.translate import translation_parser
from tests.faults import folders
from tests.faults.attack import Attack
from tests.faults.running import attempt
from tests.faults.world import CALLS, World, existing

VALUES = (
    "", " ", "-1", "0", "1", "7", "1.5", "nan", "inf", "-inf", "1e400", "1e30", "1e9", "9" * 30,
    "9" * 5_000, "0x10", "1_000", "１", "1,2", "true", "None", "all", "-", "--", "-h", "*", "%s",
    "[1, 2", "{{'a': 1}}", "{{}}", "[]", "x" * 100_000, "\udcff", "a\nb", "\x1b[2J", "a b", "ä",
    "\u2028", "/dev/full", "/dev/null", "/dev/zero", "/", ".", "..", "http://127.0.0.1:1/", "{o}",
    "{o}/missing/file", "{o}/loop", "{o}/" + "n" * 300, "{w}/valid.src", "{w}/out.txt", "{w}/run",
    "{w}/run/best.json", "{w}/stock.pt",
)  # fmt: skip
LINES = (
    b"", b" ", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\t\t", b"a\tb\tc\td", b"x " * 3_000, b"\x1c",
    b"x" * 10**6, b"\xe2\x80\xa8", b"</s> <s> <blank>", b"<unk>", b"lang=english", b"{}", b"[]",
)  # fmt: skip
FILES = (
    "empty", "blank", "binary", "line", "line", "line", "cut", "twice", "crlf", "bom", "no end",
    "loop", "folder", "missing", "zero", "deep", "token",
)  # fmt: skip
PRUNED = ("help", "version")


@dataclass(frozen=True)
class Case:
    """A good call with one thing changed: an option, a file, or a key of a YAML file."""

    call: str
    kind: str  # "option", "file", "yaml" or "stdin"
    where: str  # the option; or the number of the argument that names the file
    seed: int
    value: str = ""

    def __str__(self) -> str:
        return f"{self.call}: {self.kind} {self.where} {self.value!a:.60} {self.seed}"


class _Found(Exception):
    """Carries a parser out of the command that has made it."""


@functools.cache
def options(call: str) -> dict[str, argparse.Action]:
    """Return the options of a call's command by flag, and its positions by name."""
    command, *rest = CALLS[call][0], *CALLS[call][2].split()
    name = max((c for c in COMMANDS if f"{command} ".startswith(f"{c} ")), key=len)
    words = [*command.split()[len(name.split()) :], *rest]
    if name in ("train", "translate"):
        parser = training_parser() if name == "train" else translation_parser()
        return {f"-{flag}": action for flag, action in register(parser).items()}

    def stop(parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        raise _Found(parser)

    patches = [
        mock.patch.object(argparse.ArgumentParser, method, stop)
        for method in ("parse_args", "parse_intermixed_args", "parse_known_args")
    ]
    main = import_module(f"onmt_entmax.cli.{COMMANDS[name]}").main
    try:
        with patches[0], patches[1], patches[2]:
            main(words)
    except _Found as found:
        parser = found.args[0]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            parser = action.choices[words[0]]
    found_actions = {}
    for action in parser._actions:
        if action.dest not in PRUNED:
            for flag in action.option_strings or [action.dest]:
                found_actions[flag] = action
    return found_actions


def draw(world: World, generator: Random) -> Case:
    """Draw a call, and what is changed in it."""
    call = generator.choice([*existing(), "train", "translate"])
    words = CALLS[call][2].split()
    files = [n for n, word in enumerate(words) if word.startswith("{w}/") and word != "{w}/rows"]
    kinds = ["option", "option", "option", *(["file", "file"] if files else [])]
    kinds += ["yaml"] * 2 if call == "train" else []
    kinds += ["stdin"] if CALLS[call][1] else []
    kind = generator.choice(kinds)
    seed = generator.randrange(2**32)
    if kind == "option":
        flag = generator.choice(sorted(options(call)))
        return Case(call, kind, flag, seed, generator.choice(VALUES))
    if kind == "file":
        return Case(call, kind, str(generator.choice(files)), seed, generator.choice(FILES))
    return Case(call, kind, "", seed, generator.choice(FILES) if kind == "stdin" else "")


def spoilt(content: bytes, how: str, generator: Random) -> bytes:
    """Return bad content in the place of a good one."""
    lines = content.split(b"\n")
    number = generator.randrange(len(lines))
    if how == "empty":
        return b""
    if how == "blank":
        return b"\n" * generator.choice([1, len(lines) - 1])
    if how == "binary":
        return generator.randbytes(4096)
    if how == "line":
        lines[number] = generator.choice(LINES)
    elif how == "cut":
        return content[: generator.randrange(len(content) + 1)]
    elif how == "twice":
        lines.insert(number, lines[number])
    elif how == "crlf":
        return content.replace(b"\n", b"\r\n")
    elif how == "bom":
        return b"\xef\xbb\xbf" + content
    elif how == "no end":
        return content.rstrip(b"\n")
    elif how == "deep":
        lines[number] = b"[" * 100_000 if generator.random() < 0.5 else b'{"a":' * 5_000
    elif how == "token":  # a value of a JSON line, or a word
        words = lines[number].split(b" ")
        words[generator.randrange(len(words))] = generator.choice(LINES)
        lines[number] = b" ".join(words)
        try:
            row, _ = folders.changed(json.loads(content.split(b"\n")[number]), generator)
            lines[number] = json.dumps(row).encode()
        except (ValueError, IndexError):
            pass
    return b"\n".join(lines)


def _odd(path: Path, how: str) -> bool:
    """Put what is no file in a place; return whether `how` is of that kind."""
    if how == "loop":
        path.symlink_to(path.name)
    elif how == "folder":
        path.mkdir()
    elif how == "zero":
        path.symlink_to("/dev/zero")
    elif how != "missing":
        return False
    return True


def _spoil_yaml(words: list[str], place: Path, generator: Random) -> str:
    """Change a YAML file of a call; return what was done."""
    number = next(n for n, word in enumerate(words) if word.endswith(".yaml"))
    content = yaml.safe_load(Path(words[number]).read_text(encoding="utf-8"))
    path = place / "bad.yaml"
    if generator.random() < 0.2:
        text = generator.choice(folders.TEXTS)
        path.write_text(text, encoding="utf-8")
        what = text[:20]
    else:
        if "-config" in words and generator.random() < 0.8:  # any option of training
            keys = sorted({flag.lstrip("-") for flag in options("train")} - {"data", "save_model"})
            key = generator.choice(keys)
            content[key] = value = generator.choice(folders.ABSURD)
            what = f"{key}: {value!r:.40}"
        else:
            content, what = folders.changed(content, generator)
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
    words[number] = str(path)
    return what


def check(world: World, case: Case, place: Path) -> str | None:
    """Change a good call as the case says, and make it."""
    generator = Random(case.seed)
    # A bad argument may name a file of the world as an output.
    world = World(Path(shutil.copytree(world.folder, place / "world")))
    words = world.call(case.call, place)
    stdin: str | bytes = world.stdin(case.call)
    what = ""
    if case.kind == "option":
        words = _with(world, case, place, words)
    elif case.kind == "file":
        number = len(words) - len(CALLS[case.call][2].split()) + int(case.where)
        path = Path(words[number])
        if path.is_dir():
            words[number] = str(place / "bad")
            _odd(place / "bad", case.value)
        elif not _odd(place / "bad", case.value):
            content = spoilt(path.read_bytes(), case.value, generator)
            (place / "bad").write_bytes(content)
        words[number] = str(place / "bad")
    elif case.kind == "yaml":
        what = _spoil_yaml(words, place, generator)
    else:
        stdin = spoilt(stdin.encode(), case.value, generator) if isinstance(stdin, str) else stdin
    before = _sizes(place)
    ended = attempt(words, place, stdin=stdin)
    wrong = ended.bug()
    if wrong is None and ended.status == 0 and not ended.stdout.strip() and _sizes(place) == before:
        said = [line for line in ended.stderr.splitlines() if line.strip()]
        if not said:
            wrong = "status 0, and neither an output nor a word"
    return None if wrong is None else f"({what}) {wrong}" if what else wrong


def _with(world: World, case: Case, place: Path, words: list[str]) -> list[str]:
    """Return a call with an option's value; an option that it has already gets another one."""
    (place / "loop").symlink_to("loop")
    value = case.value.format(o=place, w=world.folder)
    action = options(case.call)[case.where]
    if not action.option_strings:
        number = next((n for n, w in enumerate(words) if w.startswith("/")), len(words) - 1)
        return [*words[:number], value, *words[number + 1 :]]
    if action.nargs == 0:
        return [*words, case.where]
    same: Sequence[str] = [flag for flag in action.option_strings if flag in words]
    if same:
        number = words.index(same[0])
        return [*words[: number + 1], value, *words[number + 2 :]]
    return [*words, case.where, *([value] * (action.nargs if isinstance(action.nargs, int) else 1))]


def _sizes(place: Path) -> dict[str, int]:
    """Return the sizes of the files below a folder."""
    return {str(path): path.lstat().st_size for path in place.rglob("*")}


INPUTS = Attack("inputs", draw, check)
