"""Tables of options that are refused or without effect, and ranges of values.

Every option of OpenNMT-py is either read by `train` or `translate`, or named in a table here; a
test checks this. A refused option may be given with the value that turns it off.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from onmt_entmax.network import RULES as NETWORK
from onmt_entmax.nn.transformer import KINDS
from onmt_entmax.opennmt import AVAILABLE_TRANSFORMS
from onmt_entmax.options.reader import Options, canonical, register
from onmt_entmax.rules import SHARE, Rule, number, positive, shown, whole

_FEATURES = "source features are not supported"
_PRETRAINED = "it is a pickle; give src_embeddings, tgt_embeddings or both_embeddings as text"
_COPY = "copy attention mixes a second distribution into the output and is not supported"
_ALIGNMENT = "alignment supervision is not supported"
_ATTENTION = "`onmt-entmax figures attention` and `onmt-entmax report` show the attention"
_GRAPH = "graph encoders are not supported"
_COVERAGE = "coverage attention is not supported"
_PICKLE = "it would write pickles; vocabularies are in every model folder as vocab.json"
_LOGGING = "metrics.jsonl and TensorBoard in the run folder hold what was measured"
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
    "verbose",
    "report_time",
    "shard_size",  # the input is streamed
    "fp32",
    "avg_raw_probs",  # an ensemble always averages probabilities
)

REFUSED_IN_TRANSLATION: Mapping[str, str] = {
    "int8": _PRECISION,
    "src_feats": _FEATURES,
    "ratio": "the search stops when its answer is proven",
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
    "encoder_type": NETWORK["encoder_type"].names,
    "decoder_type": NETWORK["decoder_type"].names,
    "rnn_type": NETWORK["rnn_type"].names,
    "optim": ("sgd", "adagrad", "adadelta", "adam", "adafactor"),
    "model_task": ("seq2seq",),
    "model_dtype": ("fp32",),
    "model_type": ("text",),
    "data_type": ("text",),
    "self_attn_type": NETWORK["self_attn_type"].names,
    "reset_optim": ("none", "all"),
    "transforms": tuple(name for name in AVAILABLE_TRANSFORMS if name not in FEATURE_TRANSFORMS),
}

_COUNT, _LIMIT = whole(0, 10**12), whole(1, 10**12)  # of sentences, updates and the like
_TEMPERATURE = number(0, 1000)
_SHARE_OR_ALL = number(0, 1)
_SUBWORDS = whole(-1, 512, off=0)

# The ranges of all numeric options; those of the network stand in `onmt_entmax.network`. A bound
# that no use comes near is there because the program would run out of time or memory beyond it.
RULES: Mapping[str, Rule] = {
    **{name: rule for name, rule in NETWORK.items() if rule.kind in (int, float)},
    **{f"{kind}_attention_alpha": NETWORK["generator_alpha"] for kind in KINDS},  # of `entmax`
    "enc_rnn_size": NETWORK["rnn_size"],
    "dec_rnn_size": NETWORK["rnn_size"],
    "rnn_size": replace(NETWORK["rnn_size"], off=-1),
    "layers": replace(NETWORK["enc_layers"], off=-1),
    "word_vec_size": replace(NETWORK["src_word_vec_size"], off=-1),
    "input_feed": whole(0, 1),
    # the data
    "src_vocab_size": whole(1, 10**9),
    "tgt_vocab_size": whole(1, 10**9),
    "vocab_size_multiple": whole(1, 100_000),
    "src_words_min_frequency": _COUNT,
    "tgt_words_min_frequency": _COUNT,
    "src_seq_length_trunc": _LIMIT,
    "tgt_seq_length_trunc": _LIMIT,
    "batch_size": whole(1, 10**7),
    "valid_batch_size": whole(1, 10**7),
    "bucket_size": whole(1, 10**9),
    "num_workers": whole(0, 256),
    "queue_size": whole(1, 10_000),
    "seed": whole(0, 2**32 - 1, off=-1),
    # transforms
    "src_seq_length": _LIMIT,
    "tgt_seq_length": _LIMIT,
    "switchout_temperature": _TEMPERATURE,
    "tokendrop_temperature": _TEMPERATURE,
    "tokenmask_temperature": _TEMPERATURE,
    "src_subword_nbest": _SUBWORDS,
    "tgt_subword_nbest": _SUBWORDS,
    "src_subword_alpha": _SHARE_OR_ALL,
    "tgt_subword_alpha": _SHARE_OR_ALL,
    "src_vocab_threshold": _COUNT,
    "tgt_vocab_threshold": _COUNT,
    "permute_sent_ratio": _SHARE_OR_ALL,
    "rotate_ratio": _SHARE_OR_ALL,
    "insert_ratio": _SHARE_OR_ALL,
    "random_ratio": _SHARE_OR_ALL,
    "mask_ratio": _SHARE_OR_ALL,
    "poisson_lambda": number(0.1, 16),  # outside, OpenNMT-py seeks for ever a span not empty
    "replace_length": whole(-1, 1),
    # training
    "learning_rate": positive(1000),
    "alpha_learning_rate": positive(1000),
    "learning_rate_decay": positive(1),
    "start_decay_steps": _COUNT,
    "decay_steps": _LIMIT,
    "warmup_steps": _LIMIT,
    "adam_beta1": SHARE,
    "adam_beta2": SHARE,
    "adagrad_accumulator_init": number(0, 1e6),
    "max_grad_norm": number(0, 1e9),
    "label_smoothing": SHARE,
    "average_decay": SHARE,
    "average_every": _LIMIT,
    "accum_count": whole(1, 100_000),
    "accum_steps": _COUNT,
    "dropout_steps": _COUNT,
    "attention_warmup_steps": _COUNT,
    "world_size": whole(1, 10_000),
    "gpu_ranks": whole(0, 10_000),
    "train_steps": _LIMIT,
    "train_epochs": _LIMIT,
    "max_seconds": positive(1e10),
    "valid_steps": _LIMIT,
    "valid_epochs": _LIMIT,
    "valid_decode_size": _COUNT,
    "valid_loss_size": _COUNT,
    "valid_beam_size": whole(1, 10_000),
    "early_stopping": _COUNT,
    "save_checkpoint_steps": _LIMIT,
    "keep_checkpoint": whole(1, 10**12, off=-1),
    "report_every": _LIMIT,
    # search
    "beam_size": whole(1, 10_000),
    "n_best": whole(1, 10_000),
    "max_length": whole(1, 10**6),
    "min_length": whole(0, 10**6),
    "block_ngram_repeat": whole(0, 10**6),
    "alpha": number(0, 1000),
    "beta": number(0, 1000),
    "budget": _LIMIT,
    "mass": positive(1),
    "random_sampling_topk": whole(-1, 10**6),
    "random_sampling_topp": number(0, 1),
    "random_sampling_temp": positive(1000),
    "gpu": whole(0, 10_000, off=-1),
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


def check_values(options: Options) -> None:
    """Refuse values out of range.

    Raises:
        OptionError: names the first one and its range.
    """
    if options.given("save_model") and not options["save_model"].strip():
        raise options.error("save_model", "must name a folder")
    for name, rule in RULES.items():
        # A default may lie outside, such as None for "not given".
        if options.given(name) and (value := options[name]) is not None:
            for single in value if isinstance(value, list) else [value]:
                if not rule.fits(single):
                    raise options.error(name, f"{rule}, not {shown(single)}")
