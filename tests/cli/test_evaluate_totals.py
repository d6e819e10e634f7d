"""`onmt-entmax evaluate` of files of tokens: a language may have the name of a total."""

from pathlib import Path

import pytest

from tests.cli.evaluating import Evaluation, evaluation_of, write_files


@pytest.fixture(params=["all", "average", "languages"])
def named_like_a_total(request: pytest.FixtureRequest) -> str:
    """A language whose name is that of a total, too."""
    name: str = request.param
    return name


@pytest.fixture
def totals(named_like_a_total: str, tmp_path: Path) -> Evaluation:
    """The only word of this language is right; of x, the second prediction of one of two words."""
    arguments = write_files(
        tmp_path,
        source=[f"lang={named_like_a_total} a", "lang=x a", "lang=x b"],
        reference=["a", "a", "b"],
        predictions=["a", "b", "b", "b", "a", "b"],
        against=[""] * 6,
    )
    return evaluation_of(tmp_path, [*arguments, "--nbest", "2"])


def test_a_language_named_like_a_total_keeps_its_scores(
    named_like_a_total: str, totals: Evaluation
) -> None:
    scores, _ = totals.printed.split("\n\n")
    _, first, *_, average = scores.splitlines()
    assert first.startswith(named_like_a_total)
    assert first.split()[-5:] == ["1", "100.00", "0.000", "100.00", "0.000"]
    assert average.split() == ["average", "3", "50.00", "0.500", "75.00", "0.250"]


def test_a_language_named_like_a_total_keeps_its_comparison(
    named_like_a_total: str, totals: Evaluation
) -> None:
    language = "all (language)" if named_like_a_total == "all" else named_like_a_total
    _, comparisons = totals.printed.split("\n\n")
    lines = comparisons.splitlines()
    first, *_ = (line for line in lines if line.startswith(f"{language} "))
    assert first.removeprefix(language).split()[:2] == ["1", "0"]
    assert lines[-1].split()[:3] == ["all", "1", "0"]
    against = totals.content["against"]
    assert against[language]["won"] == against["all"]["won"] == 1
