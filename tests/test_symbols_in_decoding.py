"""Special symbols, such as `</s>`, in sources, targets and requests of a user: no text has them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax import load
from onmt_entmax.cli import score
from onmt_entmax.data.reader import Reader
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary
from onmt_entmax.errors import UserError
from onmt_entmax.search import LineConstraints, SearchTask
from onmt_entmax.suggester import suggest
from onmt_entmax.translator import Translator
from tests.certain_models import write_model_of
from tests.commands import json_lines

SYMBOLS = ["<s>", "</s>", "<blank>"]


def test_symbols_in_a_source_are_read_as_unknown() -> None:
    shared = Vocabulary(("<unk>", "<blank>", "<s>", "</s>", "a"))
    source = Reader(Vocabularies(shared, shared)).encode(["<s>", "a", "</s>", "<blank>", "<unk>"])
    assert list(source.example.source) == [0, 4, 0, 0, 0]
    assert source.unknown == ("<s>", "</s>", "<blank>")


def test_symbols_that_the_training_sources_had_are_read() -> None:
    """A source vocabulary of its own may have `<s>` as a word; `<blank>` is always padding."""
    vocabularies = Vocabularies(
        Vocabulary(("<unk>", "<blank>", "<s>", "a")),
        Vocabulary(("<unk>", "<blank>", "<s>", "</s>", "a", "b")),
    )
    source = Reader(vocabularies).encode(["<s>", "a", "<blank>"])
    assert list(source.example.source) == [2, 3, 0]
    assert source.unknown == ("<blank>",)


@pytest.mark.parametrize("symbol", SYMBOLS)
class TestASymbol:
    """It may not stand in a request about outputs."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return write_model_of(tmp_path / "model", "x", "</s>")

    @pytest.fixture
    def message(self, symbol: str) -> str:
        return f"'{symbol}' is a symbol of the model's own, and no part of a text"

    def test_is_refused_in_a_prefix(self, folder: Path, symbol: str, message: str) -> None:
        translator = Translator.from_folders([folder])
        with pytest.raises(UserError, match=f"prefix of line 1: {message}"):
            list(translator.answers(["a"], prefixes=[f"x {symbol}"]))

    @pytest.mark.parametrize(
        "constraints",
        [
            pytest.param(lambda symbol: LineConstraints(((f"x {symbol}",),)), id="a phrase"),
            pytest.param(lambda symbol: LineConstraints(avoid=(symbol,)), id="a word to avoid"),
            pytest.param(lambda symbol: LineConstraints(regex=f"x {symbol}"), id="an expression"),
        ],
    )
    def test_is_refused_in_constraints_of_a_line(
        self,
        folder: Path,
        symbol: str,
        message: str,
        constraints: Callable[[str], LineConstraints],
    ) -> None:
        translator = Translator.from_folders([folder])
        with pytest.raises(UserError, match=f"constraints of line 1: {message}"):
            list(translator.answers(["a"], constraints=[constraints(symbol)]))

    def test_is_refused_in_a_constraint_of_all_lines(
        self, folder: Path, symbol: str, message: str
    ) -> None:
        with pytest.raises(UserError, match=f"constraint_regex: {message}"):
            Translator.from_folders([folder], SearchTask(regex=f". {symbol}"))

    def test_is_refused_in_a_prefix_to_continue(
        self, folder: Path, symbol: str, message: str
    ) -> None:
        with pytest.raises(UserError, match=f"^{message}"):
            suggest(load(folder), "a", symbol)


class TestScoring:
    """A target with a symbol is scored like one with an unknown token."""

    def record(self, folder: Path, target: str) -> dict[str, Any]:
        """Write a model, and return what `score` records of a target."""
        folder.mkdir(exist_ok=True)
        model = write_model_of(folder / "model", "x", "y", "</s>")
        source, reference, output = folder / "src", folder / "tgt", folder / "out"
        source.write_text("a\n")
        reference.write_text(f"{target}\n")
        files = ["-model", model, "-src", source, "-tgt", reference, "-output", output]
        assert score.main([*map(str, files)]) == 0
        (record,) = json_lines(output)
        return record

    @pytest.mark.parametrize("token", ["</s>", "?"], ids=["symbol", "unknown token"])
    def test_names_the_token(self, tmp_path: Path, token: str) -> None:
        record = self.record(tmp_path, f"x {token} y")
        assert record["excluded_at"] == 1
        assert list(record["unknown_target"]) == [token]

    def test_gives_the_same_numbers(self, tmp_path: Path) -> None:
        def steps(name: str, token: str) -> list[dict[str, Any]]:
            """Return the steps of a target with a token, without the names of tokens."""
            record = self.record(tmp_path / name, f"x {token} y")
            return [{**step, "token": ""} for step in record["steps"]]

        assert steps("symbol", "</s>") == steps("unknown", "?")
