"""Outputs that a `Translator` draws: what their random numbers depend on."""

import pytest

from onmt_entmax import SearchConfig, Translator
from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.search import Sampling, SearchTask
from tests.reversing_model import LINES, with_softmax_output


@pytest.fixture
def translator(reversing_model: LoadedModel) -> Translator:
    """A translator that draws three outputs a line; all outputs are possible."""
    task = SearchTask(SearchConfig(n_best=3, max_length=8), sampling=Sampling(topk=-1))
    return Translator([with_softmax_output(reversing_model)], task)


def samples_of(translator: Translator, lines: list[str], batch_size: int) -> list[tuple[str, ...]]:
    """Return the samples of each line."""
    answers = translator.answers(lines, batch_size=batch_size)
    return [tuple(sample.text for sample in answer.samples) for answer in answers]


def test_samples_do_not_depend_on_the_batch(translator: Translator) -> None:
    alone = samples_of(translator, LINES, batch_size=1)
    assert alone == samples_of(translator, LINES, batch_size=len(LINES))


def test_equal_lines_have_different_samples(translator: Translator) -> None:
    """The number of a line is part of its seed."""
    first, second, third = samples_of(translator, ["a b c"] * 3, batch_size=3)
    assert len({first, second, third}) == 3
