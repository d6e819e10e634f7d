"""A command whose output would replace one of its inputs is refused, and changes nothing."""

from pathlib import Path
from typing import NamedTuple

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

# Files that exist before each call, besides the one that would be replaced, and what all contain.
OTHERS = ("source", "reference", "third")
CONTENT = "the content before\n"


class Call(NamedTuple):
    """A call in which a file is an input and an output.

    Attributes:
        main: the function of the command.
        words: the arguments, between spaces. A model named `unread` is missing, and is not read.
        both: the name of the file, as an error about the output has it.
    """

    main: Main
    words: str
    both: str = "same"


CALLS = {
    "bleu: output is the prediction": Call(bleu.main, "same --reference reference --output same"),
    "bleu: output is the reference": Call(bleu.main, "source --reference same --output same"),
    "combine: output is a report": Call(combine.main, "--reports same --output same"),
    "combine: report is a report": Call(
        combine.main, "--reports source same --output out --report same"
    ),
    "combine: summary is a report": Call(
        combine.main,
        "--reports o.summary.json --output out --report o",
        both="o.summary.json",
    ),
    "inflect": Call(inflect.main, "--model unread --input same --output same"),
    "report": Call(report.main, "-model unread -report same -output same"),
    "score": Call(score.main, "-model unread -src source -tgt same -output same"),
    "evaluate": Call(
        evaluate.main, "--source source --reference reference --predictions same --json same"
    ),
    "prepare sigmorphon: training text": Call(
        prepare_sigmorphon.main,
        "--train train.src --dev source --language x --out .",
        both="train.src",
    ),
    "prepare sigmorphon: through a link": Call(
        prepare_sigmorphon.main,
        "--train link --dev source --language x --out .",
        both="train.src",
    ),
    "prepare sigmorphon: configuration": Call(
        prepare_sigmorphon.main,
        "--train source train.yaml --dev reference --language x --out .",
        both="train.yaml",
    ),
    "prepare table: training text": Call(
        prepare_table.main, "--train source --dev train.src --out .", both="train.src"
    ),
    "prepare table: bad rows": Call(
        prepare_table.main, "--train source --dev same --out . --skip-bad same"
    ),
    "prepare files: training text": Call(
        prepare_files.main, "--train source train.b --languages a b --out .", both="train.b"
    ),
    "prepare files: subwords": Call(
        prepare_files.main,
        "--train source reference --val third bpe.model --languages a b --out .",
        both="bpe.model",
    ),
    "prepare files: description": Call(
        prepare_files.main,
        "--train prepare.json source --languages a b --out .",
        both="prepare.json",
    ),
    "distill: queries": Call(
        distill.main,
        "--train x.work/queries.src --models unread --out x",
        both="x.work/queries.src",
    ),
    "audit: outputs of a part": Call(
        audit.main, "a/part-2/dev.out --out a", both="a/part-2/dev.out"
    ),
    "paradigm: word list": Call(
        paradigm.main,
        "x --lemmas same.dic --format hunspell --output same",
        both="same.dic",
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_output_that_is_an_input_is_refused(call: Call, working_folder: Path) -> None:
    for name in (*OTHERS, call.both):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(CONTENT)
    Path("link").symlink_to("train.src")
    before = sorted(working_folder.rglob("*"))
    message = refusal(call.main, call.words.split())
    assert f"{call.both}: is read, and would be overwritten" in message
    assert sorted(working_folder.rglob("*")) == before
    assert {Path(name).read_text() for name in (*OTHERS, call.both)} == {CONTENT}
