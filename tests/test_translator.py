"""`Translator`: the models that it loads, alone and as an ensemble with other token ids."""

from pathlib import Path

import pytest

from onmt_entmax import Translator
from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import SearchTask
from tests.reversing_model import FOLDER, LINES, in_another_order

LINE = LINES[0]


def answer_of(translator: Translator) -> Answer:
    """Return the answer to one line."""
    (answer,) = translator.answers([LINE])
    return answer


@pytest.fixture(scope="module")
def answer(reversing_model: LoadedModel) -> Answer:
    """What the model answers alone."""
    return answer_of(Translator([reversing_model], SearchTask()))


@pytest.mark.filterwarnings("ignore:.* has no SHA256SUMS")
@pytest.mark.parametrize(
    "folders", [FOLDER, str(FOLDER), [str(FOLDER)]], ids=["path", "text", "list"]
)
def test_folders_may_be_a_path_a_text_or_a_list(
    answer: Answer, folders: Path | str | list[str]
) -> None:
    loaded = answer_of(Translator.from_folders(folders))
    assert loaded.hypotheses[0].text == answer.hypotheses[0].text
    assert loaded.prob == answer.prob


@pytest.fixture(scope="module")
def ensemble_answer(reversing_model: LoadedModel) -> Answer:
    """What the model answers together with itself, whose target tokens have other ids there."""
    models = [reversing_model, in_another_order(reversing_model)]
    return answer_of(Translator(models, SearchTask()))


def test_a_model_averaged_with_itself_has_the_same_output(
    answer: Answer, ensemble_answer: Answer
) -> None:
    assert ensemble_answer.hypotheses[0].text == answer.hypotheses[0].text


def test_a_model_averaged_with_itself_has_the_same_probability(
    answer: Answer, ensemble_answer: Answer
) -> None:
    assert ensemble_answer.prob == pytest.approx(answer.prob, rel=1e-5)
