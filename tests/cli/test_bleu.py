"""`onmt-entmax bleu` of one system gives what sacrebleu's own command gives."""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax.cli import bleu
from tests.cli.translations import their_scores, write_translations
from tests.in_process import exit_status


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a reference and two systems; tests only read it."""
    folder = tmp_path_factory.mktemp("texts")
    write_translations(folder)
    return folder


class Scores(NamedTuple):
    """What our command and sacrebleu's measure of the same system, with the same options.

    Attributes:
        measures: our record of each measure, with its `value`.
        signatures: our signature of each measure.
        printed: what our command printed.
        theirs: sacrebleu's records, each with a `score` of ten digits and a `signature`.
    """

    measures: dict[str, dict[str, float]]
    signatures: dict[str, str]
    printed: str
    theirs: list[dict[str, Any]]


class Setting(NamedTuple):
    """The tokeniser, and whether letters are compared in lower case."""

    tokenize: str
    lowercase: bool = False

    @property
    def options(self) -> list[str]:
        """The options of our command."""
        return ["--tokenize", self.tokenize, *(["--lowercase"] if self.lowercase else [])]

    @property
    def their_options(self) -> list[str]:
        """The options of sacrebleu's command, which has one more for chrF."""
        return [*self.options, *(["--chrf-lowercase"] if self.lowercase else [])]


TEN_DIGITS = ["-i", "one", "-m", "bleu", "chrf", "ter", "-w", "10", "-f", "json"]


@pytest.fixture(
    scope="module", params=[Setting("13a"), Setting("char", lowercase=True), Setting("none")]
)
def scores(
    request: pytest.FixtureRequest, texts: Path, tmp_path_factory: pytest.TempPathFactory
) -> Scores:
    setting: Setting = request.param
    output = tmp_path_factory.mktemp("scores") / "scores.json"
    system = str(texts / "one")
    arguments = [system, "--reference", str(texts / "ref"), "--output", str(output)]
    with redirect_stdout(io.StringIO()) as printed:
        assert exit_status(bleu.main, [*arguments, *setting.options]) == 0
    ours = json.loads(output.read_text())
    scores = Scores(
        measures=ours["systems"][system],
        signatures=ours["signatures"],
        printed=printed.getvalue(),
        theirs=json.loads(their_scores(texts, *TEN_DIGITS, *setting.their_options)),
    )
    assert len(scores.measures) == len(scores.theirs) == 3
    return scores


def test_scores_are_those_of_sacrebleu(scores: Scores) -> None:
    ours = [round(measure["value"], 10) for measure in scores.measures.values()]
    assert ours == [measure["score"] for measure in scores.theirs]


def test_signatures_are_those_of_sacrebleu(scores: Scores) -> None:
    signatures = [scores.signatures[name] for name in scores.measures]
    assert signatures == [measure["signature"] for measure in scores.theirs]


def test_scores_are_printed_with_two_digits(scores: Scores) -> None:
    assert all(f" {measure['score']:.2f}" in scores.printed for measure in scores.theirs)
