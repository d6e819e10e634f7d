"""How many source positions a `Translator` attends to at each step of an output."""

import pytest

from onmt_entmax import Translator
from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import SearchTask
from tests.reversing_model import LINES, with_softmax_attention


def translator_of(*models: LoadedModel) -> Translator:
    """Return a translator that counts attended positions."""
    return Translator(models, SearchTask(), attention=True)


@pytest.fixture(scope="module")
def dense_model(reversing_model: LoadedModel) -> LoadedModel:
    """The model with softmax in place of 1.5-entmax attention."""
    return with_softmax_attention(reversing_model)


class TestSparseAttention:
    @pytest.fixture(scope="class")
    def answers(self, reversing_model: LoadedModel) -> list[Answer]:
        return [*translator_of(reversing_model).answers(LINES)]

    def test_counts_the_positions_of_positive_weight(self, answers: list[Answer]) -> None:
        assert len(answers) == len(LINES)
        for answer in answers:
            weights = answer.hypotheses[0].hypothesis.attention  # (steps, source positions)
            assert list(answer.attended) == (weights > 0).sum(1).tolist()

    def test_leaves_out_positions_of_every_line(self, answers: list[Answer]) -> None:
        for line, answer in zip(LINES, answers, strict=True):
            assert min(answer.attended) < len(line.split())

    def test_is_not_dense(self, reversing_model: LoadedModel) -> None:
        assert not translator_of(reversing_model).dense_attention


class TestAnEnsembleWithOneDenseModel:
    @pytest.fixture(scope="class")
    def translator(self, reversing_model: LoadedModel, dense_model: LoadedModel) -> Translator:
        return translator_of(reversing_model, dense_model)

    def test_attends_to_all_positions_at_every_step(self, translator: Translator) -> None:
        for line, answer in zip(LINES, translator.answers(LINES), strict=True):
            assert set(answer.attended) == {len(line.split())}

    def test_is_dense(self, translator: Translator) -> None:
        assert translator.dense_attention
