"""A call of each command that reads or writes files, with the names of all its paths.

`test_paths.py` replaces each path of each call by unusable ones. Exceptions stand with the calls.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

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
from tests.in_process import Main

PathAndKind = tuple[str, str]
"""A path of a call, and a kind of unusable path that replaces it, such as `empty`."""


class Call(NamedTuple):
    """A call of a command with files of the fixture `inputs`."""

    main: Main
    words: str
    """The arguments, between spaces."""
    paths: str
    """Arguments that are read or written; a case replaces one of them by an unusable path."""
    succeeds: bool = True
    """Whether it ends without an error if all paths are usable."""
    other_errors: Mapping[PathAndKind, str] = MappingProxyType({})
    """For cases whose errors do not name the path: a part of the error."""
    left_out: Mapping[PathAndKind, str] = MappingProxyType({})
    """For cases that are left out: the reason."""

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
    "import": Call(
        import_onmt.main,
        "checkpoint imported --yes",
        "checkpoint imported",
        succeeds=False,  # `checkpoint` is an empty file
        left_out={
            ("imported", "below a loop"): "needs a whole checkpoint, see test_import_onmt.py",
            ("imported", "null"): "needs a whole checkpoint, see test_import_onmt.py",
        },
    ),
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
    "serve": Call(
        serve.main,
        "inflection --port 0",
        "inflection",
        succeeds=False,  # it would never end
    ),
    "suggest": Call(suggest.main, "sentences --source a --prefix b", "sentences"),
    # Commands with OpenNMT-py's options take an empty path as no value, and have other errors.
    "train": Call(
        train.main,
        "-config toy.yaml",
        "toy.yaml",
        other_errors={("toy.yaml", "empty"): "data: this option is required"},
    ),
    "translate": Call(
        translate.main,
        "-model sentences -src lines -output translated -exactness_report certificates",
        "sentences lines translated certificates",
        other_errors={
            ("sentences", "empty"): ".: not a model folder",
            ("lines", "empty"): "src: this option is required",
            ("translated", "empty"): ".: is a folder already",
        },
        left_out={("certificates", "empty"): "no report is written, which is no error"},
    ),
}
