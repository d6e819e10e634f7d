"""Paths that nobody can read or write end every command with one line, and nothing is written."""

import json
from itertools import cycle
from pathlib import Path

import pytest

from onmt_entmax.cli import (
    audit,
    bleu,
    combine,
    distill,
    evaluate,
    import_onmt,
    inflect,
    paradigm,
    predict,
    prepare_files,
    prepare_sigmorphon,
    prepare_table,
    report,
    score,
    suggest,
    train,
    translate,
)
from tests.ended import ended, refused

MODEL = str(Path(__file__).parents[1] / "data" / "model_1.0")
RECORD = {
    "id": 0, "source": "a b", "certificate": "exhaustive", "bound": 0.0, "gap": None, "proven": 1,
    "mass": 1.0, "dropped": 0, "truncated": 0, "excluded": 0.0, "finished": 1,
    "hypotheses": [{"text": "a", "log_prob": 0.0, "prob": 1.0}],
}  # fmt: skip
# Each command with what it needs; every word that begins with @ is a path, tried in its turn.
CALLS = {
    "bleu": (bleu.main, "@text --reference @text --output @out"),
    "combine": (combine.main, "--reports @report --output @out --report @out2"),
    "distill": (distill.main, f"--train @queries --models {MODEL} --out @out"),
    "distill model": (distill.main, "--train queries --models @model --out out"),
    "evaluate": (
        evaluate.main,
        "--source @queries --reference @text --predictions @text --json @out",
    ),
    "evaluate tables": (evaluate.main, "@text --reference @text --json @out"),
    "import": (import_onmt.main, "@checkpoint @out --yes"),
    "inflect": (inflect.main, "--model @model --input @queries --output @out"),
    "mt": (prepare_files.main, "--languages a b --train @text @text --out @out"),
    "table": (
        prepare_table.main,
        "--train @pairs --dev @pairs --test @pairs --out @out --skip-bad @out2",
    ),
    "sigmorphon": (prepare_sigmorphon.main, "--data @folder --out @out"),
    "predict": (predict.main, f"{MODEL} @table --columns source --output @out --skip-bad @out2"),
    "predict model": (predict.main, "@model text --output out"),
    "report": (report.main, f"-model {MODEL} -report @report -output @out"),
    "report model": (report.main, "-model @model -report report -output out"),
    "score": (score.main, f"-model {MODEL} -src @text -tgt @text -output @out"),
    "suggest": (suggest.main, "@model --source a --prefix b"),
    "train": (train.main, "-config @config"),
    "translate": (
        translate.main,
        f"-model {MODEL} -src @text -output @out -exactness_report @out2",
    ),
    "translate model": (translate.main, "-model @model -src text -output out"),
}
NAMES = {"below": "loop/file", "null": "a\0b", "long": "x" * 300, "empty": ""}
PATHS = [
    (name, place)
    for name, (_, words) in CALLS.items()
    for place, word in enumerate(words.split())
    if word.startswith("@")
]
CASES = [(*path, kind) for path, kind in zip(PATHS, cycle(NAMES), strict=False)]


@pytest.fixture
def files(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "text").write_text("a b\n")
    (tmp_path / "queries").write_text("lang=x +V a\n")
    (tmp_path / "pairs").write_text("a\tb\n")
    (tmp_path / "report").write_text(json.dumps(RECORD) + "\n")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(("name", "place", "kind"), CASES)
def test_a_path_that_cannot_be_used_is_one_line(
    name: str, place: int, kind: str, files: Path, capsys
) -> None:
    main, text = CALLS[name]
    words = [word.removeprefix("@") for word in text.split()]
    words[place] = NAMES[kind]
    before = sorted(files.rglob("*"))
    assert ended(main, words) == 2
    lines = [
        line
        for line in capsys.readouterr().err.splitlines()
        if not line.startswith(("warning: ", "note: ", "learning "))
    ]
    assert len(lines) == 1, lines
    assert lines[0].isprintable()
    assert sorted(files.rglob("*")) == before


SIGMORPHON = ["--dev", "s", "--language", "x", "--out", "."]
FILES = ["--languages", "a", "b", "--out", "."]
EVALUATION = ["--source", "s", "--reference", "r", "--predictions", "f"]
OVERWRITING = [
    (bleu.main, ["f", "--reference", "r", "--output", "f"]),
    (bleu.main, ["s", "--reference", "f", "--output", "f"]),
    (combine.main, ["--reports", "f", "--output", "f"]),
    (combine.main, ["--reports", "r", "f", "--output", "o", "--report", "f"]),
    (combine.main, ["--reports", "o.summary.json", "--output", "f", "--report", "o"]),
    (inflect.main, ["--model", "m", "--input", "f", "--output", "f"]),
    (report.main, ["-model", "m", "-report", "f", "-output", "f"]),
    (score.main, ["-model", "m", "-src", "s", "-tgt", "f", "-output", "f"]),
    (evaluate.main, [*EVALUATION, "--json", "f"]),
    (prepare_sigmorphon.main, ["--train", "train.src", *SIGMORPHON]),
    (prepare_sigmorphon.main, ["--train", "link", *SIGMORPHON]),
    (prepare_sigmorphon.main, ["--train", "f", "train.yaml", *SIGMORPHON]),
    (prepare_table.main, ["--train", "s", "--dev", "train.src", "--out", "."]),
    (prepare_table.main, ["--train", "s", "--dev", "f", "--out", ".", "--skip-bad", "f"]),
    (prepare_files.main, ["--train", "f", "train.b", *FILES]),
    (prepare_files.main, ["--train", "f", "s", "--val", "r", "bpe.model", *FILES]),
    (prepare_files.main, ["--train", "prepare.json", "s", *FILES]),
    (distill.main, ["--train", "x.work/queries.src", "--models", "m", "--out", "x"]),
    (audit.main, ["a/part-2/dev.out", "--out", "a"]),
    (paradigm.main, ["x", "--lemmas", "f.dic", "--format", "hunspell", "--output", "f"]),
]


@pytest.mark.parametrize(("main", "words"), OVERWRITING)
def test_an_output_that_is_an_input_is_refused(main, words, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["f", "s", "r", "o.summary.json", "x.work/queries.src", "a/part-2/dev.out"]
    names += ["train.src", "train.yaml", "train.b", "bpe.model", "prepare.json", "f.dic"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("what is there\n")
    (tmp_path / "link").symlink_to("train.src")
    before = sorted(tmp_path.rglob("*"))
    assert "is read, and would be overwritten" in refused(main, words)
    assert sorted(tmp_path.rglob("*")) == before
    assert all(path.read_text() == "what is there\n" for path in before if path.is_file())
