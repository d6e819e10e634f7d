"""`onmt-entmax bleu --nbest` measures the first and the best hypotheses of n-best lists."""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import bleu
from tests.cli.translations import write_translations
from tests.in_process import exit_status


class Lists(NamedTuple):
    """Scores of n-best lists of two systems, which begin with the same hypotheses."""

    first: dict[str, float]
    """Values of these first hypotheses alone, by measure."""
    better: dict[str, float]
    """Values of lists whose second hypotheses have fewer errors."""
    best: dict[str, float]
    """Values of lists whose second hypotheses are the references."""
    printed: str


def values_of(system: str, output: Path) -> dict[str, float]:
    """Return the values of a system by measure, from the file that the command wrote."""
    measures = json.loads(output.read_text())["systems"][system]
    return {name: measure["value"] for name, measure in measures.items()}


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Lists:
    """Each list has two hypotheses, which a blank line fills up to three."""
    folder = tmp_path_factory.mktemp("lists")
    write_translations(folder)
    firsts = (folder / "two").read_text().splitlines()
    for name, seconds in (("better", "one"), ("best", "ref")):
        pairs = zip(firsts, (folder / seconds).read_text().splitlines(), strict=True)
        (folder / name).write_text("".join(f"{first}\n{second}\n\n" for first, second in pairs))
    options = ["--nbest", "3", "--resamples", "20", "--output", "lists.json"]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.chdir(folder)
        assert exit_status(bleu.main, ["two", "--reference", "ref", "--output", "first.json"]) == 0
        assert exit_status(bleu.main, ["better", "best", "--reference", "ref", *options]) == 0
    return Lists(
        first=values_of("two", folder / "first.json"),
        better=values_of("better", folder / "lists.json"),
        best=values_of("best", folder / "lists.json"),
        printed=printed.getvalue(),
    )


@pytest.mark.parametrize("measure", ["BLEU 13a", "chrF2", "TER"])
def test_the_first_hypotheses_of_lists_are_measured(lists: Lists, measure: str) -> None:
    assert lists.better[measure] == lists.best[measure] == lists.first[measure]


@pytest.mark.parametrize(("measure", "perfect"), [("BLEU 13a", 100), ("chrF2", 100), ("TER", 0)])
def test_the_best_of_each_list_is_measured(lists: Lists, measure: str, perfect: float) -> None:
    """TER counts errors: less is better."""
    assert lists.best[f"{measure}, best of 3"] == pytest.approx(perfect)
    first, better = lists.better[measure], lists.better[f"{measure}, best of 3"]
    assert abs(better - perfect) < abs(first - perfect)


def test_the_best_of_lists_is_printed(lists: Lists) -> None:
    assert "BLEU 13a, best of 3" in lists.printed
