"""`onmt-entmax import-onmt`: what a checkpoint may contain, and what is refused by name.

Checkpoints are made in memory: a stranger's may have any content.
"""

import argparse
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from onmt_entmax.cli import import_onmt
from onmt_entmax.cli.foreign_checkpoint import ImportingError, vocabularies_of
from onmt_entmax.cli.foreign_options import model_config, options_of, split_off_paths
from onmt_entmax.model import SparseNMTModel, build_model

Checkpoint = dict[str, Any]


def fake(**options: object) -> Checkpoint:
    """Return a checkpoint in memory, with tiny vocabularies and no weights."""
    specials = ["<unk>", "<blank>", "<s>", "</s>"]

    def field(tokens: list[str]) -> SimpleNamespace:
        return SimpleNamespace(
            fields=[("src", SimpleNamespace(vocab=SimpleNamespace(itos=tokens)))]
        )

    return {
        "model": {},
        "generator": {},
        "vocab": {"src": field([*specials[:2], "a"]), "tgt": field([*specials, "b"])},
        "opt": argparse.Namespace(**options),
    }


def convert(content: Checkpoint) -> SparseNMTModel:
    """Return the model of a checkpoint in memory."""
    config = model_config(options_of(content))
    return import_onmt.model_of(content, config, vocabularies_of(content))


# --- options ---

PATHS = {
    "tgt_subword_model": "/home/me/.ssh/id_rsa",
    "src_onmttok_kwargs": "{'sp_model_path': '/home/me/key'}",
}


def test_no_path_of_a_checkpoint_is_kept() -> None:
    corpora = {"c": {"path_src": "/home/me/x", "path_tgt": "y", "transforms": ["bpe"]}}
    options = options_of(fake(**PATHS, src_vocab="/home/me/v", data=corpora))
    kept, _ = split_off_paths(options)
    assert "/home" not in repr(kept)


def test_options_left_out_for_their_paths_can_be_named() -> None:
    _, left_out = split_off_paths(options_of(fake(**PATHS)))
    assert {name: left_out[name] for name in PATHS} == PATHS


def test_options_without_a_path_are_kept() -> None:
    corpora = {"c": {"path_src": "x", "path_tgt": "y", "transforms": ["bpe"]}}
    kept, _ = split_off_paths(options_of(fake(**PATHS, src_subword_nbest=3, data=corpora)))
    assert (kept["transforms"], kept["src_subword_nbest"]) == (["bpe"], 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"model_task": "lm"}, "model_task: 'lm'", id="language model"),
        pytest.param({"encoder_type": "cnn"}, "encoder_type: must be .*, not 'cnn'", id="encoder"),
        pytest.param({"decoder_type": "transformer"}, "needs it on both sides", id="one side"),
        pytest.param({"rnn_type": "SRU"}, "rnn_type: must be .*, not 'SRU'", id="cell"),
        pytest.param({"bridge": True}, "mixes the sentences", id="bridge"),
        pytest.param(
            {"position_encoding": True}, "trains another model than it searches", id="positions"
        ),
        pytest.param(
            {"enc_rnn_size": 3, "dec_rnn_size": 4}, "must equal dec_rnn_size", id="two sizes"
        ),
        pytest.param({"layers": 1}, "the weights do not fit the options: encoder", id="no weights"),
        pytest.param({"dropout": []}, "dropout: must be ", id="empty list"),
        pytest.param(
            {"bridge": "yes", "layers": 1}, "bridge: must be true or false", id="text for a switch"
        ),
        pytest.param(
            {"word_vec_size": 10**400},
            "src_word_vec_size: must be a whole number",
            id="number too large",
        ),
    ],
)
def test_what_is_not_supported_is_refused_by_name(options: dict[str, object], message: str) -> None:
    with pytest.raises(ImportingError, match=message) as caught:
        convert(fake(**options))
    assert "\n" not in str(caught.value)


# --- weights and vocabularies ---


def checkpoint_with_weights() -> Checkpoint:
    """Return a checkpoint in memory, with the weights of a tiny model."""
    content = fake(layers=1, rnn_size=4, word_vec_size=2)
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


HOSTILE: dict[str, tuple[Callable[[], Checkpoint], str]] = {
    "no bias": (without_bias, "generator.bias: is missing"),
    "None for a weight": (partial(with_bias, None), "not a tensor of floats"),
    "a bias too long": (partial(with_bias, torch.ones(6)), r"\[6\], where the model"),
    "a sparse bias": (partial(with_bias, torch.ones(5).to_sparse()), "not a tensor of floats"),
    "without memory": (partial(with_bias, torch.ones(5, device="meta")), "generator.bias"),
    "nan": (partial(with_bias, torch.full((5,), torch.nan)), "not finite"),
    "a weight too many": (with_another_weight, "7: the model has no such weight"),
    "fields that are none": (with_odd_source_fields, "no src vocabulary"),
    "tokens that are no list": (
        partial(with_target_tokens, 5),
        "vocabulary: target: must be a list",
    ),
}


def test_a_whole_checkpoint_is_converted() -> None:
    convert(checkpoint_with_weights())


@pytest.mark.parametrize(("make", "message"), HOSTILE.values(), ids=HOSTILE)
def test_damaged_and_hostile_contents_are_refused_in_one_line(
    make: Callable[[], Checkpoint], message: str
) -> None:
    with pytest.raises(ImportingError, match=message) as caught:
        convert(make())
    assert "\n" not in str(caught.value)


def test_source_features_are_refused() -> None:
    content = fake()
    content["vocab"]["src"].fields.append(("pos", None))
    with pytest.raises(ImportingError, match="source features are not supported"):
        vocabularies_of(content)


def test_a_vocabulary_without_a_special_token_is_refused() -> None:
    content = fake()
    content["vocab"]["tgt"].fields[0][1].vocab.itos.remove("</s>")
    with pytest.raises(ImportingError, match=r"target: the special token '</s>' is missing"):
        vocabularies_of(content)


def test_a_checkpoint_without_vocabularies_is_refused() -> None:
    with pytest.raises(ImportingError, match="no src vocabulary"):
        vocabularies_of({"vocab": {}})
