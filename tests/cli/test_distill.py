"""`onmt-entmax distill`: from trained models to pairs for another, in one command."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax import Inflector
from onmt_entmax.cli import distill as command
from onmt_entmax.report.reading import read_report
from onmt_entmax.strings.task import INFLECTION
from tests.commands import succeed
from tests.in_process import refusal
from tests.inflection_models import write_model
from tests.models import vocabularies_of

SOURCES = [
    "lang=english +V +PST a b",
    "lang=english +V b",
    "lang=german +V a",
    "lang=german +V b a",
]
ARGUMENTS = ["--train", "train.src", "--models", "forward", "backward", "--each", 1, "--beam", 3]
LEAST = 0.01  # probability of a pair

Pairs = set[tuple[str, str]]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with training sources, and a model of each direction."""
    folder = tmp_path_factory.mktemp("distill")
    (folder / "train.src").write_text("".join(f"{line}\n" for line in SOURCES))
    write_model(folder / "forward", 1)
    write_model(folder / "backward", 2, options={"target_order": "right_to_left"})
    write_model(folder / "words", 3, vocabularies_of("ab", "ab"))
    return folder


def distill(folder: Path, least: float = LEAST) -> str:
    """Run the command in the folder; return what it printed."""
    options = ["--prob", least, "--out", "distilled"]
    return succeed("onmt_entmax", "distill", *ARGUMENTS, *options, cwd=folder)


def commands_in(printed: str) -> list[str]:
    """Return the names of the commands that it ran, in order."""
    return re.findall(r"^\$ onmt-entmax (\S+)", printed, re.MULTILINE)


def written_pairs(folder: Path) -> Pairs:
    """Return the pairs that the command wrote."""
    sides = ((folder / f"distilled.{side}").read_text().splitlines() for side in ("src", "tgt"))
    return set(zip(*sides, strict=True))


class Distilled(NamedTuple):
    """A folder after the command, and what that printed."""

    folder: Path
    printed: str

    def proven(self) -> dict[str, dict[str, Any]]:
        """Return the proven best outputs of the averaged models, by source."""
        return {
            record["source"]: record["hypotheses"][0]
            for record in read_report(self.folder / "distilled.work" / "combined.jsonl")
            if record["certificate"] != "none" and record["hypotheses"]
        }

    def pairs_from(self, least: float) -> Pairs:
        """Return the pairs that are likely, but not certain, and have no unknown symbol."""
        return {
            (source, output["text"])
            for source, output in self.proven().items()
            if least <= output["prob"] <= 0.95 and "<unk>" not in output["text"]
        }


@pytest.fixture(scope="module")
def finished(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Distilled:
    folder = tmp_path_factory.mktemp("finished") / "folder"
    shutil.copytree(models, folder)
    return Distilled(folder, distill(folder))


@pytest.fixture
def distilled(finished: Distilled, tmp_path: Path) -> Iterator[Distilled]:
    """The finished folder, which a test may change, and which is restored after it.

    It stays where it is: its record has the paths of the models.
    """
    unchanged = shutil.copytree(finished.folder, tmp_path / "unchanged")
    yield finished
    shutil.rmtree(finished.folder)
    shutil.copytree(unchanged, finished.folder)


def test_the_command_translates_with_each_model_and_averages(finished: Distilled) -> None:
    assert commands_in(finished.printed) == ["translate", "translate", "combine"]


def test_queries_are_not_training_sources(finished: Distilled) -> None:
    queries = (finished.folder / "distilled.work" / "queries.src").read_text().splitlines()
    assert queries
    assert not set(queries) & set(SOURCES)


def test_pairs_are_likely_outputs_of_the_average(finished: Distilled) -> None:
    pairs = finished.pairs_from(LEAST)
    assert pairs
    assert written_pairs(finished.folder) == pairs


def test_outputs_are_those_of_an_average_of_both_directions(finished: Distilled) -> None:
    """Outputs are compared by their texts, which stand in natural order."""
    models = [finished.folder / "forward", finished.folder / "backward"]
    both = Inflector(models, n_best=3, beam_size=3)
    for source, output in finished.proven().items():
        query = INFLECTION.decode_source(source.split())
        form = both.inflect(query.language, query.source, query.tags).forms[0]
        assert form.text == INFLECTION.target.decode(output["text"].split())
        assert form.prob == pytest.approx(output["prob"])


def test_another_least_probability_translates_nothing_again(distilled: Distilled) -> None:
    report = distilled.folder / "distilled.work" / "1.jsonl"
    os.utime(report, (0, 0))
    printed = distill(distilled.folder, least=0.5)
    assert commands_in(printed) == ["combine"]
    assert printed.count("is done already") == 2
    assert report.stat().st_mtime == 0


def test_another_least_probability_gives_other_pairs(distilled: Distilled) -> None:
    proven = distilled.proven()
    largest = max(proven[source]["prob"] for source, _ in distilled.pairs_from(LEAST))
    distill(distilled.folder, largest)
    pairs = written_pairs(distilled.folder)
    assert pairs == distilled.pairs_from(largest) < distilled.pairs_from(LEAST)


def test_a_command_that_was_stopped_goes_on(distilled: Distilled) -> None:
    """Here before the second model had translated."""
    (distilled.folder / "distilled.work" / "2.jsonl").unlink()
    assert commands_in(distill(distilled.folder)) == ["translate", "combine"]
    assert written_pairs(distilled.folder) == distilled.pairs_from(LEAST)


def test_a_report_that_was_cut_is_refused(
    distilled: Distilled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk may cut one."""
    monkeypatch.chdir(distilled.folder)
    report = distilled.folder / "distilled.work" / "1.jsonl"
    lines = report.read_text().splitlines(keepends=True)
    report.write_text("".join(lines[:-1]))
    message = refusal(command.main, [*ARGUMENTS, "--out", "distilled"])
    assert "1.jsonl: cut or damaged, " in message


def test_reports_of_a_model_that_was_trained_anew_are_refused(
    distilled: Distilled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(distilled.folder)
    write_model(distilled.folder / "forward", 4)
    message = refusal(command.main, [*ARGUMENTS, "--out", "distilled"])
    assert "are for other values of models; delete it" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            "--out train", "train.src: is read, and would be overwritten", id="output is the input"
        ),
        pytest.param("--weights 1", "--weights has 1 number for 2 models", id="weights"),
        pytest.param(
            "--each 0", "--each: must be a whole number from 1 to 10,000", id="no queries"
        ),
        pytest.param("--prob nan", "--prob: must be above 0 and at most 1, not 'nan'", id="nan"),
        pytest.param(
            "--prob 0.5 --at-most 0.4", "--prob 0.5 is above --at-most 0.4", id="empty range"
        ),
        pytest.param("--models nowhere", "nowhere: no such model folder", id="no model"),
        pytest.param(
            "--models forward words", "words: not a model of inflection", id="another task"
        ),
        pytest.param(
            "--reversed backward", "--reversed: no such option; the model folder", id="old option"
        ),
        pytest.param("--train none.src", "none.src: cannot be read", id="no training sources"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(
    models: Path, options: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option stands in the place of that of the same name in a call without mistakes."""
    monkeypatch.chdir(models)
    before = sorted(models.rglob("*"))
    words = options.split()
    usual = {"--train": ["train.src"], "--models": ["forward", "backward"], "--out": ["x"]}
    others = [word for name in usual if name not in words for word in (name, *usual[name])]
    assert message in refusal(command.main, [*others, *words])
    assert sorted(models.rglob("*")) == before
