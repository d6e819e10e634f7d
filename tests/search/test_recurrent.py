"""Steps of a search by recurrent models: the prepared decoder against OpenNMT-py's own step."""

from typing import Any, NamedTuple
from unittest import mock

import pytest
import torch

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Batch
from onmt_entmax.model import build_model
from onmt_entmax.search import ModelStepper, SearchConfig, beam_search
from onmt_entmax.search.recurrent_decoding import RecurrentState
from onmt_entmax.search.stepper import SearchError, Step
from tests.search.networks import SMALL_SIZES, VOCABULARIES, network, sentences, stepper, together

GENERAL: dict[str, Any] = {"encoder_type": "brnn", "global_attention_alpha": 1.5}
DOT = {"global_attention": "dot", "global_attention_alpha": 1.0, "dec_layers": 1, "enc_layers": 1}
THREE_LAYERS = {"global_attention_alpha": 1.3, "dec_layers": 3, "enc_layers": 3}


def pair(
    changes: dict[str, Any], *, alpha: float, double: bool
) -> tuple[ModelStepper, ModelStepper]:
    """Return two steppers of one model: with prepared weights, and with OpenNMT-py's step.

    Args:
        changes: options of the network; it is an LSTM with input feeding.
        alpha: alpha of the output layer.
        double: whether weights and steps are in float64.
    """
    torch.manual_seed(1)
    config = ModelConfig(**{**SMALL_SIZES, **changes}, generator_alpha=alpha)
    model = build_model(config, VOCABULARIES)
    with torch.no_grad():
        model.generator.bias[VOCABULARIES.target.eos] += 2.0  # so that outputs end soon
    model = model.eval().double() if double else model.eval()
    prepared = stepper(model, attention=True)
    with mock.patch.object(model.decoder, "search_step", return_value=None):
        plain = stepper(model, attention=True)  # of a decoder that has no prepared step
    return prepared, plain


SENTENCES, NEW_SENTENCES = 5, 3


class Turn(NamedTuple):
    """What a search does between two steps."""

    rows: list[int]
    """The rows that go on, by their numbers in the step before."""
    new: int = 0
    """Sentences that join, each as a row below these."""


# Sentences are A to E, and F to H, which join; the comments name the sentence of each row.
TURNS = [
    Turn([0, 1, 2, 3, 4]),  # ABCDE
    Turn([3, 0, 0, 2, 3, 3]),  # DAACDD: rows of D are not neighbours; B and E have left
    Turn([5, 1, 0], NEW_SENTENCES),  # DAD, then FGH: three new rows below the others
    Turn([4, 1, 3, 0, 4]),  # GAFDG: old rows between new ones; H has left
    Turn([0, 1, 0]),  # GAG: an old row between two of a new sentence
]


def advance(stepper: ModelStepper, state: Any, turn: Turn, joining: Batch) -> Step:
    """Choose rows, let sentences join if it is their turn, and append a token to each row."""
    state = stepper.select(state, torch.tensor(turn.rows))
    if turn.new:
        state = stepper.join([state, stepper.start(joining)])
    tokens = torch.arange(len(turn.rows) + turn.new) % len(VOCABULARIES.target)
    return stepper.step(state, tokens)


def assert_equal_steps(fast: Step, slow: Step, tolerance: float) -> None:
    """Compare a step of prepared weights with OpenNMT-py's, which may keep more padding."""
    # A logarithm near the edge of the support magnifies rounding: probabilities are compared.
    ours, theirs = fast.log_probs.exp(), slow.log_probs.exp()
    torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance)
    assert fast.source_lengths.tolist() == slow.source_lengths.tolist()
    width = fast.attention.size(1)
    torch.testing.assert_close(fast.attention, slow.attention[:, :width], rtol=0, atol=tolerance)
    assert slow.attention[:, width:].eq(0).all()


@pytest.mark.parametrize("double", [True, False], ids=["float64", "float32"])
@pytest.mark.parametrize("alpha", [1.0, 1.05, 1.5, 2.0])
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(GENERAL, id="general"),
        pytest.param(DOT, id="dot"),
        pytest.param(THREE_LAYERS, id="three layers"),
    ],
)
@torch.inference_mode()
def test_a_prepared_step_is_that_of_opennmt(
    changes: dict[str, Any], alpha: float, double: bool
) -> None:
    """Each of several steps is for rows that a search chose; sentences leave, and others join."""
    prepared, plain = pair(changes, alpha=alpha, double=double)
    batch, joining = together(sentences(SENTENCES)), together(sentences(NEW_SENTENCES, 1))
    fast_state, slow_state = prepared.start(batch), plain.start(batch)
    assert isinstance(fast_state, RecurrentState)
    assert not isinstance(slow_state, RecurrentState)
    for turn in TURNS:
        fast = advance(prepared, fast_state, turn, joining)
        slow = advance(plain, slow_state, turn, joining)
        assert_equal_steps(fast, slow, tolerance=1e-12 if double else 1e-6)
        fast_state, slow_state = fast.state, slow.state


@pytest.mark.parametrize("kind", ["lstm", "gru", "mean", "transformer"])
def test_decoders_without_prepared_steps_run_through_opennmt(kind: str) -> None:
    """`mean` has a context gate; the others are not input-feeding LSTMs."""
    model = stepper(network(kind, alpha=1.5, seed=0))
    with torch.inference_mode():
        assert not isinstance(model.start(sentences(1)[0]), RecurrentState)


def test_float64_is_computed_by_opennmt() -> None:
    """`double` verifies results by OpenNMT-py's modules.

    A model whose own weights are in float64 has prepared steps, as `pair` makes them.
    """
    prepared, _ = pair(GENERAL, alpha=1.5, double=False)
    with torch.inference_mode():
        assert not isinstance(prepared.double().start(sentences(1)[0]), RecurrentState)


def test_a_mean_encoder_has_no_float64() -> None:
    model = stepper(network("mean", alpha=1.5, seed=0, double=False))
    with pytest.raises(SearchError, match="mean encoder cannot be computed in float64"):
        model.double()


def test_searches_by_both_steps_give_the_same_outputs_and_certificates() -> None:
    prepared, plain = pair(GENERAL, alpha=1.5, double=True)
    config = SearchConfig(beam_size=4, n_best=2, max_length=8)
    batch = together(sentences(8))
    fast_results, slow_results = (beam_search(one, batch, config) for one in (prepared, plain))
    assert all(result.hypotheses for result in slow_results)
    for fast, slow in zip(fast_results, slow_results, strict=True):
        assert [h.tokens for h in fast.hypotheses] == [h.tokens for h in slow.hypotheses]
        assert fast.certificate.level == slow.certificate.level
        assert (fast.rows, fast.support) == (slow.rows, slow.support)
