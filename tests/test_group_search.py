"""`ModelGroup`: a beam search, and an enumeration of the outputs that the beam did not find."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from onmt_entmax.checkpoint import load
from onmt_entmax.group_search import ModelGroup
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import SearchConfig, SearchTask
from tests.inflection_models import write_model

LINE = "lang=german +V +PST b ▁ a"
NARROW = SearchTask(SearchConfig(beam_size=2, n_best=2))  # a beam that finds some outputs, not all
ENOUGH, TOO_FEW = 1000, 1  # decoder steps of an enumeration


class Searched(NamedTuple):
    """The answer of a group, and those of its two searches, of which it chooses one."""

    answer: Answer
    beam: Answer
    enumeration: Answer


Search = Callable[[int], Searched]


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Search:
    """Searches the outputs of one line with so many steps of an enumeration."""
    model = load(write_model(tmp_path_factory.mktemp("group") / "model", 4, end=4))

    def search_with(steps: int) -> Searched:
        group = ModelGroup.of([model], NARROW, steps, symbols=None)
        assert group.enumerator is not None
        (answer,) = group.answers([LINE], batch_size=1)
        (beam,) = group.translator.answers([LINE])
        (enumeration,) = group.enumerator.answers([LINE])
        return Searched(answer, beam, enumeration)

    return search_with


def texts(answer: Answer) -> list[str]:
    """Return the outputs of an answer, the best first."""
    return [hypothesis.text for hypothesis in answer.hypotheses]


def mass(answer: Answer) -> float:
    """Return the total probability of the outputs of an answer."""
    return sum(hypothesis.hypothesis.prob for hypothesis in answer.hypotheses)


def test_an_enumeration_that_finds_more_than_the_beam_is_the_answer(search: Search) -> None:
    searched = search(ENOUGH)
    assert searched.answer.level == "exhaustive"
    assert texts(searched.answer) == texts(searched.enumeration)
    assert len(texts(searched.enumeration)) > len(texts(searched.beam))


def test_an_enumeration_that_finds_less_than_the_beam_is_not_the_answer(search: Search) -> None:
    searched = search(TOO_FEW)
    assert searched.answer.level == searched.beam.level
    assert texts(searched.answer) == texts(searched.beam)
    assert mass(searched.answer) == mass(searched.beam)
    assert mass(searched.enumeration) < mass(searched.beam)
