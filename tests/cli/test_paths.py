"""A path that nobody can read or write ends a command with one line, and nothing is written.

Of all commands but `verify`, which reports such a path as one of its findings.
"""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import (
    audit,
    bleu,
    combine,
    distill,
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
from tests.commands import ROOT
from tests.in_process import Main, exit_status

MODEL = str(ROOT / "tests" / "data" / "model_1.0")
RECORD = {
    "id": 0, "source": "a b", "certificate": "exhaustive", "bound": 0.0, "gap": None, "proven": 1,
    "mass": 1.0, "dropped": 0, "truncated": 0, "excluded": 0.0, "finished": 1,
    "hypotheses": [{"text": "a", "log_prob": 0.0, "prob": 1.0}],
}  # fmt: skip
# Each command with a call that nothing is wrong with. Words that begin with @ are paths, each of
# which is replaced by an unusable one in a case of its own.
CALLS = {
    "audit": (audit.main, f"@pairs --out @out --model {MODEL} --language x"),
    "audit model": (audit.main, "pairs --out out --model @model --language x"),
    "bleu": (bleu.main, "@text --reference @text --output @out"),
    "combine": (combine.main, "--reports @report --output @out --report @certificates"),
    "distill": (distill.main, f"--train @queries --models {MODEL} --out @out"),
    "distill model": (distill.main, "--train queries --models @model --out out"),
    "evaluate": (
        evaluate.main,
        "--source @queries --reference @text --predictions @text --json @out",
    ),
    "evaluate tables": (evaluate.main, "@text --reference @text --json @out"),
    "export": (export.main, "@model out"),
    "export folder": (export.main, f"{MODEL} @out"),
    "import": (import_onmt.main, "@checkpoint @out --yes"),
    "inflect": (inflect.main, "--model @model --input @queries --output @out"),
    "mt": (prepare_files.main, "--languages a b --train @text @text --out @out"),
    "paradigm": (paradigm.main, "x --lemmas @text --cells @cells --model @model --output @out"),
    "table": (
        prepare_table.main,
        "--train @pairs --dev @pairs --test @pairs --out @out --skip-bad @bad",
    ),
    "sigmorphon": (prepare_sigmorphon.main, "--data @folder --out @out"),
    "predict": (predict.main, f"{MODEL} @table --columns source --output @out --skip-bad @bad"),
    "predict model": (predict.main, "@model text --output out"),
    "report": (report.main, f"-model {MODEL} -report @report -output @out"),
    "report model": (report.main, "-model @model -report report -output out"),
    "score": (score.main, f"-model {MODEL} -src @text -tgt @text -output @out"),
    "serve": (serve.main, "@model --port 0"),
    "suggest": (suggest.main, "@model --source a --prefix b"),
    "train": (train.main, "-config @config"),
    "translate": (
        translate.main,
        f"-model {MODEL} -src @text -output @out -exactness_report @certificates",
    ),
    "translate model": (translate.main, "-model @model -src text -output out"),
}
# File systems hold names of at most 255 bytes.
UNUSABLE = {"below a loop": "loop/file", "null": "a\0b", "long": "x" * 300, "empty": ""}
# Not an error: OpenNMT-py's options of text are empty where they have no value.
ALLOWED = {("translate", "@certificates", "empty")}


class Case(NamedTuple):
    """A call, and the place of the word in it that is replaced."""

    main: Main
    words: list[str]
    place: int
    unusable: str

    @property
    def arguments(self) -> list[str]:
        words = [word.removeprefix("@") for word in self.words]
        return [*words[: self.place], self.unusable, *words[self.place + 1 :]]


CASES = {
    f"{name} {word}: {kind}": Case(main, text.split(), place, path)
    for name, (main, text) in CALLS.items()
    for place, word in enumerate(text.split())
    for kind, path in UNUSABLE.items()
    if word.startswith("@") and (name, word, kind) not in ALLOWED
}
# Beside the one line that refuses, what `train` and `distill` say of their options and vocabulary.
OTHER_LINES = ("warning: ", "note: ", "learning ")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the files that the calls read, and a link to itself."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "text").write_text("a b\n")
    (tmp_path / "queries").write_text("lang=x +V a\n")
    (tmp_path / "pairs").write_text("a\tb\n")
    (tmp_path / "report").write_text(json.dumps(RECORD) + "\n")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_path_that_cannot_be_used_is_refused_in_one_line(
    case: Case, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(files.rglob("*"))
    assert exit_status(case.main, case.arguments) == 2
    printed = capsys.readouterr().err.splitlines()
    lines = [line for line in printed if not line.startswith(OTHER_LINES)]
    assert len(lines) == 1, lines
    assert lines[0].isprintable()
    assert sorted(files.rglob("*")) == before
