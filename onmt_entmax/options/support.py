"""Tables of options that are refused, retired or without effect, and ranges of values.

Every option of OpenNMT-py is either read by `train` or `translate`, or named in a table here; a
test checks this. A refused option may be given with the value that turns it off.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onmt_entmax.opennmt import AVAILABLE_TRANSFORMS
from onmt_entmax.options.reader import Options, canonical, register

_FEATURES = "source features are not supported"
_PRETRAINED = "it is a pickle; give src_embeddings, tgt_embeddings or both_embeddings as text"
_COPY = "copy attention mixes a second distribution into the output and is not supported"
_ALIGNMENT = "alignment supervision is not supported"
_ATTENTION = "`onmt-entmax figures attention` and `onmt-entmax report` show the attention"
_GRAPH = "graph encoders are not supported"
_COVERAGE = "coverage attention is not supported"
_PICKLE = "it would write pickles; vocabularies are in every model folder as vocab.json"
_LOGGING = "metrics.jsonl and TensorBoard in the run folder hold what was measured"
_SAMPLING = "random sampling is not supported; the search is exact or says so"
_PRECISION = "only 32-bit floats are supported"
_SCORERS = "use selection; `onmt-entmax bleu` scores files of translations"

REFUSED_IN_TRAINING: Mapping[str, str] = {
    "save_config": "the configuration is in every model folder as config.yaml",
    "src_feats_vocab": _FEATURES,
    "feat_merge": _FEATURES,
    "feat_vec_size": _FEATURES,
    "feat_vec_exponent": _FEATURES,
    "n_sample": "run onmt_build_vocab to see samples",
    "dump_fields": _PICKLE,
    "dump_transforms": _PICKLE,
    "pre_word_vecs_enc": _PRETRAINED,
    "pre_word_vecs_dec": _PRETRAINED,
    "update_vocab": "a model keeps the vocabularies it was trained with",
    "cnn_kernel_width": "convolutional models are not supported",
    "bridge_extra_node": _GRAPH,
    "bidir_edges": _GRAPH,
    "state_dim": _GRAPH,
    "n_edge_types": _GRAPH,
    "n_node": _GRAPH,
    "n_steps": _GRAPH,
    "src_ggnn_size": _GRAPH,
    "lambda_align": _ALIGNMENT,
    "alignment_layer": _ALIGNMENT,
    "alignment_heads": _ALIGNMENT,
    "full_context_alignment": _ALIGNMENT,
    "copy_attn": _COPY,
    "copy_attn_type": _COPY,
    "copy_attn_force": _COPY,
    "reuse_copy_attn": _COPY,
    "copy_loss_by_seqlength": _COPY,
    "coverage_attn": _COVERAGE,
    "lambda_coverage": _COVERAGE,
    "loss_scale": _PRECISION,
    "apex_opt_level": _PRECISION,
    "gpuid": "use gpu_ranks",
    "gpu_verbose_level": "all that is printed comes from the first process",
    "batch_size_multiple": "batches are not rounded",
    "single_pass": "use train_epochs: 1",
    "epochs": "use train_steps or train_epochs",
    "early_stopping_criteria": "use selection: loss (ppl) or token_accuracy (accuracy), not both",
    "truncated_decoder": "truncated backpropagation is not supported",
    "log_file": _LOGGING,
    "log_file_level": _LOGGING,
    "train_eval_steps": _SCORERS,
    "train_metrics": _SCORERS,
    "valid_metrics": _SCORERS,
    "scoring_debug": _SCORERS,
    "dump_preds": _SCORERS,
    "exp_host": _LOGGING,
    "exp": _LOGGING,
}

# Options of OpenNMT-py that change the place or speed of a computation, never a result. They are
# accepted and ignored.
WITHOUT_EFFECT = (
    "gpu_backend",  # of several processes
    "master_ip",
    "master_port",
    "max_generator_batches",  # the output layer bounds its memory by itself
    "pool_factor",  # a bucket is always sorted whole
    "save_data",  # where samples would go, with n_sample
    "seed",  # in translation, which is deterministic; training reads it
    "verbose",
    "report_time",
    "shard_size",  # the input is streamed
    "fp32",
    "avg_raw_probs",  # an ensemble always averages probabilities
)

REFUSED_IN_TRANSLATION: Mapping[str, str] = {
    "int8": _PRECISION,
    "src_feats": _FEATURES,
    "report_align": _ATTENTION,
    "ratio": "the search stops when its answer is proven",
    "random_sampling_topk": _SAMPLING,
    "random_sampling_topp": _SAMPLING,
    "random_sampling_temp": _SAMPLING,
    "stepwise_penalty": "the coverage penalty ranks finished hypotheses",
    "attn_debug": _ATTENTION,
    "align_debug": _ATTENTION,
    "dump_beam": "use -exactness_report",
    "with_score": "use -exactness_report",
    "log_file": "use -exactness_report",
    "log_file_level": "use -exactness_report",
}

# Values that turn a refused option off, besides its default.
_OFF: Mapping[str, Any] = {"batch_size_multiple": 1}

FEATURE_TRANSFORMS = ("inferfeats", "filterfeats")  # of source features

# Values that are supported, where OpenNMT-py's option has more.
SUPPORTED_VALUES: Mapping[str, Sequence[str]] = {
    "encoder_type": ("rnn", "brnn", "mean", "transformer"),
    "decoder_type": ("rnn", "transformer"),
    "rnn_type": ("LSTM", "GRU"),
    "optim": ("sgd", "adagrad", "adadelta", "adam", "adafactor"),
    "model_task": ("seq2seq",),
    "model_dtype": ("fp32",),
    "model_type": ("text",),
    "data_type": ("text",),
    "self_attn_type": ("scaled-dot", "average"),
    "reset_optim": ("none", "all"),
    "transforms": tuple(name for name in AVAILABLE_TRANSFORMS if name not in FEATURE_TRANSFORMS),
}

# Options of experiments that did not help, with the value that turns each off.
RETIRED_IN_TRAINING: Mapping[str, Any] = {"tag_head": None, "rdrop": 0.0}
RETIRED = "is retired: it did not help (see docs/results-inflection.md)"

Check = tuple[Callable[[Any], bool], str]
_POSITIVE: Check = (lambda value: value > 0, "must be above 0")
_NOT_NEGATIVE: Check = (lambda value: value >= 0, "must not be negative")
_PROBABILITY: Check = (lambda value: 0 <= value < 1, "must be at least 0 and below 1")
_FINITE: Check = (lambda value: 0 <= value < float("inf"), "must be a number from 0 up")
_ALPHA: Check = (
    lambda value: 1 <= value < float("inf"),
    "must be a number of at least 1 (1 is softmax, 2 is sparsemax)",
)

CHECKS: Mapping[str, Check] = {
    "global_attention_alpha": _ALPHA,
    "generator_alpha": _ALPHA,
    "alpha": _FINITE,
    "beta": _FINITE,
    "dropout": _PROBABILITY,
    "attention_dropout": _PROBABILITY,
    "label_smoothing": _PROBABILITY,
    "average_decay": _PROBABILITY,
    "copy_rate": _PROBABILITY,
    "adam_beta1": _PROBABILITY,
    "adam_beta2": _PROBABILITY,
    "adagrad_accumulator_init": _FINITE,
    "seed": (lambda value: -1 <= value < 2**32, "must be a number from 0 to 4294967295"),
    "mass": (lambda value: 0 < value <= 1, "must be above 0 and at most 1"),
    "save_model": (lambda value: bool(value.strip()), "must name a folder"),
    "keep_checkpoint": (lambda value: value == -1 or value > 0, "must be -1 (all) or above 0"),
    **dict.fromkeys(
        (
            "enc_layers dec_layers enc_rnn_size dec_rnn_size src_word_vec_size tgt_word_vec_size "
            "heads transformer_ff batch_size valid_batch_size bucket_size train_steps train_epochs "
            "valid_steps valid_epochs save_checkpoint_steps report_every accum_count world_size "
            "learning_rate max_seconds src_vocab_size tgt_vocab_size vocab_size_multiple "
            "src_seq_length_trunc tgt_seq_length_trunc warmup_steps decay_steps "
            "learning_rate_decay average_every queue_size budget beam_size n_best max_length "
            "valid_beam_size copy_symbols"
        ).split(),
        _POSITIVE,
    ),
    **dict.fromkeys(
        (
            "param_init max_grad_norm early_stopping valid_decode_size valid_loss_size min_length "
            "src_words_min_frequency tgt_words_min_frequency max_relative_positions "
            "start_decay_steps attention_warmup_steps num_workers dropout_steps "
            "accum_steps block_ngram_repeat"
        ).split(),
        _NOT_NEGATIVE,
    ),
}


def refuse_unsupported(
    options: Options, refused: Mapping[str, str], parser: argparse.ArgumentParser
) -> None:
    """Refuse options that are not supported, unless their value turns them off.

    Args:
        options: values given by the user.
        refused: reason for each option that is not supported.
        parser: knows the defaults, which turn an option off.

    Raises:
        OptionError: names the first one and the reason.
    """
    defaults = {canonical(action): action.default for action in register(parser).values()}
    for name in options.origin:
        off = (defaults.get(name), _OFF.get(name))
        if name in refused and options[name] not in off:
            raise options.error(name, f"not supported: {refused[name]}")


def refuse_retired(options: Options) -> None:
    """Refuse options that are retired, unless their value turns them off.

    Raises:
        OptionError: names the first one.
    """
    for name, off in RETIRED_IN_TRAINING.items():
        if options[name] != off:
            raise options.error(name, RETIRED)


def check_values(options: Options) -> None:
    """Refuse values out of range.

    Raises:
        OptionError: names the first one and its range.
    """
    for name, (fits, message) in CHECKS.items():
        value = options.values.get(name)
        values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        # A default may lie outside, such as -1 for "not given".
        if options.given(name) and not all(single is None or fits(single) for single in values):
            raise options.error(name, f"{message}, not {value}")
        if any(isinstance(single, float) and math.isinf(single) for single in values):
            raise options.error(name, f"must be a finite number, not {value}")
