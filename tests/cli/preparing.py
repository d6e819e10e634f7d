"""Tables in the current folder, and calls of `onmt-entmax prepare table` that read them."""

import io
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from onmt_entmax.cli import prepare_table
from tests.cli.tables import write_table
from tests.in_process import Main, exit_status

PHONES = ["ploaie\tp lʷ a j e", "abil\ta b i l", "ochi\to kʲ"]
FORMS = ["draw\tV;PST\tdrew", "go\tV;PST\twent", "walk\tV;PRS\twalks"]


def write_tables(tables: Mapping[str | Path, Iterable[str]]) -> None:
    """Write tables by their paths."""
    for path, rows in tables.items():
        write_table(Path(path), *rows)


def read_lines(path: str | Path) -> list[str]:
    """Return the lines of a file, without their ends."""
    return Path(path).read_text(encoding="utf-8").splitlines()


class Printed(NamedTuple):
    """The standard output and the standard error of a command."""

    out: str
    errors: str


def prepare(*arguments: object, main: Main = prepare_table.main) -> Printed:
    """Prepare the folder `out`; return what was printed.

    Args:
        arguments: the arguments of the command but for `--out`.
        main: the function of the command.
    """
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as errors:
        assert exit_status(main, [*map(str, arguments), "--out", "out"]) == 0
    return Printed(out.getvalue(), errors.getvalue())


def prepare_rows(rows: Sequence[str], *options: object) -> Printed:
    """Prepare a table, to train on and to validate with."""
    write_tables({"a.trn": rows, "a.dev": rows})
    return prepare("--train", "a.trn", "--dev", "a.dev", *options)


def commands_in(text: str) -> list[str]:
    """Return the lines of a text that call `onmt-entmax`; they may be indented, or comments."""
    lines = [line.lstrip("# ") for line in text.splitlines()]
    return [line for line in lines if line.startswith("onmt-entmax ")]


def next_commands(printed: str) -> list[str]:
    """Return the commands that a command printed below `next:`."""
    *_, below = printed.partition("next:\n")
    return commands_in(below)


def written_options() -> dict[str, Any]:
    """Return the options of the configuration in `out`."""
    options: dict[str, Any] = yaml.safe_load(Path("out/train.yaml").read_text("utf-8"))
    return options


def shorten_training(config: Path) -> None:
    """Change a configuration to two updates of a tiny network."""
    options = yaml.safe_load(config.read_text("utf-8"))
    options |= {"train_steps": 2, "valid_steps": 1, "rnn_size": 8, "word_vec_size": 8}
    options |= {"warmup_steps": 1, "attention_warmup_steps": 1, "max_length": 4}
    config.write_text(yaml.safe_dump(options), encoding="utf-8")
