"""Unknown words that a `Translator` replaces, after which several outputs may read the same."""

from collections import Counter

import pytest

from onmt_entmax import SearchConfig, Translator
from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import SearchTask
from onmt_entmax.search.certificate import ROUNDING
from tests.reversing_model import with_softmax_output

SOURCE = "a b c"
NO_TRANSLATIONS: dict[str, str] = {}  # so that an unknown word becomes its source word
LISTED = 40  # hypotheses, so many that the word `<unk>` alone is one of them


def answer_of(model: LoadedModel, replacements: dict[str, str] | None) -> Answer:
    """Return the answer to `SOURCE`; it lists some of the outputs, of which there are many more.

    Args:
        model: the model that reverses letters; here its output is softmax, so all are possible.
        replacements: by source word, the word to write for an unknown one, if not the source word
            itself; None: unknown words are not replaced.
    """
    task = SearchTask(SearchConfig(beam_size=LISTED, n_best=LISTED, max_length=8))
    translator = Translator([with_softmax_output(model)], task, unknown=replacements)
    (answer,) = translator.answers([SOURCE])
    return answer


def repeated_texts(answer: Answer) -> list[str]:
    """Return the texts that several hypotheses of an answer have."""
    counts = Counter(decoded.text for decoded in answer.hypotheses)
    return [text for text, count in counts.items() if count > 1]


class TestWithoutReplacement:
    @pytest.fixture
    def answer(self, reversing_model: LoadedModel) -> Answer:
        return answer_of(reversing_model, None)

    def test_an_unknown_word_is_written_as_unk(self, answer: Answer) -> None:
        assert "<unk>" in [decoded.text for decoded in answer.hypotheses]

    def test_no_two_outputs_read_the_same(self, answer: Answer) -> None:
        assert repeated_texts(answer) == []

    def test_a_record_has_no_slack(self, answer: Answer) -> None:
        assert "slack" not in answer_record(answer)


class TestWithReplacement:
    @pytest.fixture
    def answer(self, reversing_model: LoadedModel) -> Answer:
        return answer_of(reversing_model, NO_TRANSLATIONS)

    def test_two_outputs_read_the_same(self, answer: Answer) -> None:
        """`<unk>` becomes `c`, the source word to which it attends, and `c` is an output too."""
        assert repeated_texts(answer) == ["c"]

    def test_slack_is_the_probability_of_all_outputs_that_are_not_listed(
        self, answer: Answer
    ) -> None:
        """Any of them may read the same as a listed one."""
        listed = sum(decoded.hypothesis.prob for decoded in answer.hypotheses)
        assert 0 < listed < 1
        assert answer_record(answer)["slack"] == pytest.approx(1 - listed + ROUNDING)
