"""Drawings of a report: the model must give a hypothesis the report's probability, up to rounding.

The hypothesis is long and has a probability below 1e-6, the rounding that is allowed for a token.
"""

import math
from typing import Any

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
    """A random model with softmax, which gives every output a probability."""
    folder = tmp_path_factory.mktemp("models") / "model"
    config = ModelConfig(**{**SMALL_SIZES, **DECODERS["lstm"]}, generator_alpha=1.0)
    save(folder, network("lstm", 1.0, 8, double=False), config, VOCABULARIES, {})
    return Translator.from_folders([folder], attention=True)


@pytest.fixture(scope="module")
def prob(translator: Translator) -> float:
    """The probability of the output, by the model."""
    reader = translator.reader
    output = tuple(translator.vocabularies.target.encode(OUTPUT.split()))
    lattice = lattice_of(translator, reader.encode(SOURCE.split()), [output])
    return math.exp(sum(lattice.token_log_probs()[0]))


def drawn(translator: Translator, reported: float) -> list[tuple[int, dict[str, Any]]]:
    """Return the drawings of a report in which the output has a probability."""
    record = {"source": SOURCE, "hypotheses": [{"text": OUTPUT, "prob": reported}]}
    return list(drawings(translator, [record], 1))


def test_the_output_is_less_probable_than_rounding(prob: float) -> None:
    assert 0 < prob < 1e-7


@pytest.mark.parametrize("factor", [0.9995, 1.0, 1.0005])
def test_a_sentence_of_the_reports_model_is_drawn(
    translator: Translator, prob: float, factor: float
) -> None:
    assert len(drawn(translator, factor * prob)) == 1


@pytest.mark.parametrize("factor", [0.0, 0.5, 2.0])
def test_an_improbable_output_of_another_model_is_not_drawn(
    translator: Translator, prob: float, factor: float
) -> None:
    with pytest.raises(UserError, match="other probabilities than the report says"):
        drawn(translator, factor * prob)


EXCLUDED, AT_THE_EDGE = -math.inf, math.log(3e-7)


@pytest.mark.parametrize(
    ("reported", "token_log_probs"),
    [
        pytest.param(0.0, [math.log(0.5), AT_THE_EDGE], id="excluded by the report"),
        pytest.param(0.5 * 3e-7, [math.log(0.5), EXCLUDED], id="excluded by the model"),
        pytest.param(0.0, [math.log(1e-5)] * 100, id="underflow"),
    ],
)
def test_rounding_changes_tokens_at_the_edge_of_the_support(
    reported: float, token_log_probs: list[float]
) -> None:
    assert is_rounding(reported, token_log_probs)


def test_weights_that_are_not_numbers_are_another_model() -> None:
    assert not is_rounding(0.5, [math.nan, math.log(0.5)])
