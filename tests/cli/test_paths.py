"""A path that nobody can read or write ends a command with one line, and nothing is written.

The commands are all but `verify`, which reports such a path as one of its findings. Two cases of
`import-onmt` need a whole checkpoint of OpenNMT-py: see `test_import_onmt.py`.
"""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import ending, translate
from tests.cli.calls_with_paths import CALLS
from tests.commands import ROOT, console
from tests.in_process import Main, exit_status, success
from tests.toy import write_config

# `serve` would never end, and `checkpoint` is only a file, of which just the path is tested here.
SUCCESSFUL = CALLS.keys() - {"serve", "import"}

# File systems hold names of at most 255 bytes.
UNUSABLE = {"below a loop": "loop/file", "null": "a\0b", "long": "x" * 300, "empty": ""}
# What the line has of each.
NAMED = {"below a loop": "loop", "null": r"a\x00b", "long": "x" * 100, "empty": "is empty"}
# OpenNMT-py's options of text are empty where they have no value, and then mean something else.
EMPTY = {
    ("train", "toy.yaml"): "data: this option is required",
    ("translate", "sentences"): ".: not a model folder",
    ("translate", "lines"): "src: this option is required",
    ("translate", "translated"): ".: is a folder already",
}
LEFT_OUT = {
    ("translate", "certificates", "empty"),  # no report is written
    ("import", "imported", "below a loop"),  # in `test_import_onmt.py`
    ("import", "imported", "null"),
}


class Case(NamedTuple):
    """A call with an unusable path, and what its one line names."""

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
# Beginnings of other lines, which `train` and `distill` print before the one that refuses.
OTHER_LINES = ("warning: ", "note: ", "learning ")


def write_texts(folder: Path) -> None:
    """Write lines of tokens: texts, source and target of inflections."""
    for name in ("lines", "same"):
        (folder / name).write_text("a b\nb c\n")
    for name in ("dev", "same-dev", "test", "same-test"):
        (folder / name).write_text("c a\n")
    (folder / "queries").write_text("lang=german +V +PST a\nlang=german +V b\n")
    (folder / "forms").write_text("a b\nb b\n")


def write_tables(folder: Path) -> None:
    """Write tables of pairs, queries, cells and inflected forms, and the folder `languages`."""
    (folder / "words").write_text("german\ta\tV\n")
    (folder / "lemmas").write_text("a\n")
    (folder / "cells").write_text("german\tV\t1\n")
    (folder / "table").write_text("a\tab\tV\n")
    for name, word in {
        "pairs": "a",
        "same-pairs": "a",
        "dev-pairs": "aa",
        "test-pairs": "aaa",
    }.items():
        (folder / name).write_text(f"{word}\tb\n")
    (folder / "languages").mkdir()
    for name in ("german-train", "german-dev"):
        (folder / "languages" / name).write_text("a\tab\tV\n")


def write_report(folder: Path) -> None:
    """Write the report of a translation of `lines`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        words = "-model sentences -src lines -output out -exactness_report report -n_best 5"
        success(translate.main, words.split())
        Path("out").unlink()


def write_training(folder: Path) -> None:
    """Write the training `toy.yaml` and its corpora, whose paths are absolute."""
    write_config(folder, train_steps=1, valid_steps=1, save_checkpoint_steps=1)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory, inflection_model: Path) -> Path:
    """A folder with the files that the calls read, and a link to itself."""
    folder = tmp_path_factory.mktemp("inputs")
    shutil.copytree(inflection_model, folder / "inflection")
    shutil.copytree(ROOT / "tests" / "data" / "model_1.0", folder / "sentences")
    (folder / "loop").symlink_to("loop")
    (folder / "checkpoint").write_bytes(b"")
    write_texts(folder)
    write_tables(folder)
    write_report(folder)
    write_training(folder)
    return folder


@pytest.mark.parametrize("name", sorted(SUCCESSFUL))
def test_a_call_succeeds_if_all_paths_are_usable(
    name: str, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This shows that nothing but the path is wrong in the cases below."""
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
