"""The table of the options of `train`: default, type, help and topic of each.

`train.py` reads and checks their values. Most options are fields of the configurations in
`config/`, and declared there; here are those that are converted before they become fields.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from onmt_entmax.config import (
    ALPHA,
    ATTENTION_KINDS,
    FEW,
    LEARNED,
    RUN,
    SHARED,
    SIZE,
    TRANSFORMS,
    DataConfig,
    Equals,
    IsOn,
    ModelConfig,
    OptimizerConfig,
    Option,
    RunConfig,
    TrainingConfig,
    ValidationConfig,
    VocabularyConfig,
    declared,
)
from onmt_entmax.opennmt import train_opts
from onmt_entmax.options.declared import options_of
from onmt_entmax.rules import Rule, one_of, whole
from onmt_entmax.strings.task import LEFT_TO_RIGHT, RIGHT_TO_LEFT

# OpenNMT-py's names of alpha; `entmax` reads its alpha from an option of its own.
ALPHAS: Mapping[str, float | None] = {
    "softmax": 1.0,
    "entmax15": 1.5,
    "sparsemax": 2.0,
    "entmax": None,
}
# The alpha of a Transformer's attention may also be learned.
ATTENTION_ALPHAS: Mapping[str, Any] = {**ALPHAS, LEARNED: LEARNED, SHARED: SHARED}

# Headings of the short help, in its order; some have only fields of `config/`, which name them too.
_SPARSE = "Sparse attention and output"
_DATA = "Corpora and batches"
_MODEL = "Model"
TOPICS = (_SPARSE, "Validation", "Limits and speed", "Smoothing", RUN, _DATA, _MODEL, "Optimiser")
_TRANSFORMER = "Attention of a Transformer"  # `--help-all` alone lists these
_TEXT = Rule(str)


def _attention_options() -> dict[str, Option]:
    """Return the options of each attention of a Transformer: its function, and its alpha."""
    options: dict[str, Option] = {}
    for kind in ATTENTION_KINDS:
        function = f"{kind}_attention_function"
        options[function] = Option(
            "softmax",
            one_of(*ATTENTION_ALPHAS),
            f"Attention of the {kind}.",
            _TRANSFORMER,
            needs=Equals("decoder_type", "transformer"),
        )
        options[f"{kind}_attention_alpha"] = Option(
            1.5, ALPHA, "Its alpha.", _TRANSFORMER, needs=Equals(function, "entmax")
        )
    return options


# Options that are converted before they become fields of a configuration.
OPTIONS = {
    "global_attention_function": Option(
        "softmax",
        one_of(*ALPHAS),
        "Attention weights.",
        _SPARSE,
        needs=Equals("decoder_type", "rnn"),
    ),
    "global_attention_alpha": Option(
        1.5,
        ALPHA,
        "Alpha of the attention.",
        _SPARSE,
        needs=Equals("global_attention_function", "entmax"),
    ),
    "generator_function": Option("softmax", one_of(*ALPHAS), "Output probabilities.", _SPARSE),
    "generator_alpha": Option(
        1.5, ALPHA, "Alpha of the output.", _SPARSE, needs=Equals("generator_function", "entmax")
    ),
    **_attention_options(),
    "config": Option(None, _TEXT, "YAML file with any of these options.", RUN),
    "data": Option(
        None,
        Rule(dict),
        "Corpora, in YAML: path_src, path_tgt, weight, transforms.",
        RUN,
        required=True,
    ),
    "task": Option(
        None,
        Rule(dict),
        "What the tokens are, in YAML: columns and separators of the tables; see docs.",
        _DATA,
    ),
    "target_order": Option(
        LEFT_TO_RIGHT,
        one_of(LEFT_TO_RIGHT, RIGHT_TO_LEFT),
        "right_to_left: the network writes the last token of a target first.",
        _DATA,
    ),
    "seed": Option(-1, whole(0, 2**32 - 1, off=-1), "Seed of all random numbers; -1 means 0.", RUN),
    "gpu_ranks": Option(
        [],
        Rule(int, 0, 10_000, note=" (for the CPU, leave it out or write gpu_ranks: [])"),
        "The GPU to train on; none, or no GPU here: the CPU.",
        RUN,
    ),
    "model_dtype": Option(
        "fp32",
        one_of("fp32", "fp16"),
        "fp16 is read as 32-bit weights, on a GPU with products in tf32.",
    ),
    "early_stopping_criteria": Option(
        [], one_of("accuracy", "ppl"), "OpenNMT-py's selection.", needs=IsOn("early_stopping")
    ),
    "both_embeddings": Option(
        None, _TEXT, "Word vectors of both sides, as text.", needs=IsOn("embeddings_type")
    ),
    "tensorboard": Option(False, Rule(bool), "Also write TensorBoard's files."),
    "tensorboard_log_dir": Option(
        None, _TEXT, "Their folder, instead of save_model/tensorboard.", needs=IsOn("tensorboard")
    ),
    "transforms": Option(
        [],
        TRANSFORMS,
        "Transforms of all corpora, such as onmt_tokenize filtertoolong.",
        _DATA,
    ),
    "layers": Option(
        -1,
        replace(FEW, off=-1),
        "Layers of encoder and decoder; -1: enc_layers, dec_layers.",
        _MODEL,
    ),
    "rnn_size": Option(
        -1,
        replace(SIZE, off=-1),
        "Size of the states; -1: enc_rnn_size, dec_rnn_size.",
        _MODEL,
    ),
    "word_vec_size": Option(
        -1,
        replace(SIZE, off=-1),
        "Size of embeddings; -1: src_ and tgt_word_vec_size.",
        _MODEL,
    ),
    "enc_rnn_size": Option(500, SIZE, "Size of the encoder's states."),
    "dec_rnn_size": Option(500, SIZE, "Size of the decoder's states."),
}


def training_options() -> dict[str, Option]:
    """Return the options of `train`, in the order of the help: those that are converted first."""
    fields = declared(
        TrainingConfig,
        ValidationConfig,
        DataConfig,
        RunConfig,
        VocabularyConfig,
        ModelConfig,
        OptimizerConfig,
    )
    # A field such as `generator_alpha` is computed from the option of the same name, in OPTIONS.
    others = {name: option for name, option in fields.items() if name not in OPTIONS}
    return options_of(train_opts, OPTIONS | others)
