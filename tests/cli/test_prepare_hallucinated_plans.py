"""`prepare table --minutes`: the plan decides whether to hallucinate pairs, or an option does."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from onmt_entmax.train import timing
from tests.cli.planning import ConstantSpeeds
from tests.cli.preparing import prepare_rows, read_lines, written_options

pytestmark = pytest.mark.usefixtures("working_folder")


class SlowMachine(ConstantSpeeds):
    """A machine that trains every network on a hundred pairs a second."""

    def training_speeds(self, networks: Sequence[object], seconds: float) -> list[float]:
        return [100.0] * len(networks)


@pytest.fixture(autouse=True)
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that makes 10 passes over the rows in two minutes, and not in 1.5.

    At 100 pairs a second, 120 seconds are 12 passes over the 1,000 examples, and 90 are 9. The
    validations take some seconds of either.
    """
    monkeypatch.setattr(timing, "Stopwatch", SlowMachine)


def four_rows(lemma: str, form: str) -> list[str]:
    """Return four rows of a word, with different tags: as many as a plan needs to hallucinate."""
    return [f"{lemma}\tV;{number}\t{form}" for number in range(4)]


# Words that change at their ends: a plan hallucinates for them.
ENDINGS = [*four_rows("schnarchen", "schnarchte"), *four_rows("versuchen", "versuchte")]
# Words that change inside: too little of them is in their stem.
VOWELS = [*four_rows("trinken", "trank"), *four_rows("lügen", "log")]
# Eight words with a single row each, which is too few.
MANY_WORDS = [f"schnarch{letter}en\tV;PST\tschnarch{letter}te" for letter in "abcdefgh"]


def test_a_plan_of_many_passes_hallucinates_a_pair_for_each_row() -> None:
    prepare_rows(ENDINGS, "--minutes", 2)
    assert "hallucinated" in written_options()["data"]
    assert len(read_lines("out/hallucinated.src")) == len(ENDINGS)


def test_an_option_hallucinates_whatever_the_plan() -> None:
    prepare_rows(MANY_WORDS, "--minutes", 1.5, "--hallucinate", 2)
    assert "hallucinated" in written_options()["data"]
    assert len(read_lines("out/hallucinated.src")) == 2 * len(MANY_WORDS)


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        pytest.param(ENDINGS, "--minutes 1.5", id="few passes"),
        pytest.param(VOWELS, "--minutes 2", id="words that change inside"),
        pytest.param(MANY_WORDS, "--minutes 2", id="one row of each word"),
        pytest.param(ENDINGS, "--minutes 2 --hallucinate 0", id="unwanted"),
    ],
)
def test_other_plans_do_not_hallucinate(rows: list[str], options: str) -> None:
    prepare_rows(rows, *options.split())
    assert "hallucinated" not in written_options()["data"]
    assert not Path("out/hallucinated.src").exists()


@pytest.mark.parametrize(("copies", "dropout"), [(0, [0.1]), (1, [0.3])])
def test_the_dropout_of_nine_passes_is_larger_with_the_pairs_of_an_option(
    copies: int, dropout: list[float]
) -> None:
    prepare_rows(MANY_WORDS, "--minutes", 1.5, "--hallucinate", copies)
    assert written_options()["dropout"] == dropout


def test_a_plan_says_why_it_hallucinates() -> None:
    printed = prepare_rows(ENDINGS, "--minutes", 2)
    reason = "Of these rows, 8 are hallucinated, since there are at least 10 passes without"
    assert reason in printed.errors
    assert f"# {reason}" in Path("out/train.yaml").read_text("utf-8")
