"""`onmt-entmax distill`: from trained models to pairs for another, in one command."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax import Inflector
from onmt_entmax.cli import distill as command
from onmt_entmax.report.reading import read_report
from onmt_entmax.strings.task import INFLECTION
from tests.cli.distilling import SOURCES, write_inputs
from tests.commands import succeed
from tests.in_process import refusal

LEAST = 0.01  # probability of a pair
MOST = 0.95  # the default of --at-most

Pairs = set[tuple[str, str]]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of training sources and models; tests only read it."""
    return write_inputs(tmp_path_factory.mktemp("inputs"))


@dataclass
class Distillation:
    """The pairs `distilled` in a folder.

    Attributes:
        inputs: the folder of training sources and models.
        folder: the folder of the pairs, and of the predictions from which they are made.
        least: the least probability of a pair.
        printed: what the command printed in the fixture that made the pairs.
    """

    inputs: Path
    folder: Path
    least: float = LEAST
    printed: str = ""

    def arguments(self) -> Sequence[object]:
        """Return the arguments of the command."""
        models = [self.inputs / "forward", self.inputs / "backward"]
        return (
            "--train", self.inputs / "train.src", "--models", *models, "--each", 1, "--beam", 3,
            "--prob", self.least, "--out", self.folder / "distilled",
        )  # fmt: skip

    def run(self) -> str:
        """Run the command; return what it printed."""
        return succeed("onmt_entmax", "distill", *self.arguments())

    def work(self, name: str) -> Path:
        """Return the path of a file from which the pairs are made."""
        return self.folder / "distilled.work" / name

    def pairs(self) -> Pairs:
        """Return the pairs that were written."""
        sides = ((self.folder / f"distilled.{side}").read_text() for side in ("src", "tgt"))
        return set(zip(*(side.splitlines() for side in sides), strict=True))

    def proven(self) -> dict[str, dict[str, Any]]:
        """Return the proven best outputs of the averaged models, by source."""
        return {
            record["source"]: record["hypotheses"][0]
            for record in read_report(self.work("combined.jsonl"))
            if record["certificate"] != "none" and record["hypotheses"]
        }

    def expected_pairs(self) -> Pairs:
        """Return the pairs that are likely, but not certain, and have no unknown symbol."""
        return {
            (source, output["text"])
            for source, output in self.proven().items()
            if self.least <= output["prob"] <= MOST and "<unk>" not in output["text"]
        }


def commands_in(printed: str) -> list[str]:
    """Return the names of the commands that the command ran, in order."""
    return re.findall(r"^\$ onmt-entmax (\S+)", printed, re.MULTILINE)


# --- a finished distillation ---


@pytest.fixture(scope="module")
def finished(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Distillation:
    """Tests only read it."""
    distillation = Distillation(inputs, tmp_path_factory.mktemp("finished"))
    distillation.printed = distillation.run()
    return distillation


def test_the_command_translates_with_each_model_and_averages(finished: Distillation) -> None:
    assert commands_in(finished.printed) == ["translate", "translate", "combine"]


def test_queries_are_not_training_sources(finished: Distillation) -> None:
    queries = finished.work("queries.src").read_text().splitlines()
    assert queries
    assert not set(queries) & set(SOURCES)


def test_pairs_are_likely_outputs_of_the_average(finished: Distillation) -> None:
    assert finished.pairs() == finished.expected_pairs() != set()


def test_outputs_are_those_of_an_average_of_both_directions(finished: Distillation) -> None:
    """Outputs are compared by their texts, which stand in natural order."""
    models = [finished.inputs / "forward", finished.inputs / "backward"]
    both = Inflector(models, n_best=3, beam_size=3)
    assert finished.proven()
    for source, output in finished.proven().items():
        query = INFLECTION.decode_source(source.split())
        form = both.inflect(query.language, query.source, query.tags).forms[0]
        assert form.text == INFLECTION.target.decode(output["text"].split())
        assert form.prob == pytest.approx(output["prob"])


# --- a second call with a larger least probability ---


@pytest.fixture(scope="module")
def stricter(finished: Distillation, tmp_path_factory: pytest.TempPathFactory) -> Distillation:
    """The same, made again with so large a least probability that only the likeliest pair stays."""
    folder = shutil.copytree(finished.folder, tmp_path_factory.mktemp("stricter") / "copy")
    proven = finished.proven()
    largest = max(proven[source]["prob"] for source, _ in finished.expected_pairs())
    stricter = Distillation(finished.inputs, folder, least=largest)
    os.utime(stricter.work("1.jsonl"), (0, 0))
    stricter.printed = stricter.run()
    return stricter


def test_another_least_probability_translates_nothing_again(stricter: Distillation) -> None:
    assert commands_in(stricter.printed) == ["combine"]


def test_translations_that_are_not_made_again_stay_as_they_are(stricter: Distillation) -> None:
    assert stricter.work("1.jsonl").stat().st_mtime == 0


def test_translations_that_are_not_made_again_are_named(stricter: Distillation) -> None:
    assert stricter.printed.count("is done already") == 2


def test_another_least_probability_gives_other_pairs(
    stricter: Distillation, finished: Distillation
) -> None:
    assert stricter.pairs() == stricter.expected_pairs() < finished.expected_pairs()


# --- a second call after a change ---


@pytest.fixture
def begun(finished: Distillation, tmp_path: Path) -> Distillation:
    """A copy of the finished distillation, which a test may change."""
    return Distillation(finished.inputs, shutil.copytree(finished.folder, tmp_path / "begun"))


def test_a_distillation_that_was_stopped_continues(begun: Distillation) -> None:
    """It was stopped before the second model had translated."""
    begun.work("2.jsonl").unlink()
    assert commands_in(begun.run()) == ["translate", "combine"]
    assert begun.pairs() == begun.expected_pairs()


def test_a_report_that_was_cut_is_refused(begun: Distillation) -> None:
    """A full disk may cut one."""
    report = begun.work("1.jsonl")
    lines = report.read_text().splitlines(keepends=True)
    report.write_text("".join(lines[:-1]))
    assert "1.jsonl: cut or damaged, " in refusal(command.main, begun.arguments())


def test_reports_of_a_model_that_was_trained_anew_are_refused(begun: Distillation) -> None:
    """The record of the distillation has the checksums of the models' weights."""
    record = json.loads(begun.work("distill.json").read_text())
    first_model, _second_model = record["models"]
    weights = begun.inputs / "forward" / "model.safetensors"
    assert first_model[1] == hashlib.sha256(weights.read_bytes()).hexdigest()
    first_model[1] = "the checksum of other weights"
    begun.work("distill.json").write_text(json.dumps(record))
    message = refusal(command.main, begun.arguments())
    assert "are for other values of models; delete it" in message
