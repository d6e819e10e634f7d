"""`onmt-entmax evaluate` of predicted tables: what is warned of."""

from pathlib import Path

import pytest

from tests.cli.evaluating import GOLD, evaluated, scores
from tests.cli.tables import write_table


class TestGoldQueriesWithoutAPrediction:
    """Two of three: of the predictions, `cat` alone is there."""

    @pytest.fixture
    def arguments(self, tmp_path: Path) -> tuple[object, ...]:
        gold = write_table(tmp_path / "gold.tsv", *GOLD)
        return write_table(tmp_path / "p.tsv", "cat\tk æ t"), "--reference", gold

    def test_are_counted(self, arguments: tuple[object, ...], tmp_path: Path) -> None:
        assert scores(tmp_path, *arguments)["missing"] == 2

    def test_are_wrong(self, arguments: tuple[object, ...], tmp_path: Path) -> None:
        assert scores(tmp_path, *arguments)["all"]["accuracy"] == pytest.approx(1 / 3)

    def test_have_an_error_for_each_symbol(
        self, arguments: tuple[object, ...], tmp_path: Path
    ) -> None:
        error_rate = scores(tmp_path, *arguments)["all"]["error_rate"]
        assert error_rate == pytest.approx((0 + 3 + 3) / (3 + 3 + 3))

    def test_are_warned_of(
        self, arguments: tuple[object, ...], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert evaluated(*arguments) == 0
        assert "gold queries without a prediction: 2 of 3" in capsys.readouterr().err


def test_languages_without_any_prediction_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = [write_table(tmp_path / f"{name}.tsv", "a\tb", "c\td") for name in ("xx", "yy", "zz")]
    (tmp_path / "out").mkdir()
    predicted = [write_table(tmp_path / "out/yy.tsv", "a\tb")]
    assert evaluated(*predicted, "--reference", *gold) == 0
    warning = "gold queries without a prediction: 5 of 6 (all of xx, zz); they count as wrong"
    assert warning in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        pytest.param(("cat\t", "gnu\tn"), 1, id="an empty target"),
        pytest.param(("cat\t\t\t0\tnone\t", "gnu\t\t\t0\tnone\t"), 2, id="no output at all"),
    ],
)
def test_empty_predictions_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: tuple[str, ...], count: int
) -> None:
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    assert evaluated(write_table(tmp_path / "p.tsv", *rows), "--reference", gold) == 0
    assert f"warning: empty predictions: {count} of 2" in capsys.readouterr().err


class TestSeveralPredictionsOfAQuery:
    """Two of `cat`, and the same one twice of `read`."""

    @pytest.fixture
    def arguments(self, tmp_path: Path) -> tuple[object, ...]:
        gold = write_table(tmp_path / "gold.tsv", *GOLD)
        rows = ("cat\tk æ t", "cat\tk a t", "read\tɹ ɛ d", "read\tɹ ɛ d", "gnu\tn uː")
        return write_table(tmp_path / "p.tsv", *rows), "--reference", gold

    def test_count_by_the_first(self, arguments: tuple[object, ...], tmp_path: Path) -> None:
        assert scores(tmp_path, *arguments)["all"]["accuracy"] == pytest.approx(2 / 3)

    def test_are_warned_of_if_they_differ(
        self, arguments: tuple[object, ...], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert evaluated(*arguments) == 0
        assert "several predictions, of which the first counts: 1" in capsys.readouterr().err


def test_a_table_without_any_target_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = write_table(tmp_path / "gold.tsv", *GOLD)
    predicted = write_table(tmp_path / "p.tsv", "cat\t", "read\t", "gnu\t")
    assert scores(tmp_path, predicted, "--reference", gold)["all"]["accuracy"] == 0
    assert "p.tsv: all targets are empty: are they predictions?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("predicted", "number"),
    [
        pytest.param("Haus\tHa\u0308user", 1, id="NFD"),
        pytest.param("Haus\tHäuser ", 1, id="a space at the end"),
        pytest.param("Haus\tHauser", 0, id="another letter"),
    ],
)
def test_predictions_that_are_only_written_otherwise_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], predicted: str, number: int
) -> None:
    gold = write_table(tmp_path / "gold.tsv", "Haus\tHäuser", "Maus\tMäuse")
    table = write_table(tmp_path / "p.tsv", predicted, "Maus\tMäuse")
    assert evaluated(table, "--reference", gold) == 0
    warning = "only in Unicode's normal form or in spaces around it: 1\n"
    assert capsys.readouterr().err.count(warning) == number
