"""Search by real networks: log-probabilities, states of a decoder, and models that are refused."""

import pytest
import torch

from onmt_entmax.data.batch import Batch, Example, make_batch
from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabulary
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.search import ModelStepper, SearchConfig, beam_search
from tests.search.networks import DECODERS, VOCABULARIES, network, sentences, stepper, together


def log_prob_of_training(model: SparseNMTModel, sentence: Batch, tokens: tuple[int, ...]) -> float:
    """Return the log-probability of an output, computed as training does: all steps at once."""
    example = Example(sentence.source.flatten().tolist(), tokens, 0)
    hidden, target = model.hidden_states(make_batch([example], VOCABULARIES))
    log_probs = model.generator.log_probs(hidden).gather(1, target[:, None])
    return log_probs.sum().item()


@pytest.mark.parametrize("kind", DECODERS)
def test_log_probabilities_of_outputs_are_those_of_training(kind: str) -> None:
    model = network(kind, alpha=1.5, seed=4)
    config = SearchConfig(beam_size=5, n_best=3, max_length=8)
    outputs = [
        (sentence, hypothesis)
        for sentence in sentences(4)
        for hypothesis in beam_search(stepper(model), sentence, config)[0].hypotheses
    ]
    assert len(outputs) > 3
    for sentence, hypothesis in outputs:
        expected = log_prob_of_training(model, sentence, hypothesis.tokens)
        assert hypothesis.log_prob == pytest.approx(expected, abs=1e-5)


# --- states ----------------------------------------------------------------------------------

SECOND_TOKENS = torch.tensor([4, 5, 4])  # of three sentences, after the start symbol


@pytest.mark.parametrize("kind", DECODERS)
def test_a_state_that_was_put_aside_can_be_resumed(kind: str) -> None:
    """Later steps, and a choice of rows, leave it as it was."""
    model = stepper(network(kind, alpha=1.5, seed=7))
    with torch.inference_mode():
        start = model.start(together(sentences(3)))
        kept = model.step(start, torch.full((3,), model.bos)).state
        second = model.step(kept, SECOND_TOKENS)
        model.step(second.state, SECOND_TOKENS)
        model.select(second.state, torch.tensor([2, 0]))
        resumed = model.step(kept, SECOND_TOKENS)
    assert torch.equal(second.log_probs, resumed.log_probs)


@pytest.mark.parametrize("rows", [[1, 0, 2], [0, 2], [2, 2, 0, 1]])
@pytest.mark.parametrize("kind", DECODERS)
def test_rows_may_be_chosen_before_the_first_step(kind: str, rows: list[int]) -> None:
    model = stepper(network(kind, alpha=1.5, seed=7))
    chosen = torch.tensor(rows)
    with torch.inference_mode():
        start = model.start(together(sentences(3)))
        first = model.step(start, torch.full((3,), model.bos))
        second = model.step(first.state, SECOND_TOKENS)
        chosen_start = model.select(start, chosen)
        chosen_first = model.step(chosen_start, torch.full((len(rows),), model.bos))
        chosen_second = model.step(chosen_first.state, SECOND_TOKENS[chosen])
    assert torch.allclose(chosen_first.log_probs, first.log_probs[chosen])
    assert torch.allclose(chosen_second.log_probs, second.log_probs[chosen])


# --- models that are refused -----------------------------------------------------------------


def test_a_model_of_another_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match="output has size 6, the target vocabulary 5"):
        ModelStepper(network("lstm", alpha=1.5, seed=0), Vocabulary((*TARGET_SPECIALS, "x")))


def test_a_model_in_training_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="evaluation mode"):
        stepper(network("lstm", alpha=1.5, seed=0).train())
