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


class Unusable(NamedTuple):
    """A path that cannot be used, and the part of it that an error has."""

    path: str
    named: str


UNUSABLE = {
    "below a loop": Unusable("loop/file", named="loop"),
    "null": Unusable("a\0b", named=r"a\x00b"),
    "long": Unusable("x" * 300, named="x" * 100),  # file systems hold names of at most 255 bytes
    "empty": Unusable("", named="is empty"),
}

# Commands with OpenNMT-py's options take an empty path as no value, and have other errors.
OTHER_ERRORS = {
    ("train", "toy.yaml", "empty"): "data: this option is required",
    ("translate", "sentences", "empty"): ".: not a model folder",
    ("translate", "lines", "empty"): "src: this option is required",
    ("translate", "translated", "empty"): ".: is a folder already",
}
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


def cases() -> dict[str, Case]:
    """Return the cases by their names: each path of each call with each kind of unusable path."""
    cases = {}
    for name, call in CALLS.items():
        for path in call.paths.split():
            for kind, unusable in UNUSABLE.items():
                key = (name, path, kind)
                if key not in LEFT_OUT:
                    named = OTHER_ERRORS.get(key, unusable.named)
                    arguments = call.replaced(path, unusable.path)
                    cases[f"{name} {path}: {kind}"] = Case(call.main, arguments, named)
    return cases


CASES = cases()
# Beginnings of other lines, which `train` and `distill` print before the error.
OTHER_LINES = ("warning: ", "note: ", "learning ")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory, inflection_model: Path) -> Path:
    """A folder with the files that the calls read, and a link to itself; tests only read it."""
    folder = tmp_path_factory.mktemp("inputs")
    write_inputs(folder, inflection_model)
    (folder / "loop").symlink_to("loop")
    return folder


@pytest.mark.parametrize("name", sorted(SUCCESSFUL))
def test_a_call_succeeds_if_all_paths_are_usable(
    name: str, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control: only the path is wrong in the cases below."""
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
