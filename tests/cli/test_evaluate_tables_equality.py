"""`onmt-entmax evaluate` of predicted tables: which predictions are right, symbol by symbol."""

from pathlib import Path

import pytest

from tests.cli.evaluating import run_evaluate, table_arguments


class TestADividedSymbol:
    """`t s a` is predicted as `ts a`, beside another target, which is right."""

    @pytest.fixture
    def arguments(self, tmp_path: Path) -> tuple[object, ...]:
        files = table_arguments(tmp_path, gold=("x\tt s a", "y\tb"), predicted=("x\tts a", "y\tb"))
        return (*files, "--separator", "target= ")

    def test_is_wrong(self, arguments: tuple[object, ...], tmp_path: Path) -> None:
        assert run_evaluate(tmp_path, *arguments).content["all"]["accuracy"] == 0.5

    def test_is_two_edits(self, arguments: tuple[object, ...], tmp_path: Path) -> None:
        symbols = 3 + 1
        assert run_evaluate(tmp_path, *arguments).content["all"]["error_rate"] == 2 / symbols


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        pytest.param("\u00e4", "a\u0308", id="composed and decomposed letter"),
        pytest.param("a", "a ", id="space at the end"),
        pytest.param("a", "A", id="capital letter"),
    ],
)
def test_targets_are_not_normalised(tmp_path: Path, gold: str, predicted: str) -> None:
    arguments = table_arguments(tmp_path, (f"x\t{gold}",), (f"x\t{predicted}",))
    assert run_evaluate(tmp_path, *arguments).content["all"]["accuracy"] == 0


def test_symbols_are_characters_if_no_space_stands_between_them(tmp_path: Path) -> None:
    arguments = table_arguments(tmp_path, ("x\tab",), ("x\tab",))
    assert run_evaluate(tmp_path, *arguments).content["unit"] == "characters"
