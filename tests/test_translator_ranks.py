"""How many outputs the search of a `Translator` has found and proven when it ends."""

import pytest

from onmt_entmax import SearchConfig, Translator
from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import SearchTask
from tests.reversing_model import LINES, with_softmax_output

BEAM_SIZE = 4


def config(n_best: int = 1) -> SearchConfig:
    """Return options of a search that may end when its first output is proven."""
    return SearchConfig(beam_size=BEAM_SIZE, n_best=n_best, max_length=8, stop="optimal")


def answer_of(model: LoadedModel, task: SearchTask, line: str) -> Answer:
    """Return the answer to one line."""
    (answer,) = Translator([model], task).answers([line])
    return answer


class TestASearchForThreeOutputs:
    """With softmax every output is possible, so that each rank has to be proven by itself."""

    @pytest.fixture(scope="class")
    def model(self, reversing_model: LoadedModel) -> LoadedModel:
        return with_softmax_output(reversing_model)

    def test_with_a_beam_may_end_when_the_first_is_proven(self, model: LoadedModel) -> None:
        answer = answer_of(model, SearchTask(config(n_best=3)), LINES[0])
        assert answer.result.certificate.level == "optimal"
        assert answer.result.certificate.proven == 1

    def test_of_the_exact_method_ends_when_all_three_are_proven(self, model: LoadedModel) -> None:
        answer = answer_of(model, SearchTask(config(n_best=3), method="exact"), LINES[0])
        assert answer.result.certificate.proven == 3


class TestMinimumBayesRisk:
    """It compares the expected utilities of outputs, so the search has to find several."""

    LINE = LINES[3]  # its first output is proven before the beam is full of finished ones

    def test_without_it_the_search_ends_with_fewer_outputs_than_its_beam_holds(
        self, reversing_model: LoadedModel
    ) -> None:
        """A control for the test below."""
        answer = answer_of(reversing_model, SearchTask(config()), self.LINE)
        assert answer.result.finished < BEAM_SIZE

    def test_compares_as_many_outputs_as_the_beam_holds(self, reversing_model: LoadedModel) -> None:
        task = SearchTask(config(), mbr="edit_distance")
        answer = answer_of(reversing_model, task, self.LINE)
        assert len(answer.mbr.texts) == BEAM_SIZE
        assert len(answer.hypotheses) == BEAM_SIZE
