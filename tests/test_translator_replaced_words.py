"""Unknown words that a `Translator` replaces, after which several outputs may read the same."""

import pytest

from onmt_entmax import SearchConfig, Translator
from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import SearchTask
from tests.reversing_model import LINES, with_softmax_output


def answer_of(model: LoadedModel, replacements: dict[str, str] | None) -> Answer:
    """Return the answer to a line by the model with a softmax output, which lists few outputs.

    Args:
        model: the model that reverses letters.
        replacements: by source word, the word to write for an unknown one; None: no replacement.
    """
    task = SearchTask(SearchConfig(beam_size=2, max_length=8))
    translator = Translator([with_softmax_output(model)], task, unknown=replacements)
    (answer,) = translator.answers(LINES[:1])
    assert answer.result.certificate.level != "exhaustive"
    return answer


class TestWithoutReplacement:
    @pytest.fixture
    def answer(self, reversing_model: LoadedModel) -> Answer:
        return answer_of(reversing_model, None)

    def test_each_text_is_one_output(self, answer: Answer) -> None:
        assert not answer.merged

    def test_a_record_has_no_slack(self, answer: Answer) -> None:
        assert "slack" not in answer_record(answer)


class TestWithReplacement:
    @pytest.fixture
    def answer(self, reversing_model: LoadedModel) -> Answer:
        return answer_of(reversing_model, {})

    def test_a_text_may_be_several_outputs(self, answer: Answer) -> None:
        assert answer.merged

    def test_a_record_says_how_much_more_probability_a_text_may_have(self, answer: Answer) -> None:
        assert 0 < answer_record(answer)["slack"] < 1
