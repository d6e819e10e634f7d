"""The options of `train.py`: names, types, defaults and help of OpenNMT-py's and of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onmt_entmax.opennmt import AVAILABLE_TRANSFORMS, ArgumentParser, train_opts
from onmt_entmax.options.help import EPILOG, TRAINING, set_help
from onmt_entmax.options.reader import canonical, register
from onmt_entmax.options.support import REFUSED_IN_TRAINING, RETIRED_IN_TRAINING, WITHOUT_EFFECT
from onmt_entmax.text.corpus import DataConfig

# The names that OpenNMT-py's users know, as numbers; `entmax` takes its alpha from its own option.
ALPHAS: Mapping[str, float | None] = {
    "softmax": 1.0,
    "entmax15": 1.5,
    "sparsemax": 2.0,
    "entmax": None,
}


def training_parser() -> ArgumentParser:
    """OpenNMT-py's training options and ours."""
    parser = ArgumentParser(
        description="Train a sequence-to-sequence model.",
        prog="train.py",
        epilog=EPILOG,
        add_config_file_help=False,
    )
    train_opts(parser)
    known = register(parser)
    for name in ("global_attention_function", "generator_function"):
        known[name].choices = list(ALPHAS)
    known["decay_method"].choices = [*(known["decay_method"].choices or ()), "plateau", "cosine"]
    known["src_vocab"].required = False  # built from the data where it is absent
    known["bucket_size"].default = DataConfig.bucket_size
    ours = parser.add_argument_group("onmt_entmax")
    add = ours.add_argument
    alpha = "alpha for the function `entmax`: 1 is softmax, 2 is sparsemax"
    add("-global_attention_alpha", type=float, default=1.5, help=f"Attention: {alpha}.")
    add("-generator_alpha", type=float, default=1.5, help=f"Output: {alpha}.")
    add(
        "-attention_warmup_steps",
        type=int,
        default=0,
        help="Updates in which alpha of the attention rises from 1 (softmax) to its value.",
    )
    add("-train_epochs", type=int, default=None, help="Stop after this many passes over the data.")
    add("-valid_epochs", type=int, default=None, help="Validate every N epochs, not valid_steps.")
    add("-max_seconds", type=float, default=None, help="Stop after this much time of training.")
    add(
        "-num_workers",
        type=int,
        default=DataConfig.num_workers,
        help="Processes that read batches ahead, queue_size each; 0: the training one reads.",
    )
    add(
        "-on_nonfinite",
        default="stop",
        choices=["stop", "skip"],
        help="A loss or gradient of inf or nan: stop, or leave the update out.",
    )
    add(
        "-matmul_dtype",
        default="float32",
        choices=["float32", "bfloat16"],
        help="Products inside recurrences while training; states and sums stay 32-bit.",
    )
    _add_loss_options(ours)
    _add_validation_options(ours)
    for name, off in RETIRED_IN_TRAINING.items():  # known, so that an error can name them
        add(f"-{name}", type=str if off is None else type(off), default=off)
    idle = {*WITHOUT_EFFECT, *RETIRED_IN_TRAINING} - {"seed"}
    set_help(parser, TRAINING, REFUSED_IN_TRAINING, idle)
    return parser


def _add_loss_options(group: Any) -> None:
    """What the loss is made of, beside OpenNMT-py's label smoothing."""
    add = group.add_argument
    add(
        "-label_smoothing_prior",
        default="uniform",
        choices=["uniform", "unigram"],
        help="How label_smoothing spreads its part: evenly, or as frequent as tokens are.",
    )


def _add_validation_options(group: Any) -> None:
    """What is measured on the development set while training, and on how much of it."""
    add = group.add_argument
    add(
        "-selection",
        default="loss",
        choices=["loss", "token_accuracy", "exact_match", "macro_accuracy", "bleu"],
        help="Validation measure that makes a checkpoint the best.",
    )
    add(
        "-valid_decode_size",
        type=int,
        default=1000,
        help="Sentences decoded for exact_match, macro_accuracy and bleu; 0: all.",
    )
    add(
        "-valid_loss_size",
        type=int,
        default=0,
        help="Sentences that the validation loss is measured on; 0 means all.",
    )
    add("-valid_beam_size", type=int, default=1, help="Beam of that decoding.")
    add(
        "-valid_bleu_tokenize",
        default="13a",
        choices=["13a", "intl", "zh", "char", "none"],
        help="How sacrebleu divides text into words for bleu.",
    )
    add("-max_length", type=int, default=100, help="Length limit of that decoding.")


def transform_option_names() -> list[str]:
    """Names of the options that OpenNMT-py's transforms declare, or read of the vocabulary's."""
    parser = ArgumentParser(add_help=False)
    for transform in AVAILABLE_TRANSFORMS.values():
        transform.add_options(parser)
    return sorted({"share_vocab", *(canonical(action) for action in register(parser).values())})
