"""`onmt-entmax import-onmt`: weights and vocabularies, which a stranger's checkpoint may damage."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from onmt_entmax.cli.foreign_checkpoint import ImportingError, vocabularies_of
from onmt_entmax.cli.foreign_options import model_config, options_of
from onmt_entmax.model import build_model
from tests.cli.foreign_checkpoints import Checkpoint, checkpoint_with, convert


def checkpoint_with_weights() -> Checkpoint:
    """Return a checkpoint in memory, with the weights of a tiny model."""
    content = checkpoint_with(layers=1, rnn_size=4, word_vec_size=2)
    config = model_config(options_of(content))
    weights = build_model(config, vocabularies_of(content)).state_dict()
    for name, weight in weights.items():
        if name.startswith("generator."):  # which OpenNMT-py keeps apart, under other names
            content["generator"][name.replace("generator.", "0.")] = weight.clone()
        else:
            content["model"][name] = weight.clone()
    return content


BIAS = "0.bias"  # of the output layer, for five target tokens


def with_bias(bias: Any) -> Checkpoint:
    """Return a checkpoint with another bias of the output."""
    content = checkpoint_with_weights()
    content["generator"][BIAS] = bias
    return content


def without_bias() -> Checkpoint:
    content = checkpoint_with_weights()
    del content["generator"][BIAS]
    return content


def with_another_weight() -> Checkpoint:
    content = checkpoint_with_weights()
    content["model"][7] = torch.ones(1)
    return content


def with_odd_source_fields() -> Checkpoint:
    content = checkpoint_with_weights()
    content["vocab"]["src"].fields.append(3)
    return content


def with_target_tokens(tokens: Any) -> Checkpoint:
    """Return a checkpoint with another list of target tokens."""
    content = checkpoint_with_weights()
    content["vocab"]["tgt"].fields[0][1].vocab.itos = tokens
    return content


def test_a_whole_checkpoint_is_converted() -> None:
    """A control: only the damage is wrong in the cases below."""
    convert(checkpoint_with_weights())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(without_bias, "generator.bias: is missing", id="no bias"),
        pytest.param(partial(with_bias, None), "not a tensor of floats", id="None for a weight"),
        pytest.param(
            partial(with_bias, torch.ones(6)), r"\[6\], where the model", id="a bias too long"
        ),
        pytest.param(
            partial(with_bias, torch.ones(5).to_sparse()),
            "not a tensor of floats",
            id="a sparse bias",
        ),
        pytest.param(
            partial(with_bias, torch.ones(5, device="meta")),
            "not a tensor of floats",
            id="a tensor without memory",
        ),
        pytest.param(
            partial(with_bias, torch.full((5,), torch.nan)), "not finite", id="not a number"
        ),
        pytest.param(
            with_another_weight, "7: the model has no such weight", id="a weight too many"
        ),
        pytest.param(with_odd_source_fields, "no src vocabulary", id="a number among the fields"),
        pytest.param(
            partial(with_target_tokens, 5),
            "vocabulary: target: must be a list",
            id="a number in place of the tokens",
        ),
    ],
)
def test_damaged_and_hostile_contents_are_refused_in_one_line(
    make: Callable[[], Checkpoint], message: str
) -> None:
    with pytest.raises(ImportingError, match=message) as caught:
        convert(make())
    assert "\n" not in str(caught.value)


def test_source_features_are_refused() -> None:
    content = checkpoint_with()
    content["vocab"]["src"].fields.append(("pos", None))
    with pytest.raises(ImportingError, match="source features are not supported"):
        vocabularies_of(content)


def test_a_vocabulary_without_a_special_token_is_refused() -> None:
    content = checkpoint_with()
    content["vocab"]["tgt"].fields[0][1].vocab.itos.remove("</s>")
    with pytest.raises(ImportingError, match=r"target: the special token '</s>' is missing"):
        vocabularies_of(content)


def test_a_checkpoint_without_vocabularies_is_refused() -> None:
    with pytest.raises(ImportingError, match="no src vocabulary"):
        vocabularies_of({"vocab": {}})
