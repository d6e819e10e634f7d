"""An attack: nonsense as the value of an option, or as the content of a file that a call reads."""

import functools
import re
from pathlib import Path
from random import Random

from tests.commands import run
from tests.faults.attacked_calls import CALLS, Outcome, bug, words

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


def spoil_input(world: Path, random: Random, folder: Path) -> Outcome:
    """Give a command a bad value of an option, or a bad file in place of one that it reads."""
    call = random.choice([*CALLS])
    arguments = words(CALLS[call], world, folder)
    if options(call) and random.random() < _OPTIONS:
        option = random.choice(options(call))
        value = random.choice(OPTION_VALUES).format(w=world, o=folder)
        arguments += [option, value]
        case = f"{call} {option} {value!a:.60}"
    else:
        places = [n for n, word in enumerate(arguments) if word.startswith(f"{world}/") and n]
        place = random.choice(places)
        content = random.choice(CONTENTS)
        (folder / "bad").write_bytes(content)
        arguments[place] = str(folder / "bad")
        case = f"{call} {arguments[place - 1]} {content!r:.40}"
    return Outcome(case, bug(run("onmt_entmax", *arguments, cwd=folder)))
