"""Files of weights: views and shared weights are saved, and weights that do not fit are refused."""

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
from tests.checkpoint.refusals import error_line
from tests.models import BRNN, VOCABULARIES

State = dict[str, Tensor]
"""Weights by name."""

BIAS = "generator.bias"  # `(target words,)`
# The weights that an output layer may share with the embeddings of the target.
EMBEDDINGS = "decoder.embeddings.make_embedding.emb_luts.0.weight"
OUTPUT_LAYER = "generator.weight"


def change_weights(folder: Path, change: Callable[[State], object]) -> Path:
    """Change the weights of a folder, and write their checksum again; return their file."""
    path = folder / "model.safetensors"
    weights = safetensors.torch.load(path.read_bytes())
    change(weights)
    path.write_bytes(safetensors.torch.save(weights))
    write_list(folder)
    return path


def test_weights_that_are_views_of_one_block_are_saved(tmp_path: Path) -> None:
    """On a GPU, cuDNN keeps the weights of an LSTM in one block of memory, as this test does."""
    model = build_model(BRNN, VOCABULARIES)
    weights = list(model.encoder.rnn.parameters())
    block = torch.cat([weight.detach().flatten() for weight in weights])
    parts = block.split([weight.numel() for weight in weights])
    for weight, part in zip(weights, parts, strict=True):
        weight.data = part.view_as(weight)
    save(tmp_path / "model", model, BRNN, VOCABULARIES, {})
    # Saving has left the block as it was.
    assert weights[1].untyped_storage().data_ptr() == block.untyped_storage().data_ptr()
    loaded = load(tmp_path / "model").model.state_dict()
    for name, weight in model.state_dict().items():
        assert torch.equal(loaded[name], weight), name


# --- shared weights --------------------------------------------------------------------------


def name_shared_weights(weights: State, names: Iterable[str]) -> None:
    """Replace the only name of the shared weights by these names."""
    shared = next(weights.pop(name) for name in (EMBEDDINGS, OUTPUT_LAYER) if name in weights)
    weights.update({name: shared.clone() for name in names})


@pytest.fixture
def sharing(tmp_path: Path) -> Path:
    """A saved model whose output layer shares the embeddings of the target."""
    config = replace(BRNN, share_decoder_embeddings=True, tgt_word_vec_size=BRNN.rnn_size)
    folder = tmp_path / "sharing"
    save(folder, build_model(config, VOCABULARIES), config, VOCABULARIES, {})
    return folder


def test_shared_weights_are_saved_once(sharing: Path) -> None:
    saved = safetensors.torch.load((sharing / "model.safetensors").read_bytes())
    assert len({EMBEDDINGS, OUTPUT_LAYER} & saved.keys()) == 1


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([EMBEDDINGS], id="embeddings"),
        pytest.param([OUTPUT_LAYER], id="output layer"),
        pytest.param([EMBEDDINGS, OUTPUT_LAYER], id="both"),
    ],
)
def test_shared_weights_are_read_under_either_name_or_both(sharing: Path, names: list[str]) -> None:
    saved = load(sharing).model.generator.weight
    change_weights(sharing, lambda weights: name_shared_weights(weights, names))
    loaded = load(sharing).model
    assert loaded.generator.weight.equal(saved)
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
        pytest.param(with_bias(lambda _: torch.ones(3)), id="another length"),
        pytest.param(with_bias(lambda bias: bias.unsqueeze(0)), id="a dimension more"),
        pytest.param(with_bias(lambda bias: torch.full_like(bias, torch.nan)), id="nan"),
        pytest.param(
            with_bias(lambda bias: bias.index_fill(0, torch.tensor([1]), -torch.inf)),
            id="infinite",
        ),
    ],
)
def test_weights_that_do_not_fit_are_named(folder: Path, change: Callable[[State], object]) -> None:
    path = change_weights(folder, change)
    message = error_line(lambda: load(folder))
    assert message.startswith(f"{path}: ")
    assert BIAS in message


def test_weights_that_the_network_lacks_are_named(folder: Path) -> None:
    path = change_weights(folder, lambda weights: weights.update(more=torch.ones(2)))
    assert error_line(lambda: load(folder)) == f"{path}: 'more': the model has no such weight"
