"""How many outputs a `Translator` finds and proves before its search of a line ends."""

from dataclasses import replace

from onmt_entmax import SearchConfig, Translator
from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import SearchTask, is_settled
from tests.reversing_model import LINES, with_softmax_output

BEAM_SIZE = 4
STOP_AT_THE_BEST = SearchTask(SearchConfig(beam_size=BEAM_SIZE, max_length=8, stop="optimal"))


def answer_of(model: LoadedModel, task: SearchTask, line: str) -> Answer:
    (answer,) = Translator([model], task).answers([line])
    return answer


class TestThreeRanks:
    """Every output of the model is possible, so that none is proven by excluding the others."""

    TASK = replace(STOP_AT_THE_BEST, config=replace(STOP_AT_THE_BEST.config, n_best=3))

    def test_a_beam_search_may_end_when_the_first_is_proven(
        self, reversing_model: LoadedModel
    ) -> None:
        answer = answer_of(with_softmax_output(reversing_model), self.TASK, LINES[0])
        certificate = answer.result.certificate
        assert (certificate.level, certificate.proven) == ("optimal", 1)

    def test_an_exact_search_proves_them_all(self, reversing_model: LoadedModel) -> None:
        task = replace(self.TASK, method="exact")
        answer = answer_of(with_softmax_output(reversing_model), task, LINES[0])
        assert is_settled(answer.result, 3)


class TestMinimumBayesRisk:
    """It compares outputs by their expected utility, so that one output would not do."""

    LINE = LINES[3]  # whose best output is proven when few are finished

    def test_without_it_a_search_may_end_with_fewer_outputs_than_its_beam(
        self, reversing_model: LoadedModel
    ) -> None:
        answer = answer_of(reversing_model, STOP_AT_THE_BEST, self.LINE)
        assert answer.result.finished < BEAM_SIZE

    def test_with_it_as_many_outputs_as_the_beam_are_ranked(
        self, reversing_model: LoadedModel
    ) -> None:
        task = replace(STOP_AT_THE_BEST, mbr="edit_distance")
        answer = answer_of(reversing_model, task, self.LINE)
        assert len(answer.mbr.texts) == len(answer.hypotheses) == BEAM_SIZE
