"""A path that nobody can read or write ends a command with one line, and nothing is written.

The commands are all but `verify`, which reports such a path as one of its findings. Two cases of
`import-onmt` need a whole checkpoint of OpenNMT-py: see `test_import_onmt.py`.
"""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import ending
from tests.cli.calls_with_paths import CALLS, Call, PathAndKind
from tests.cli.path_inputs import write_inputs, write_training
from tests.commands import console
from tests.in_process import Main, exit_status, success


class Unusable(NamedTuple):
    """A path that cannot be used, and a part of its error."""

    path: str
    in_error: str


UNUSABLE = {
    "below a loop": Unusable("loop/file", in_error="loop"),
    "null": Unusable("a\0b", in_error=r"a\x00b"),
    "long": Unusable("x" * 300, in_error="x" * 100),  # file systems hold names of at most 255 bytes
    "empty": Unusable("", in_error="is empty"),
}


class Case(NamedTuple):
    """A call with an unusable path, and a part of its error."""

    main: Main
    arguments: list[str]
    in_error: str


def cases_of(call: Call) -> dict[PathAndKind, Case]:
    """Return the cases of a call, without those that it leaves out."""
    cases = {}
    for path in call.paths.split():
        for kind, unusable in UNUSABLE.items():
            key = (path, kind)
            if key not in call.left_out:
                in_error = call.other_errors.get(key, unusable.in_error)
                cases[key] = Case(call.main, call.replaced(path, unusable.path), in_error)
    return cases


CASES = {
    f"{name} {path}: {kind}": case
    for name, call in CALLS.items()
    for (path, kind), case in cases_of(call).items()
}
# Beginnings of other lines, which `train` and `distill` print before the error.
OTHER_LINES = ("warning: ", "note: ", "learning ")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory, inflection_model: Path) -> Path:
    """A folder with the files that the calls read, and a link to itself; tests only read it."""
    folder = tmp_path_factory.mktemp("inputs")
    write_inputs(folder, inflection_model)
    (folder / "loop").symlink_to("loop")
    return folder


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_each_exception_of_a_call_belongs_to_one_of_its_paths(call: Call) -> None:
    """An exception with a misspelt key would be ignored."""
    possible = {(path, kind) for path in call.paths.split() for kind in UNUSABLE}
    assert {*call.other_errors, *call.left_out} <= possible


@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if call.succeeds])
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


def only_error(printed: str) -> str:
    """Return the line that a command printed as an error; it must be the only one."""
    errors = [line for line in printed.splitlines() if not line.startswith(OTHER_LINES)]
    assert len(errors) == 1, errors
    return errors[0]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_path_that_cannot_be_used_is_named_in_one_line_and_nothing_is_written(
    case: Case, inputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written, so all cases share a folder."""
    monkeypatch.chdir(inputs)
    before = sorted(inputs.rglob("*"))
    assert exit_status(case.main, case.arguments) == 2
    error = only_error(capsys.readouterr().err)
    assert error.isprintable()
    assert case.in_error in error
    assert sorted(inputs.rglob("*")) == before
