"""`ModelGroup`: a beam search, and an enumeration of the outputs that the beam did not find."""

from typing import NamedTuple

import pytest

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.group_search import ModelGroup
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import SearchConfig, SearchTask
from tests.inflection_models import write_model

LINE = "lang=german +V +PST b ▁ a"
NARROW = SearchTask(SearchConfig(beam_size=2, n_best=2))  # a beam that finds some outputs, not all
ENOUGH, TOO_FEW = 1000, 1  # decoder steps of an enumeration


class Searched(NamedTuple):
    """The answer of a group, which is that of one of its two searches.

    Attributes:
        answer: the answer of the group.
        beam: the answer of its beam search alone.
        enumeration: the answer of its enumeration alone.
    """

    answer: Answer
    beam: Answer
    enumeration: Answer


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A random model with more outputs than the beam finds."""
    return load(write_model(tmp_path_factory.mktemp("group") / "model", seed=4, end=4))


def searched_with(model: LoadedModel, steps: int) -> Searched:
    """Search the outputs of `LINE`.

    Args:
        model: the only model of the group.
        steps: decoder steps that the enumeration may take.
    """
    group = ModelGroup.of([model], NARROW, steps, symbols=None)
    assert group.enumerator is not None
    (answer,) = group.answers([LINE], batch_size=1)
    (beam,) = group.translator.answers([LINE])
    (enumeration,) = group.enumerator.answers([LINE])
    return Searched(answer, beam, enumeration)


def texts(answer: Answer) -> list[str]:
    """Return the outputs of an answer, the best first."""
    return [hypothesis.text for hypothesis in answer.hypotheses]


def mass(answer: Answer) -> float:
    """Return the total probability of the outputs of an answer."""
    return sum(hypothesis.hypothesis.prob for hypothesis in answer.hypotheses)


def test_an_enumeration_that_finds_more_than_the_beam_is_the_answer(model: LoadedModel) -> None:
    searched = searched_with(model, ENOUGH)
    assert searched.answer.level == "exhaustive"
    assert texts(searched.answer) == texts(searched.enumeration)
    assert len(texts(searched.enumeration)) > len(texts(searched.beam))


def test_an_enumeration_that_finds_less_than_the_beam_is_not_the_answer(model: LoadedModel) -> None:
    searched = searched_with(model, TOO_FEW)
    assert searched.answer.level == searched.beam.level
    assert texts(searched.answer) == texts(searched.beam)
    assert mass(searched.answer) == mass(searched.beam)
    assert mass(searched.enumeration) < mass(searched.beam)
