"""A path that nobody can read or write ends a command with one line, and nothing is written.

The commands are all but `verify`, which reports such a path as one of its findings. Two cases of
`import-onmt` need a whole checkpoint of OpenNMT-py: see `test_import_onmt.py`.
"""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import (
    audit,
    bleu,
    combine,
    distill,
    ending,
    evaluate,
    export,
    import_onmt,
    inflect,
    paradigm,
    predict,
    prepare_files,
    prepare_sigmorphon,
    prepare_table,
    report,
    score,
    serve,
    suggest,
    train,
    translate,
)
from tests.commands import ROOT, console
from tests.in_process import Main, exit_status, success
from tests.toy import write_config


class Call(NamedTuple):
    """A call of a command with files of the fixture `inputs`."""

    main: Main
    words: str
    """The arguments, between spaces."""
    paths: str
    """Those of them that are read or written, each of which a case replaces by an unusable one."""

    def replaced(self, path: str, unusable: str) -> list[str]:
        """Return the arguments, with one path replaced by another."""
        return [unusable if word == path else word for word in self.words.split()]


CALLS = {
    "audit": Call(
        audit.main,
        "table --out audited --model inflection --language german",
        "table audited inflection",
    ),
    "bleu": Call(bleu.main, "lines --reference same --output scores", "lines same scores"),
    "combine": Call(
        combine.main,
        "--reports report --output combined --report certificates",
        "report combined certificates",
    ),
    "distill": Call(
        distill.main,
        "--train queries --models inflection --out distilled --prob 0.01 --at-most 1",
        "queries inflection distilled",
    ),
    "evaluate": Call(
        evaluate.main,
        "--source queries --reference forms --predictions same --json scores",
        "queries forms same scores",
    ),
    "evaluate tables": Call(
        evaluate.main, "pairs --reference same-pairs --json scores", "pairs same-pairs scores"
    ),
    "export": Call(export.main, "sentences exported", "sentences exported"),
    "import": Call(import_onmt.main, "checkpoint imported --yes", "checkpoint imported"),
    "inflect": Call(
        inflect.main,
        "--model inflection --input words --output inflected",
        "inflection words inflected",
    ),
    "prepare files": Call(
        prepare_files.main,
        "--languages a b --train lines same --val dev same-dev --test test same-test --out prepared"
        " --subword_type sentencepiece --symbols 10",
        "lines same dev same-dev test same-test prepared",
    ),
    "paradigm": Call(
        paradigm.main,
        "german --lemmas lemmas --cells cells --model inflection --output paradigms",
        "lemmas cells inflection paradigms",
    ),
    "prepare table": Call(
        prepare_table.main,
        "--train pairs --dev dev-pairs --test test-pairs --out prepared --skip-bad bad",
        "pairs dev-pairs test-pairs prepared bad",
    ),
    "prepare sigmorphon": Call(
        prepare_sigmorphon.main, "--data languages --out prepared", "languages prepared"
    ),
    "predict": Call(
        predict.main,
        "sentences lines --columns source --output predicted --skip-bad bad",
        "sentences lines predicted bad",
    ),
    "report": Call(
        report.main,
        "-model sentences -report report -output page.html",
        "sentences report page.html",
    ),
    "score": Call(
        score.main,
        "-model sentences -src lines -tgt same -output scores",
        "sentences lines same scores",
    ),
    "serve": Call(serve.main, "inflection --port 0", "inflection"),
    "suggest": Call(suggest.main, "sentences --source a --prefix b", "sentences"),
    "train": Call(train.main, "-config toy.yaml", "toy.yaml"),
    "translate": Call(
        translate.main,
        "-model sentences -src lines -output translated -exactness_report certificates",
        "sentences lines translated certificates",
    ),
}
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
# Beside the one line that refuses, what `train` and `distill` say of their options and vocabulary.
OTHER_LINES = ("warning: ", "note: ", "learning ")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory, inflection_model: Path) -> Path:
    """A folder with the files that the calls read, and a link to itself."""
    folder = tmp_path_factory.mktemp("inputs")
    shutil.copytree(inflection_model, folder / "inflection")
    shutil.copytree(ROOT / "tests" / "data" / "model_1.0", folder / "sentences")
    (folder / "loop").symlink_to("loop")
    for name in ("lines", "same"):
        (folder / name).write_text("a b\nb c\n")
    for split in ("dev", "test"):
        for name in (split, f"same-{split}"):
            (folder / name).write_text("c a\n")
    (folder / "queries").write_text("lang=german +V +PST a\nlang=german +V b\n")
    (folder / "forms").write_text("a b\nb b\n")
    (folder / "words").write_text("german\ta\tV\n")
    (folder / "lemmas").write_text("a\n")
    (folder / "cells").write_text("german\tV\t1\n")
    (folder / "table").write_text("a\tab\tV\n")
    for name in ("pairs", "same-pairs"):
        (folder / name).write_text("a\tb\n")
    (folder / "dev-pairs").write_text("aa\tb\n")
    (folder / "test-pairs").write_text("aaa\tb\n")
    (folder / "checkpoint").write_bytes(b"")
    (folder / "languages").mkdir()
    for name in ("german-train", "german-dev"):
        (folder / "languages" / name).write_text("a\tab\tV\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        words = "-model sentences -src lines -output out -exactness_report report -n_best 5"
        success(translate.main, words.split())
        Path("out").unlink()
    write_training(folder)
    return folder


def write_training(folder: Path) -> None:
    """Write the training `toy.yaml` and its corpora, whose paths are absolute."""
    write_config(folder, train_steps=1, valid_steps=1, save_checkpoint_steps=1)


@pytest.mark.parametrize("name", sorted(SUCCESSFUL))
def test_a_call_succeeds_if_all_paths_are_usable(
    name: str, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So nothing but the path is wrong in the cases below."""
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
    """And nothing is written, so all cases share a folder."""
    monkeypatch.chdir(inputs)
    before = sorted(inputs.rglob("*"))
    assert exit_status(case.main, case.arguments) == 2
    printed = capsys.readouterr().err.splitlines()
    lines = [line for line in printed if not line.startswith(OTHER_LINES)]
    assert len(lines) == 1, lines
    assert lines[0].isprintable()
    assert case.named in lines[0]
    assert sorted(inputs.rglob("*")) == before
