"""Steps of a search by recurrent models: the prepared decoder against OpenNMT-py's own step."""

from typing import Any

import pytest
import torch

from onmt_entmax.config import ModelConfig
from onmt_entmax.model import build_model
from onmt_entmax.search import ModelStepper, SearchConfig, beam_search
from onmt_entmax.search.opennmt_decoding import OpenNMTDecoding
from onmt_entmax.search.recurrent_decoding import RecurrentState
from onmt_entmax.search.stepper import SearchError, Step
from tests.search.networks import SMALL, VOCABULARIES, network, sentences, stepper, together

COVERED: list[dict[str, Any]] = [
    {"encoder_type": "brnn", "global_attention_alpha": 1.5},
    {"global_attention": "dot", "global_attention_alpha": 1.0, "dec_layers": 1, "enc_layers": 1},
    {"global_attention_alpha": 1.3, "dec_layers": 3, "enc_layers": 3},
]


def pair(
    changes: dict[str, Any], *, alpha: float, double: bool
) -> tuple[ModelStepper, ModelStepper]:
    """Return two steppers of one model: with prepared weights, and with OpenNMT-py's step."""
    torch.manual_seed(1)
    model = build_model(ModelConfig(**{**SMALL, **changes}, generator_alpha=alpha), VOCABULARIES)
    model = model.eval().double() if double else model.eval()
    prepared, plain = stepper(model, attention=True), stepper(model, attention=True)
    plain._decoding = OpenNMTDecoding(model.decoder, plain._output, attention=True)
    return prepared, plain


# The rows that each step goes on with, by their numbers in the step before. Rows of one sentence
# need not be neighbours, and a sentence may have none.
CHOSEN_ROWS = ([0, 1, 2, 3, 4], [3, 0, 0, 2, 3, 3], [5, 1, 0], [2, 1, 0, 2])
JOINED = 2  # the step before which others join


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
@pytest.mark.parametrize("changes", COVERED, ids=["general", "dot", "three layers"])
@torch.inference_mode()
def test_a_step_is_opennmts(changes: dict[str, Any], alpha: float, double: bool) -> None:
    """For rows that a search chose, in several steps; sentences leave, and others join."""
    prepared, plain = pair(changes, alpha=alpha, double=double)
    batch, joining = together(sentences(5)), together(sentences(3, 1))
    fast_state, slow_state = prepared.start(batch), plain.start(batch)
    assert isinstance(fast_state, RecurrentState)
    assert not isinstance(slow_state, RecurrentState)
    for number, rows in enumerate(CHOSEN_ROWS):
        fast_state = prepared.select(fast_state, torch.tensor(rows))
        slow_state = plain.select(slow_state, torch.tensor(rows))
        count = len(rows)
        if number == JOINED:
            fast_state = prepared.join([fast_state, prepared.start(joining)])
            slow_state = plain.join([slow_state, plain.start(joining)])
            count += len(joining)
        tokens = torch.arange(count) % len(VOCABULARIES.target)
        fast, slow = prepared.step(fast_state, tokens), plain.step(slow_state, tokens)
        assert_equal_steps(fast, slow, tolerance=1e-12 if double else 1e-6)
        fast_state, slow_state = fast.state, slow.state


@pytest.mark.parametrize("kind", ["lstm", "gru", "mean", "transformer"])
def test_what_is_not_covered_runs_through_opennmt(kind: str) -> None:
    """`mean` has a context gate; the others are no input-feeding LSTMs."""
    model = stepper(network(kind, alpha=1.5, seed=0))
    with torch.inference_mode():
        assert not isinstance(model.start(sentences(1)[0]), RecurrentState)


def test_float64_is_computed_by_opennmt() -> None:
    prepared, _ = pair(COVERED[0], alpha=1.5, double=False)
    with torch.inference_mode():
        assert not isinstance(prepared.double().start(sentences(1)[0]), RecurrentState)


@pytest.mark.parametrize(
    ("kind", "can_join"), [("input-feeding", True), ("lstm", True), ("transformer", False)]
)
def test_only_rows_of_a_transformer_share_a_position(kind: str, can_join: bool) -> None:
    assert stepper(network(kind, alpha=1.5, seed=0)).can_join == can_join


def test_a_mean_encoder_has_no_float64() -> None:
    model = stepper(network("mean", alpha=1.5, seed=0, double=False))
    with pytest.raises(SearchError, match="mean encoder cannot be computed in float64"):
        model.double()


def test_both_give_the_same_outputs_and_certificates() -> None:
    prepared, plain = pair(COVERED[0], alpha=1.5, double=True)
    config = SearchConfig(beam_size=4, n_best=2, max_length=8)
    batch = together(sentences(8))
    results = zip(*(beam_search(one, batch, config) for one in (prepared, plain)), strict=True)
    for fast, slow in results:
        assert [h.tokens for h in fast.hypotheses] == [h.tokens for h in slow.hypotheses]
        assert fast.certificate.level == slow.certificate.level
        assert (fast.rows, fast.support) == (slow.rows, slow.support)
