"""A path that nobody can read or write ends a command with one line, and nothing is written.

The commands are all but `verify`, which reports such a path as one of its findings. Two cases of
`import-onmt` need a whole checkpoint of OpenNMT-py: see `test_import_onmt.py`.
"""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import ending
from tests.cli.calls_with_paths import CALLS
from tests.cli.path_inputs import write_inputs, write_training
from tests.commands import console
from tests.in_process import Main, exit_status, success

# Two calls do not succeed: `serve` would never end, and `checkpoint` is an empty file.
SUCCESSFUL = CALLS.keys() - {"serve", "import"}

# Paths that cannot be used, by their kind. File systems hold names of at most 255 bytes.
UNUSABLE = {"below a loop": "loop/file", "null": "a\0b", "long": "x" * 300, "empty": ""}
# What the error has of each.
NAMED = {"below a loop": "loop", "null": r"a\x00b", "long": "x" * 100, "empty": "is empty"}
# Commands with OpenNMT-py's options take an empty path as no value; what the error has then.
EMPTY = {
    ("train", "toy.yaml"): "data: this option is required",
    ("translate", "sentences"): ".: not a model folder",
    ("translate", "lines"): "src: this option is required",
    ("translate", "translated"): ".: is a folder already",
}
# Cases by command, path and kind.
LEFT_OUT = {
    ("translate", "certificates", "empty"),  # no report is written
    ("import", "imported", "below a loop"),  # in `test_import_onmt.py`
    ("import", "imported", "null"),
}


class Case(NamedTuple):
    """A call with an unusable path, and what the error names."""

    main: Main
    arguments: list[str]
    named: str


CASES = {
    f"{name} {path}: {kind}": Case(
        call.main,
        call.replaced(path, unusable),
        EMPTY.get((name, path), NAMED[kind]) if kind == "empty" else NAMED[kind],
    )
    for name, call in CALLS.items()
    for path in call.paths.split()
    for kind, unusable in UNUSABLE.items()
    if (name, path, kind) not in LEFT_OUT
}
# Beginnings of other lines, which `train` and `distill` print before the error.
OTHER_LINES = ("warning: ", "note: ", "learning ")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory, inflection_model: Path) -> Path:
    """A folder with the files that the calls read, and a link to itself; tests do not change it."""
    folder = tmp_path_factory.mktemp("inputs")
    write_inputs(folder, inflection_model)
    (folder / "loop").symlink_to("loop")
    return folder


@pytest.mark.parametrize("name", sorted(SUCCESSFUL))
def test_a_call_succeeds_if_all_paths_are_usable(
    name: str, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control: nothing but the path is wrong in the cases below."""
    if name == "prepare files":
        pytest.importorskip("sentencepiece")
    shutil.copytree(inputs, tmp_path, symlinks=True, dirs_exist_ok=True)
    write_training(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ending, "CONSOLE", tuple(console()))  # `audit` and `distill` start others
    success(CALLS[name].main, CALLS[name].words.split())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_path_that_cannot_be_used_is_named_in_one_line(
    case: Case, inputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written, so all cases share a folder."""
    monkeypatch.chdir(inputs)
    before = sorted(inputs.rglob("*"))
    assert exit_status(case.main, case.arguments) == 2
    printed = capsys.readouterr().err.splitlines()
    lines = [line for line in printed if not line.startswith(OTHER_LINES)]
    assert len(lines) == 1, lines
    assert lines[0].isprintable()
    assert case.named in lines[0]
    assert sorted(inputs.rglob("*")) == before
