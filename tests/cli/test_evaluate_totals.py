"""`onmt-entmax evaluate` of files of tokens: a language may have the name of a total."""

from pathlib import Path

import pytest

from tests.cli.evaluating import Evaluation, run_evaluate, write_files


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
    return run_evaluate(tmp_path, *arguments, "--nbest", "2")


class TestALanguageNamedLikeATotal:
    def test_keeps_its_scores(self, named_like_a_total: str, totals: Evaluation) -> None:
        _heading, (name, *cells), *_ = totals.scores
        assert name.startswith(named_like_a_total)
        assert cells == ["1", "100.00", "0.000", "100.00", "0.000"]

    def test_counts_in_the_average(self, totals: Evaluation) -> None:
        assert totals.scores[-1] == ["average", "3", "50.00", "0.500", "75.00", "0.250"]

    @pytest.fixture
    def compared_name(self, named_like_a_total: str) -> str:
        """The name of the language in comparisons, whose only total is `all`."""
        return "all (language)" if named_like_a_total == "all" else named_like_a_total

    def test_keeps_its_comparison(self, totals: Evaluation, compared_name: str) -> None:
        _heading, (name, won, lost, _p_value), *_ = totals.comparisons
        assert (name, won, lost) == (compared_name, "1", "0")

    def test_counts_in_the_total_of_comparisons(self, totals: Evaluation) -> None:
        name, won, lost, _p_value = totals.comparisons[-1]
        assert (name, won, lost) == ("all", "1", "0")

    def test_is_apart_from_the_total_in_json(self, totals: Evaluation, compared_name: str) -> None:
        against = totals.content["against"]
        assert [against[name]["won"] for name in (compared_name, "all")] == [1, 1]
