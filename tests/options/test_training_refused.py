"""Options of `train` that exclude each other, or make a training impossible: one-line errors."""

from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from tests.options.trainings import (
    ENTMAX_OUTPUT,
    LEARNED_ENCODER_ATTENTION,
    TRANSFORMER,
    Changes,
    parameter_id,
    toy_setup,
)

MAPPINGS_REFUSED = [
    (
        {"generator_function": "entmax", "generator_alpha": 0.5},
        "generator_alpha: must be a number from 1",
    ),
    (
        {"global_attention_alpha": 1.2},
        "global_attention_alpha: is only read with global_attention_function: entmax",
    ),
    (
        ENTMAX_OUTPUT | {"generator_function": "softmax"},
        "generator_alpha: is only read with generator_function: entmax",
    ),
    (
        {"attention_warmup_steps": 9, "global_attention_function": "softmax"},
        "attention_warmup_steps: is only read with global_attention_function or",
    ),
    (
        {"encoder_attention_function": "learned"},
        "encoder_attention_function: is only read with decoder_type: transformer",
    ),
    (
        TRANSFORMER | {"global_attention_function": "entmax15"},
        "global_attention_function: is only read with decoder_type: rnn",
    ),
    (
        TRANSFORMER | {"alpha_init_std": 2},
        "alpha_init_std: is only read with encoder_attention_function: learned or",
    ),
    (
        LEARNED_ENCODER_ATTENTION | {"encoder_attention_alpha": 2},
        "encoder_attention_alpha: is only read with encoder_attention_function: entmax",
    ),
    (
        TRANSFORMER | {"self_attn_type": "average", "decoder_attention_function": "learned"},
        "decoder_attention_alpha: needs self_attn_type: scaled-dot",
    ),
]
NETWORKS_REFUSED = [
    ({"rnn_size": 33}, "rnn_size: must be even"),
    ({"rnn_size": 10**9}, "rnn_size: must be -1 or "),
    ({"encoder_type": "transformer"}, "encoder_type: a Transformer needs it on both sides"),
    ({"dropout": [0.1, 0.2]}, "dropout: needs as many values as dropout_steps"),
    ({"dropout": [0.1, 0.2], "dropout_steps": [9, 0]}, "dropout_steps: must rise"),
]
GLOVE: Changes = {"src_embeddings": __file__, "embeddings_type": "GloVe"}
VOCABULARIES_REFUSED = [
    ({"label_smoothing_prior": "unigram"}, "_prior: is only read with label_smoothing"),
    ({"share_embeddings": True}, "share_embeddings: is only read with share_vocab"),
    ({"copy_frequency": 2, "share_vocab": True}, "copy_frequency: needs vocabularies"),
    ({"copy_frequency": 2, "src_words_min_frequency": 3}, "copy_frequency: decides which symbols"),
    ({"src_vocab": "v", "tgt_vocab": "./v"}, "tgt_vocab: is src_vocab, and not there yet"),
    ({"src_vocab": "/dev/null"}, "src_vocab: /dev/null is a pipe or a device"),
    ({"tgt_vocab": "/"}, "tgt_vocab: / is a folder; name a file"),
    ({"both_embeddings": "no", "embeddings_type": "GloVe"}, "both_embeddings: no such file: no"),
    (
        GLOVE | {"both_embeddings": __file__},
        "src_embeddings: give both_embeddings alone, or one for each side",
    ),
    (
        GLOVE | {"share_vocab": True, "share_embeddings": True, "tgt_embeddings": __file__},
        "src_embeddings: with share_embeddings, give both_embeddings alone",
    ),
]
SCHEDULES_REFUSED = [
    ({"valid_epochs": 1}, "toy.yaml: valid_epochs: give valid_steps or valid_epochs, not both"),
    (
        {"decay_method": "cosine", "train_steps": None, "train_epochs": 2},
        "decay_method: cosine ends at train_steps",
    ),
    ({"decay_method": "noam", "warmup_steps": 0}, "warmup_steps: must be at least 1 with decay"),
]
MACHINES_REFUSED = [
    ({"gpu_ranks": [0, 1]}, "names 2 GPUs: start as many processes with torchrun"),
    ({"matmul_dtype": "tf32"}, "matmul_dtype: tf32 needs a GPU: give gpu_ranks"),
    ({"matmul_dtype": "bfloat16", "rnn_type": "GRU"}, "matmul_dtype: bfloat16 is of LSTM"),
    ({"save_model": __file__}, "save_model: is a file; name a folder"),
    (
        {"tensorboard": True, "tensorboard_log_dir": __file__},
        "tensorboard_log_dir: is a file; name a folder",
    ),
]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        *MAPPINGS_REFUSED,
        *NETWORKS_REFUSED,
        *VOCABULARIES_REFUSED,
        *SCHEDULES_REFUSED,
        *MACHINES_REFUSED,
    ],
    ids=parameter_id,
)
def test_options_that_make_a_training_impossible_are_refused_in_one_line(
    tmp_path: Path, file: Changes, message: str
) -> None:
    with pytest.raises(UserError) as caught:
        toy_setup(tmp_path, **file)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
