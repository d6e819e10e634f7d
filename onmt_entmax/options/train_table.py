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
from onmt_entmax.config.declaring import PATH
from onmt_entmax.config.topics import (
    DATA,
    LIMITS,
    MODEL,
    OPTIMISER,
    RUN,
    SMOOTHING,
    SPARSE,
    TRANSFORMER,
    VALIDATION,
)
from onmt_entmax.opennmt import train_opts
from onmt_entmax.options.declared import options_of
from onmt_entmax.rules import FLAG, Rule, one_of, whole
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

TOPICS = (SPARSE, VALIDATION, LIMITS, SMOOTHING, RUN, DATA, MODEL, OPTIMISER)
"""Headings of the short help, in its order"""


# What the help calls each of `ATTENTION_KINDS`.
_ATTENTIONS = {
    "encoder": "the encoder's self-attention",
    "decoder": "the decoder's self-attention",
    "context": "the decoder's attention to the source",
}


def _attention_options() -> dict[str, Option]:
    """Return the options of each attention of a Transformer: its function, and its alpha."""
    options: dict[str, Option] = {}
    for kind in ATTENTION_KINDS:
        function = f"{kind}_attention_function"
        options[function] = Option(
            "softmax",
            one_of(*ATTENTION_ALPHAS),
            help=f"Weights of {_ATTENTIONS[kind]}.",
            topic=TRANSFORMER,
            needs=Equals("decoder_type", "transformer"),
        )
        options[f"{kind}_attention_alpha"] = Option(
            1.5,
            ALPHA,
            help=f"Alpha of {_ATTENTIONS[kind]}.",
            topic=TRANSFORMER,
            needs=Equals(function, "entmax"),
        )
    return options


# Options that are converted before they become fields of a configuration.
OPTIONS = {
    "global_attention_function": Option(
        "softmax",
        one_of(*ALPHAS),
        help="Attention weights.",
        topic=SPARSE,
        needs=Equals("decoder_type", "rnn"),
    ),
    "global_attention_alpha": Option(
        1.5,
        ALPHA,
        help="Alpha of the attention.",
        topic=SPARSE,
        needs=Equals("global_attention_function", "entmax"),
    ),
    "generator_function": Option(
        "softmax", one_of(*ALPHAS), help="Output probabilities.", topic=SPARSE
    ),
    "generator_alpha": Option(
        1.5,
        ALPHA,
        help="Alpha of the output.",
        topic=SPARSE,
        needs=Equals("generator_function", "entmax"),
    ),
    **_attention_options(),
    "config": Option(None, PATH, help="YAML file with any of these options.", topic=RUN),
    "data": Option(
        None,
        Rule(dict),
        help="Corpora, in YAML: path_src, path_tgt, weight, transforms.",
        topic=RUN,
        required=True,
    ),
    "task": Option(
        None,
        Rule(dict),
        help="What the tokens are, in YAML: columns and separators of the tables; see docs.",
        topic=DATA,
    ),
    "target_order": Option(
        LEFT_TO_RIGHT,
        one_of(LEFT_TO_RIGHT, RIGHT_TO_LEFT),
        help="right_to_left: the network writes the last token of a target first.",
        topic=DATA,
    ),
    "seed": Option(
        -1, whole(0, 2**32 - 1, off=-1), help="Seed of all random numbers; -1 means 0.", topic=RUN
    ),
    "gpu_ranks": Option(
        [],
        Rule(int, 0, 10_000, note=" (for the CPU, leave it out or write gpu_ranks: [])"),
        help="The GPU to train on; none, or no GPU here: the CPU.",
        topic=RUN,
    ),
    "model_dtype": Option(
        "fp32",
        one_of("fp32", "fp16"),
        help="fp16 is read as 32-bit weights, on a GPU with products in tf32.",
    ),
    "early_stopping_criteria": Option(
        [], one_of("accuracy", "ppl"), help="OpenNMT-py's selection.", needs=IsOn("early_stopping")
    ),
    "both_embeddings": Option(
        None, PATH, help="Word vectors of both sides, as text.", needs=IsOn("embeddings_type")
    ),
    "tensorboard": Option(False, FLAG, help="Also write TensorBoard's files."),
    "tensorboard_log_dir": Option(
        None,
        PATH,
        help="Folder of TensorBoard's files, instead of save_model/tensorboard.",
        needs=IsOn("tensorboard"),
    ),
    "transforms": Option(
        [],
        TRANSFORMS,
        help="Transforms of all corpora, such as onmt_tokenize filtertoolong.",
        topic=DATA,
    ),
    "layers": Option(
        -1,
        replace(FEW, off=-1),
        help="Layers of encoder and decoder; -1: enc_layers, dec_layers.",
        topic=MODEL,
    ),
    "rnn_size": Option(
        -1,
        replace(SIZE, off=-1),
        help="Size of the states; -1: enc_rnn_size, dec_rnn_size.",
        topic=MODEL,
    ),
    "word_vec_size": Option(
        -1,
        replace(SIZE, off=-1),
        help="Size of embeddings; -1: src_ and tgt_word_vec_size.",
        topic=MODEL,
    ),
    "enc_rnn_size": Option(500, SIZE, help="Size of the encoder's states."),
    "dec_rnn_size": Option(500, SIZE, help="Size of the decoder's states."),
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
