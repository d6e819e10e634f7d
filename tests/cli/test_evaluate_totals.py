"""`onmt-entmax evaluate` of files of tokens: a language may have the name of a total."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.evaluating import Evaluation, run_evaluate, write_files


class Named(NamedTuple):
    """A language, and how comparisons name it, whose only total is `all`."""

    language: str
    compared: str


@pytest.fixture(
    params=[
        Named("all", compared="all (language)"),
        Named("average", compared="average"),
        Named("languages", compared="languages"),
    ],
    ids=lambda named: named.language,
)
def named_like_a_total(request: pytest.FixtureRequest) -> Named:
    named: Named = request.param
    return named


@pytest.fixture
def evaluation(named_like_a_total: Named, tmp_path: Path) -> Evaluation:
    """The evaluation of a word in this language, and of two in x, with two predictions of each.

    Two predictions are right: the first one of this language's word, and the second one of a word
    of x. The predictions of `--against` are all empty.
    """
    arguments = write_files(
        tmp_path,
        source=[f"lang={named_like_a_total.language} a", "lang=x a", "lang=x b"],
        reference=["a", "a", "b"],
        predictions=["a", "b", "b", "b", "a", "b"],
        against=[""] * 6,
    )
    return run_evaluate(tmp_path, *arguments, "--nbest", "2")


class TestALanguageNamedLikeATotal:
    def test_keeps_its_scores(self, named_like_a_total: Named, evaluation: Evaluation) -> None:
        """Its row has words, accuracy and edit distance, and the same of the best of two."""
        _heading, (name, *scores), *_ = evaluation.scores
        assert name.startswith(named_like_a_total.language)
        assert scores == ["1", "100.00", "0.000", "100.00", "0.000"]

    def test_counts_in_the_average(self, evaluation: Evaluation) -> None:
        assert evaluation.scores[-1] == ["average", "3", "50.00", "0.500", "75.00", "0.250"]

    def test_keeps_its_comparison(self, named_like_a_total: Named, evaluation: Evaluation) -> None:
        _heading, (name, won, lost, _p_value), *_ = evaluation.comparisons
        assert (name, won, lost) == (named_like_a_total.compared, "1", "0")

    def test_counts_in_the_total_of_comparisons(self, evaluation: Evaluation) -> None:
        name, won, lost, _p_value = evaluation.comparisons[-1]
        assert (name, won, lost) == ("all", "1", "0")

    def test_is_apart_from_the_total_in_json(
        self, named_like_a_total: Named, evaluation: Evaluation
    ) -> None:
        against = evaluation.content["against"]
        assert [against[name]["won"] for name in (named_like_a_total.compared, "all")] == [1, 1]
