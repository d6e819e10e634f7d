"""The table of the options of `train`: default, rule, help and topic of each.

Most options are fields of the configurations in `config/`, which declare them. This file declares
the other options, whose values no field has in this form: `layers` sets `enc_layers` and
`dec_layers`, and `task` is a `StringTask` in YAML. `train.py` and `train_run.py` convert them.
"""

from dataclasses import replace

from onmt_entmax.config import (
    FEW,
    SIZE,
    TRANSFORMS,
    DataConfig,
    IsOn,
    ModelConfig,
    OptimizerConfig,
    Option,
    RunConfig,
    TrainingConfig,
    ValidationConfig,
    VocabularyConfig,
    declared,
    topics,
)
from onmt_entmax.config.declaring import PATH
from onmt_entmax.opennmt import train_opts
from onmt_entmax.options import train_alphas
from onmt_entmax.options.declared import options_of
from onmt_entmax.rules import FLAG, Rule, one_of, whole
from onmt_entmax.strings.task import LEFT_TO_RIGHT, RIGHT_TO_LEFT

TOPICS = (
    topics.SPARSE,
    topics.VALIDATION,
    topics.LIMITS,
    topics.SMOOTHING,
    topics.RUN,
    topics.DATA,
    topics.MODEL,
    topics.OPTIMISER,
)
"""Headings of the short help, in its order"""

# An option without a topic is rarely needed: `--help-all` lists it, and the short help does not.
OPTIONS = {
    **train_alphas.OPTIONS,
    "config": Option(None, PATH, help="YAML file with any of these options.", topic=topics.RUN),
    "data": Option(
        None,
        Rule(dict),
        help="Corpora, in YAML: for each name, path_src, path_tgt, weight and transforms.",
        topic=topics.RUN,
        required=True,
    ),
    "task": Option(
        None,
        Rule(dict),
        help="Columns and separators of a table of strings, in YAML; `prepare table` writes them.",
        topic=topics.DATA,
    ),
    "target_order": Option(
        LEFT_TO_RIGHT,
        one_of(LEFT_TO_RIGHT, RIGHT_TO_LEFT),
        help="right_to_left: the network writes the last token of a target first.",
        topic=topics.DATA,
    ),
    "seed": Option(
        -1,
        whole(0, 2**32 - 1, off=-1),
        help="Seed of all random numbers; -1 is read as 0.",
        topic=topics.RUN,
    ),
    "gpu_ranks": Option(
        [],
        Rule(int, 0, 10_000, note=" (for the CPU, leave it out or write gpu_ranks: [])"),
        help="Number of the GPU to train on; the CPU if this is empty, or without a GPU.",
        topic=topics.RUN,
    ),
    "model_dtype": Option(
        "fp32",
        one_of("fp32", "fp16"),
        help="Type of the weights. They are always fp32; on a GPU, fp16 sets matmul_dtype to tf32.",
    ),
    "early_stopping_criteria": Option(
        [],
        one_of("accuracy", "ppl"),
        help="Read as selection: token_accuracy for accuracy alone, loss otherwise.",
        needs=IsOn("early_stopping"),
    ),
    "both_embeddings": Option(
        None, PATH, help="Word vectors of both sides, as text.", needs=IsOn("embeddings_type")
    ),
    "tensorboard": Option(
        False, FLAG, help="Also write losses and measures to TensorBoard's files."
    ),
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
        topic=topics.DATA,
    ),
    "layers": Option(
        -1,
        replace(FEW, off=-1),
        help="Layers of the encoder, and of the decoder; -1: use enc_layers and dec_layers.",
        topic=topics.MODEL,
    ),
    "rnn_size": Option(
        -1,
        replace(SIZE, off=-1),
        help="Size of the states; -1: use enc_rnn_size and dec_rnn_size.",
        topic=topics.MODEL,
    ),
    "word_vec_size": Option(
        -1,
        replace(SIZE, off=-1),
        help="Size of the embeddings; -1: use src_word_vec_size and tgt_word_vec_size.",
        topic=topics.MODEL,
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
