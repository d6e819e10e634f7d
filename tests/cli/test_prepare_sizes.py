"""`prepare sigmorphon --size --layers --batch`: a user's sizes are kept, with a plan or without."""

import pytest

from onmt_entmax.config import TrainingSetup
from onmt_entmax.train import timing
from tests.cli.planning import INFLECTION, ConstantSpeeds, prepared


@pytest.fixture(params=[[], ["--minutes", 15]], ids=["no plan", "plan"])
def setup(
    request: pytest.FixtureRequest, working_folder: object, monkeypatch: pytest.MonkeyPatch
) -> TrainingSetup:
    """The prepared training; none of its sizes is a default or the choice of a plan."""
    monkeypatch.setattr(timing, "Stopwatch", ConstantSpeeds)
    return prepared(INFLECTION, *request.param, "--size", 64, "--layers", 3, "--batch", 8)


def test_states_and_embeddings_have_the_size(setup: TrainingSetup) -> None:
    model = setup.model
    assert {model.rnn_size, model.src_word_vec_size, model.tgt_word_vec_size} == {64}


def test_encoder_and_decoder_have_the_layers(setup: TrainingSetup) -> None:
    assert (setup.model.enc_layers, setup.model.dec_layers) == (3, 3)


def test_an_update_has_the_batch(setup: TrainingSetup) -> None:
    assert setup.data.batch_size == 8
