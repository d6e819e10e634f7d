"""`onmt-entmax import-onmt`: which options of a checkpoint are kept, left out or refused."""

import pytest

from onmt_entmax.cli.foreign_checkpoint import ImportingError
from onmt_entmax.cli.foreign_options import options_of, split_off_paths
from tests.cli.foreign_checkpoints import checkpoint_with, convert

# Options that name private files of whoever trained the model.
PATHS = {
    "tgt_subword_model": "/home/me/.ssh/id_rsa",
    "src_onmttok_kwargs": "{'sp_model_path': '/home/me/key'}",
}


def test_no_path_of_a_checkpoint_is_kept() -> None:
    corpora = {"c": {"path_src": "/home/me/x", "path_tgt": "y", "transforms": ["bpe"]}}
    options = options_of(checkpoint_with(**PATHS, src_vocab="/home/me/v", data=corpora))
    kept, _ = split_off_paths(options)
    assert "/home" not in repr(kept)


def test_options_left_out_for_their_paths_can_be_named() -> None:
    _, left_out = split_off_paths(options_of(checkpoint_with(**PATHS)))
    assert {name: left_out[name] for name in PATHS} == PATHS


def test_options_without_a_path_are_kept() -> None:
    corpora = {"c": {"path_src": "x", "path_tgt": "y", "transforms": ["bpe"]}}
    kept, _ = split_off_paths(
        options_of(checkpoint_with(**PATHS, src_subword_nbest=3, data=corpora))
    )
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
def test_an_option_that_is_not_supported_is_refused_by_name(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(ImportingError, match=message) as caught:
        convert(checkpoint_with(**options))
    assert "\n" not in str(caught.value)
