"""Drawings of a report: a sentence is drawn if the report's probabilities are the model's.

Both may differ by rounding: by 0.1 % for a whole hypothesis, by 1e-6 for a token at the edge of the
support. The tests' hypothesis is less probable than 1e-6: if that bound held for whole hypotheses,
every model would seem to be the report's.
"""

import math

import pytest

from onmt_entmax.checkpoint import save
from onmt_entmax.cli.report_drawings import drawings, is_rounding
from onmt_entmax.config import ModelConfig
from onmt_entmax.errors import UserError
from onmt_entmax.pictures import lattice_of
from onmt_entmax.translator import Translator
from tests.search.networks import DECODERS, SMALL_SIZES, VOCABULARIES, network

SOURCE = "a b c d"
OUTPUT = " ".join("xy" * 20)


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
    return math.exp(sum(lattice.token_log_probs()[0]))


def numbers_drawn(translator: Translator, reported: float) -> list[int]:
    """Return the numbers of the sentences that are drawn of a report with one.

    Args:
        translator: the model.
        reported: the probability of the sentence's hypothesis in the report.
    """
    record = {"source": SOURCE, "hypotheses": [{"text": OUTPUT, "prob": reported}]}
    return [number for number, _ in drawings(translator, [record], wanted=1)]


def test_the_hypothesis_is_less_probable_than_the_rounding_of_a_token(prob: float) -> None:
    assert 0 < prob < 1e-7


@pytest.mark.parametrize("factor", [0.9995, 1.0, 1.0005])
def test_a_sentence_of_the_reports_model_is_drawn(
    translator: Translator, prob: float, factor: float
) -> None:
    assert numbers_drawn(translator, factor * prob) == [0]


@pytest.mark.parametrize("factor", [0.0, 0.5, 2.0])
def test_a_sentence_of_another_model_is_not_drawn(
    translator: Translator, prob: float, factor: float
) -> None:
    with pytest.raises(UserError, match="other probabilities than the report says"):
        numbers_drawn(translator, factor * prob)


# --- rounding, from the log-probabilities of tokens ---

HALF = math.log(0.5)
AT_THE_EDGE = math.log(3e-7)  # less than rounding changes a token of the support's edge
EXCLUDED = -math.inf


@pytest.mark.parametrize(
    ("reported", "token_log_probs"),
    [
        pytest.param(0.0, [HALF, AT_THE_EDGE], id="excluded by the report"),
        pytest.param(0.5 * 3e-7, [HALF, EXCLUDED], id="excluded by the model"),
        pytest.param(0.0, [math.log(1e-5)] * 100, id="underflow"),
    ],
)
def test_0_and_a_tiny_probability_differ_by_rounding(
    reported: float, token_log_probs: list[float]
) -> None:
    assert is_rounding(reported, token_log_probs)


def test_0_and_a_larger_probability_do_not() -> None:
    assert not is_rounding(0.0, [HALF, math.log(1e-4)])


def test_weights_that_are_not_numbers_are_another_model() -> None:
    assert not is_rounding(0.5, [math.nan, HALF])
