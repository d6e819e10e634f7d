"""An attack: nonsense as the value of an option, or as the content of a file that a call reads."""

import functools
import re
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.commands import run
from tests.faults.attacked_calls import CALLS, TriedCase, arguments_of, bug

# {w} is the folder that the calls read, {o} that of the outputs.
OPTION_VALUES = (
    "", " ", "-1", "0", "1", "1.5", "nan", "-inf", "1e400", "9" * 5000, "1_000", "１", "true",
    "-", "--", "*", "%s", "[1, 2", "{{'a': 1}}", "x" * 100_000, "\udcff", "a\nb", "\x1b[2J", "ä",
    "/dev/full", "/dev/zero", "/", ".", "{o}/missing/file", "{w}/valid.src", "{w}/run",
)  # fmt: skip
CONTENTS = (b"", b"\n", b"\0", b"a\n\xff\n", b"x " * 3000, b"{}\n", b"[" * 9999)  # of files
_OPTIONS = 0.7  # share of the cases with a bad option; the others have a bad file


@functools.cache
def options(command: str) -> list[str]:
    """Return the options that the help of a command names."""
    done = run("onmt_entmax", command, "--help-all" if command in ("train", "translate") else "-h")
    return sorted(
        set(re.findall(r"(?<![\w-])--?[a-z_]{3,}", done.stdout)) - {"--help", "--help-all"}
    )


class SpoiltCall(NamedTuple):
    """The arguments of a call, and in a few words what was spoilt."""

    arguments: list[str]
    case: str


def _spoil_option(call: str, world: Path, folder: Path, random: Random) -> SpoiltCall:
    """Add an option with a bad value to a call."""
    option = random.choice(options(call))
    value = random.choice(OPTION_VALUES).format(w=world, o=folder)
    arguments = [*arguments_of(call, world, folder), option, value]
    return SpoiltCall(arguments, f"{call} {option} {value!a:.60}")


def _spoil_file(call: str, world: Path, folder: Path, random: Random) -> SpoiltCall:
    """Put a bad file in the place of one that a call reads."""
    arguments = arguments_of(call, world, folder)
    read = [n for n, word in enumerate(arguments) if word.startswith(f"{world}/")]
    place = random.choice(read)
    content = random.choice(CONTENTS)
    (folder / "bad").write_bytes(content)
    arguments[place] = str(folder / "bad")
    return SpoiltCall(arguments, f"{call} {arguments[place - 1]} {content!r:.40}")


def spoil_input(world: Path, random: Random, folder: Path) -> TriedCase:
    """Try a random call with a bad value of an option, or with a bad file."""
    call = random.choice([*CALLS])
    has_bad_option = options(call) and random.random() < _OPTIONS
    spoil = _spoil_option if has_bad_option else _spoil_file
    spoilt = spoil(call, world, folder, random)
    return TriedCase(spoilt.case, bug(run("onmt_entmax", *spoilt.arguments, cwd=folder)))
