"""Options of `train` that do not fit each other, or this machine.

`ModelConfig.misfits` checks options of the network that do not fit each other.
"""

import os
from collections.abc import Iterator
from itertools import chain

from onmt_entmax.data.training import VALID
from onmt_entmax.errors import counted
from onmt_entmax.files import no_such_file
from onmt_entmax.options.given import Options
from onmt_entmax.parallel.processes import Processes

Misfits = Iterator[tuple[str, str]]
"""The name of each option that does not fit, and the reason"""


def misfits(options: Options) -> Misfits:
    """Yield the name of each option that makes a training impossible, and the reason.

    Args:
        options: all options; sizes and limits that follow from others are set.
    """
    return chain(
        _misfits_of_changing_options(options),
        _misfits_of_files(options),
        _misfits_of_copying(options),
        _misfits_of_calibration(options),
        _misfits_of_schedules(options),
        _misfits_of_devices(options),
    )


def _misfits_of_changing_options(options: Options) -> Misfits:
    """Check options whose values change during a training: each value needs a step to start at."""
    starts_of = {
        "accum_count": "accum_steps",
        "dropout": "dropout_steps",
        "attention_dropout": "dropout_steps",
    }
    for name, starts in starts_of.items():
        if len(options[name]) != len(options[starts]):
            yield name, f"needs as many values as {starts}"
        if options[starts] != sorted(options[starts]):
            yield starts, "must rise"


def _misfits_of_files(options: Options) -> Misfits:
    """Check the folder of the run and the vocabulary files."""
    if not options["save_model"].strip():
        yield "save_model", "must name a folder"
    if os.path.isfile(options["save_model"]):
        yield "save_model", "is a file; name a folder"
    if options["tensorboard"] and os.path.isfile(options["tensorboard_log_dir"] or ""):
        yield "tensorboard_log_dir", "is a file; name a folder"
    for name in ("src_vocab", "tgt_vocab"):
        path = options[name]
        # A pipe would be taken for a file that does not exist, and written.
        if path is not None and os.path.exists(path) and not os.path.isfile(path):
            yield name, no_such_file(path)
    source, target = options["src_vocab"], options["tgt_vocab"]
    if source is None or target is None or options["share_vocab"]:
        return
    if os.path.realpath(source) == os.path.realpath(target) and not os.path.isfile(source):
        yield "tgt_vocab", "is src_vocab, and not there yet: name two files"


def _misfits_of_copying(options: Options) -> Misfits:
    """Check that the source vocabulary tells decoding which symbols are copied."""
    if not options["copy_frequency"]:
        return
    if options["share_vocab"]:
        yield (
            "copy_frequency",
            "needs vocabularies of its own for each side: leave out share_vocab",
        )
    if options["src_words_min_frequency"]:
        yield (
            "copy_frequency",
            "decides which symbols are rare: leave src_words_min_frequency out",
        )


def _misfits_of_calibration(options: Options) -> Misfits:
    """Check that the output layer has weights of its own, which calibration multiplies."""
    if options["calibrate"] and options["share_decoder_embeddings"]:
        yield (
            "calibrate",
            "would also multiply the target embeddings: leave share_decoder_embeddings out",
        )


def _misfits_of_schedules(options: Options) -> Misfits:
    """Check the decay of the learning rate, and the unit in which validations are counted."""
    decay = options["decay_method"]
    if decay == "cosine" and not (options["train_steps"] or options["max_seconds"]):
        yield (
            "decay_method",
            "cosine ends at train_steps or max_seconds: set one of them, or name another method",
        )
    if decay in ("noam", "noamwd", "cosine") and not options["warmup_steps"]:
        yield "warmup_steps", f"must be at least 1 with decay_method: {decay}"
    if decay == "plateau" and VALID not in options["data"]:
        yield "decay_method", "plateau needs a corpus named valid under data"
    if options.is_set("valid_epochs") and options.is_set("valid_steps"):
        yield "valid_epochs", "give valid_steps or valid_epochs, not both"


def _misfits_of_devices(options: Options) -> Misfits:
    """Check the type of products, and the number of GPUs."""
    ranks, dtype = options["gpu_ranks"], options["matmul_dtype"]
    if dtype == "tf32" and not ranks:
        yield "matmul_dtype", "tf32 needs a GPU: give gpu_ranks"
    has_lstm = options["rnn_type"] == "LSTM" and (
        options["encoder_type"] in ("rnn", "brnn")
        or (options["decoder_type"] == "rnn" and options["input_feed"])
    )
    if dtype == "bfloat16" and not has_lstm:
        yield "matmul_dtype", "bfloat16 is of LSTM encoders and input-feeding LSTM decoders"
    if len(ranks) > max(options["world_size"], Processes().count):
        yield (
            "gpu_ranks",
            f"names {counted(len(ranks), 'GPU')}: start as many processes with torchrun",
        )
