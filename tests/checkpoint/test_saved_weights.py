"""The file of weights: how shared ones are saved and read, and weights that do not fit."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import Tensor

from onmt_entmax.checkpoint import load, save
from onmt_entmax.files.checksums import write_list
from onmt_entmax.model import build_model
from tests.checkpoint.refusals import refusal
from tests.models import BRNN, VOCABULARIES

State = dict[str, Tensor]
"""Weights by name."""

BIAS = "generator.bias"


def change_weights(folder: Path, change: Callable[[State], object]) -> Path:
    """Change the weights of a folder, and write their checksum again; return their file."""
    path = folder / "model.safetensors"
    weights = safetensors.torch.load(path.read_bytes())
    change(weights)
    path.write_bytes(safetensors.torch.save(weights))
    write_list(folder)
    return path


def test_weights_that_are_views_of_one_block_are_saved(tmp_path: Path) -> None:
    """On a GPU, cuDNN keeps the weights of an LSTM in one block of memory."""
    model = build_model(BRNN, VOCABULARIES)
    weights = list(model.encoder.rnn.parameters())
    block = torch.cat([weight.detach().flatten() for weight in weights])
    parts = block.split([weight.numel() for weight in weights])
    for weight, part in zip(weights, parts, strict=True):
        weight.data = part.view_as(weight)
    save(tmp_path / "model", model, BRNN, VOCABULARIES, {})
    assert weights[1].untyped_storage().data_ptr() == block.untyped_storage().data_ptr()
    loaded = load(tmp_path / "model").model.state_dict()
    for name, weight in model.state_dict().items():
        assert torch.equal(loaded[name], weight), name


# --- shared weights --------------------------------------------------------------------------

TABLE = "decoder.embeddings.make_embedding.emb_luts.0.weight"
OUTPUT = "generator.weight"


def rename_shared(weights: State, names: Iterable[str]) -> None:
    """Give the shared weights, which are saved once, these names."""
    (saved,) = {TABLE, OUTPUT} & {*weights}
    shared = weights.pop(saved)
    weights.update({name: shared.clone() for name in names})


@pytest.mark.parametrize(
    "names", [(TABLE,), (OUTPUT,), (TABLE, OUTPUT)], ids=["embeddings", "output layer", "both"]
)
def test_shared_weights_have_either_name_or_both(tmp_path: Path, names: tuple[str, ...]) -> None:
    config = replace(BRNN, share_decoder_embeddings=True, tgt_word_vec_size=BRNN.rnn_size)
    model = build_model(config, VOCABULARIES)
    save(tmp_path / "m", model, config, VOCABULARIES, {})
    change_weights(tmp_path / "m", lambda weights: rename_shared(weights, names))
    loaded = load(tmp_path / "m").model
    assert loaded.generator.weight.equal(model.generator.weight)
    assert loaded.generator.weight is loaded.decoder.embeddings.word_lut.weight


# --- weights that do not fit -----------------------------------------------------------------


def drop_bias(weights: State) -> None:
    del weights[BIAS]


def with_bias(change: Callable[[Tensor], Tensor]) -> Callable[[State], None]:
    """Return a function that changes the bias of the output layer among weights."""
    return lambda weights: weights.update({BIAS: change(weights[BIAS])})


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(drop_bias, id="missing"),
        pytest.param(with_bias(Tensor.long), id="integers"),
        pytest.param(with_bias(lambda _: torch.ones(3)), id="another shape"),
        pytest.param(with_bias(lambda bias: bias.unsqueeze(0)), id="transposed"),
        pytest.param(with_bias(lambda bias: torch.full_like(bias, torch.nan)), id="nan"),
        pytest.param(
            with_bias(lambda bias: bias.index_fill(0, torch.tensor([1]), -torch.inf)),
            id="infinite",
        ),
    ],
)
def test_weights_that_do_not_fit_are_named(folder: Path, change: Callable[[State], object]) -> None:
    path = change_weights(folder, change)
    message = refusal(lambda: load(folder))
    assert message.startswith(f"{path}: ")
    assert BIAS in message


def test_weights_that_the_network_lacks_are_named(folder: Path) -> None:
    path = change_weights(folder, lambda weights: weights.update(more=torch.ones(2)))
    assert refusal(lambda: load(folder)) == f"{path}: 'more': the model has no such weight"
