"""`Translator` with `verify`: a second search in float64 confirms each certificate."""

from typing import Literal, NamedTuple
from unittest import mock

import pytest

from onmt_entmax import SearchConfig, Translator
from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import Budget, LineConstraints, SearchTask, verify
from tests.reversing_model import LINES, with_smaller_scores


class LineRequest(NamedTuple):
    """A line, with requests about its output."""

    line: str
    prefix: str = ""
    constraints: LineConstraints = LineConstraints()


# --- what is certified -----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["beam", "exact"])
@pytest.mark.parametrize(
    "line_request",
    [
        pytest.param(LineRequest("f e d", prefix="d f"), id="prefix"),
        pytest.param(
            LineRequest("f e d", constraints=LineConstraints(required=(("e d",),))), id="required"
        ),
        pytest.param(
            LineRequest("b b a", "a", LineConstraints(avoid=("b",))), id="prefix and avoided"
        ),
    ],
)
class TestRestrictedOutputs:
    """The outputs of a line whose most probable output does not satisfy the request."""

    @pytest.fixture
    def translator(
        self, reversing_model: LoadedModel, method: Literal["beam", "exact"]
    ) -> Translator:
        task = SearchTask(SearchConfig(n_best=2, max_length=12), method=method, verify=True)
        return Translator([with_smaller_scores(reversing_model)], task)

    @pytest.fixture
    def answer(self, translator: Translator, line_request: LineRequest) -> Answer:
        line, prefix, constraints = line_request
        (answer,) = translator.answers([line], prefixes=[prefix], constraints=[constraints])
        return answer

    def test_are_not_the_most_probable_ones(
        self, translator: Translator, line_request: LineRequest, answer: Answer
    ) -> None:
        (unrestricted,) = translator.answers([line_request.line])
        assert answer.prob < unrestricted.prob

    def test_are_certified(self, answer: Answer) -> None:
        assert answer.result.certificate.level != "none"

    def test_are_verified_under_the_same_request(self, answer: Answer) -> None:
        assert answer.verification is not None
        assert answer.verification.agrees


def test_a_verification_has_the_budget_of_the_search(reversing_model: LoadedModel) -> None:
    budget = Budget(12_345)  # any that is not the default
    task = SearchTask(method="exact", budget=budget, verify=True)
    with mock.patch("onmt_entmax.line_search.verify", wraps=verify) as verification:
        list(Translator([reversing_model], task).answers(LINES[:1]))
    assert [call.kwargs["budget"] for call in verification.call_args_list] == [budget]


# --- what is not certified -------------------------------------------------------------------


class TestUncertifiedOutputs:
    @pytest.fixture
    def answer(self, reversing_model: LoadedModel) -> Answer:
        """The answer of a search that cuts every output after its first letter."""
        task = SearchTask(SearchConfig(beam_size=1, max_length=1), verify=True)
        (answer,) = Translator([reversing_model], task).answers(["a b c"])
        assert answer.result.certificate.level == "none"
        return answer

    def test_are_not_verified(self, answer: Answer) -> None:
        assert answer.verification is None

    def test_have_records_without_a_verification(self, answer: Answer) -> None:
        assert "verified" not in answer_record(answer)
