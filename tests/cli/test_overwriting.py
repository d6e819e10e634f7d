"""A command whose output would replace one of its inputs is refused, and changes nothing."""

from pathlib import Path

import pytest

from onmt_entmax.cli import (
    audit,
    bleu,
    combine,
    distill,
    evaluate,
    inflect,
    paradigm,
    prepare_files,
    prepare_sigmorphon,
    prepare_table,
    report,
    score,
)
from tests.in_process import Main, refusal

# Files that are there before each call: inputs, and names under which commands write.
FILES = [
    "same",
    "source",
    "reference",
    "o.summary.json",
    "x.work/queries.src",
    "a/part-2/dev.out",
    "train.src",
    "train.yaml",
    "train.b",
    "bpe.model",
    "prepare.json",
    "same.dic",
]
# Calls in which one of them is an input and an output.
CALLS = {
    "bleu: output is the prediction": (bleu.main, "same --reference reference --output same"),
    "bleu: output is the reference": (bleu.main, "source --reference same --output same"),
    "combine: output is a report": (combine.main, "--reports same --output same"),
    "combine: report is a report": (
        combine.main,
        "--reports reference same --output o --report same",
    ),
    "combine: summary is a report": (
        combine.main,
        "--reports o.summary.json --output same --report o",
    ),
    "inflect": (inflect.main, "--model m --input same --output same"),
    "report": (report.main, "-model m -report same -output same"),
    "score": (score.main, "-model m -src source -tgt same -output same"),
    "evaluate": (
        evaluate.main,
        "--source source --reference reference --predictions same --json same",
    ),
    "prepare sigmorphon: training text": (
        prepare_sigmorphon.main,
        "--train train.src --dev source --language x --out .",
    ),
    "prepare sigmorphon: through a link": (
        prepare_sigmorphon.main,
        "--train link --dev source --language x --out .",
    ),
    "prepare sigmorphon: configuration": (
        prepare_sigmorphon.main,
        "--train same train.yaml --dev source --language x --out .",
    ),
    "prepare table: training text": (
        prepare_table.main,
        "--train source --dev train.src --out .",
    ),
    "prepare table: bad rows": (
        prepare_table.main,
        "--train source --dev same --out . --skip-bad same",
    ),
    "prepare files: training text": (
        prepare_files.main,
        "--train same train.b --languages a b --out .",
    ),
    "prepare files: subwords": (
        prepare_files.main,
        "--train same source --val reference bpe.model --languages a b --out .",
    ),
    "prepare files: description": (
        prepare_files.main,
        "--train prepare.json source --languages a b --out .",
    ),
    "distill: queries": (distill.main, "--train x.work/queries.src --models m --out x"),
    "audit: outputs of a part": (audit.main, "a/part-2/dev.out --out a"),
    "paradigm: word list": (
        paradigm.main,
        "x --lemmas same.dic --format hunspell --output same",
    ),
}


@pytest.mark.parametrize(("main", "words"), CALLS.values(), ids=CALLS)
def test_an_output_that_is_an_input_is_refused(
    main: Main, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("what is there\n")
    (tmp_path / "link").symlink_to("train.src")
    before = sorted(tmp_path.rglob("*"))
    assert "is read, and would be overwritten" in refusal(main, words.split())
    assert sorted(tmp_path.rglob("*")) == before
    assert all(path.read_text() == "what is there\n" for path in before if path.is_file())
