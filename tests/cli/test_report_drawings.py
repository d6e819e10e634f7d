"""Sentences of a report are drawn only if the model gives their hypotheses the same probabilities.

`test_report_rounding.py` tests how much they may differ. Probabilities of single tokens may differ
by up to 1e-6. The whole hypothesis here is less probable than that. Nevertheless, a model that
gives it twice the probability must not pass.
"""

import math

import pytest

from onmt_entmax.checkpoint import save
from onmt_entmax.cli.report_drawings import drawings
from onmt_entmax.config import ModelConfig
from onmt_entmax.errors import UserError
from onmt_entmax.pictures import lattice_of
from onmt_entmax.translator import Translator
from tests.search.networks import DECODERS, SMALL_SIZES, VOCABULARIES, network

SOURCE = "a b c d"
OUTPUT = " ".join("xy" * 20)  # the hypothesis: so long that its probability is tiny


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """A random model with softmax, which gives a probability to every output."""
    folder = tmp_path_factory.mktemp("models") / "model"
    config = ModelConfig(**{**SMALL_SIZES, **DECODERS["lstm"]}, generator_alpha=1.0)
    save(folder, network("lstm", 1.0, 8, double=False), config, VOCABULARIES, {})
    return Translator.from_folders([folder], attention=True)


@pytest.fixture(scope="module")
def prob(translator: Translator) -> float:
    """The probability of the hypothesis by the model."""
    source = translator.reader.encode(SOURCE.split())
    tokens = tuple(translator.vocabularies.target.encode(OUTPUT.split()))
    lattice = lattice_of(translator, source, [tokens])
    prob = math.exp(sum(lattice.token_log_probs()[0]))
    assert 0 < prob < 1e-7
    return prob


def numbers_drawn(translator: Translator, reported: float) -> list[int]:
    """Return the numbers of the drawn sentences of a report that has one sentence.

    Args:
        translator: the model.
        reported: the probability of the sentence's hypothesis in the report.
    """
    record = {"source": SOURCE, "hypotheses": [{"text": OUTPUT, "prob": reported}]}
    return [number for number, _ in drawings(translator, [record], wanted=1)]


@pytest.mark.parametrize("factor", [0.9995, 1.0, 1.0005])
def test_a_sentence_with_the_probability_of_the_model_is_drawn(
    translator: Translator, prob: float, factor: float
) -> None:
    assert numbers_drawn(translator, factor * prob) == [0]


@pytest.mark.parametrize("factor", [0.0, 0.5, 2.0])
def test_a_sentence_with_another_probability_is_not_drawn(
    translator: Translator, prob: float, factor: float
) -> None:
    with pytest.raises(UserError, match="other probabilities than the report says"):
        numbers_drawn(translator, factor * prob)
