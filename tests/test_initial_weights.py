"""Weights of a new model: which tensors are shared, how large they are, and which are frozen."""

from dataclasses import replace

import pytest

from onmt_entmax.model import SparseNMTModel, build_model, count_parameters
from tests.models import BRNN, JOINT_VOCABULARIES, SHARED_EMBEDDINGS, VOCABULARIES

# --- shared weights --------------------------------------------------------------------------


@pytest.fixture
def sharing_model() -> SparseNMTModel:
    """A model with one table for both embeddings and for the output."""
    return build_model(SHARED_EMBEDDINGS, JOINT_VOCABULARIES)


def test_shared_embeddings_are_one_tensor(sharing_model: SparseNMTModel) -> None:
    source = sharing_model.encoder.embeddings.word_lut.weight
    assert sharing_model.decoder.embeddings.word_lut.weight is source


def test_target_embeddings_and_output_are_one_tensor(sharing_model: SparseNMTModel) -> None:
    target = sharing_model.decoder.embeddings.word_lut.weight
    assert sharing_model.generator.weight is target


def test_shared_weights_are_counted_once(sharing_model: SparseNMTModel) -> None:
    separate = replace(SHARED_EMBEDDINGS, share_embeddings=False, share_decoder_embeddings=False)
    table = SHARED_EMBEDDINGS.tgt_word_vec_size * len(JOINT_VOCABULARIES.target)
    saved = count_parameters(build_model(separate, JOINT_VOCABULARIES)) - count_parameters(
        sharing_model
    )
    assert saved == 2 * table


# --- initial values --------------------------------------------------------------------------


def test_tied_weights_start_as_small_as_those_of_an_output_layer() -> None:
    """PyTorch's embeddings, which start with a standard deviation of 1, would be too large."""
    size = BRNN.rnn_size
    config = replace(BRNN, tgt_word_vec_size=size, share_decoder_embeddings=True, param_init=0.0)
    model = build_model(config, VOCABULARIES)
    bound = size**-0.5  # of PyTorch's linear layers
    assert 0 < model.decoder.embeddings.word_lut.weight.abs().max() <= bound


# --- frozen weights --------------------------------------------------------------------------


@pytest.fixture
def trained_names() -> set[str]:
    """The weights that are trained if the encoder is frozen."""
    model = build_model(replace(BRNN, freeze_encoder=True), VOCABULARIES)
    return {name for name, weight in model.named_parameters() if weight.requires_grad}


def test_a_frozen_encoder_keeps_its_recurrent_weights(trained_names: set[str]) -> None:
    assert trained_names
    assert not [name for name in trained_names if name.startswith("encoder.rnn")]


def test_a_frozen_encoder_trains_its_embeddings(trained_names: set[str]) -> None:
    """OpenNMT-py has an option of its own for embeddings."""
    assert "encoder.embeddings.make_embedding.emb_luts.0.weight" in trained_names
