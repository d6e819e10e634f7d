"""The help texts of `train` and `translate`.

The short help lists our options and the most used ones of OpenNMT-py, by topic; the full help adds
the rest. Options that are refused or have no effect are left out.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onmt_entmax.options.reader import canonical
from onmt_entmax.options.support import (
    REFUSED_IN_TRAINING,
    REFUSED_IN_TRANSLATION,
    SUPPORTED_VALUES,
    WITHOUT_EFFECT,
)

SHORT, ALL = ("-h", "-help", "--help"), ("-help_all", "--help_all", "--help-all")
_WIDTH, _COLUMN = 98, 30
# OpenNMT-py's options with a single supported value, or of transforms that are refused.
_FIXED = (
    *("model_task", "model_type", "model_dtype", "data_type"),
    *("reversible_tokenization", "prior_tokenization"),
)


@dataclass(frozen=True)
class Help:
    """Help of a command.

    Attributes:
        usage: what follows the name of the program in the first line.
        purpose: one sentence.
        topics: texts of the options in the short help, by title. An option of ours may instead
            have `help="TITLE: text"` where it is added.
        others: texts that replace OpenNMT-py's in the full help.
        hidden: options that are never listed.
    """

    usage: str
    purpose: str
    topics: Mapping[str, Mapping[str, str]]
    others: Mapping[str, str]
    hidden: Collection[str]


TRAINING = Help(
    usage="-config FILE [-option value ...]",
    purpose="Train a sequence-to-sequence model.",
    topics={
        "Sparse attention and output": {
            "global_attention_function": "Attention weights.",
            "global_attention_alpha": "Alpha of the attention, with `entmax`; at least 1.",
            "generator_function": "Output probabilities.",
            "generator_alpha": "Alpha of the output, with `entmax`; at least 1.",
            "attention_warmup_steps": "Updates in which the attention's alpha rises from 1.",
        },
        "Validation": {
            "selection": "Measure that chooses the best checkpoint.",
            "valid_epochs": "Validate every N epochs, instead of valid_steps.",
            "valid_loss_size": "Sentences for the loss; 0: all.",
            "valid_decode_size": "Sentences to decode; 0: all.",
            "valid_beam_size": "Beam of the decoding.",
            "max_length": "Longest output of the decoding, in tokens.",
            "valid_bleu_tokenize": "Tokeniser of sacrebleu for `bleu`.",
        },
        "Limits and speed": {
            "train_epochs": "Stop after N passes over the data.",
            "max_seconds": "Stop after so many seconds of training.",
            "on_nonfinite": "Reaction to a loss or gradient of inf or nan.",
            "num_workers": "Processes that prefetch batches; 0: none.",
            "matmul_dtype": "Type of products in training.",
            "cuda_graphs": "Updates on a GPU as CUDA graphs.",
        },
        "Smoothing": {
            "label_smoothing_prior": "Distribution for label_smoothing.",
        },
        "Run (OpenNMT-py's options from here on)": {
            "config": "YAML file with any of these options.",
            "data": "Corpora, in YAML: path_src, path_tgt, weight, transforms.",
            "save_model": "Folder of the run.",
            "train_from": "Run folder or checkpoint to continue from.",
            "overwrite": "Delete checkpoints that are in the way.",
            "train_steps": "Stop after N updates.",
            "valid_steps": "Validate every N updates.",
            "save_checkpoint_steps": "Save every N updates.",
            "keep_checkpoint": "Checkpoints to keep besides the best; -1: all.",
            "early_stopping": "Validations without improvement before stopping; 0: never.",
            "seed": "Seed of all random numbers; -1 is 0.",
            "gpu_ranks": "The GPU to train on; none: the CPU.",
        },
        "Data": {
            "transforms": "Transforms of all corpora, such as onmt_tokenize filtertoolong.",
            "src_vocab": "Vocabulary file; written from the data if it does not exist.",
            "tgt_vocab": "The same for targets.",
            "share_vocab": "Share one vocabulary.",
            "batch_size": "Sentences or tokens of a batch.",
            "batch_type": "Unit of batch_size.",
        },
        "Model": {
            "encoder_type": "Type of the encoder.",
            "decoder_type": "Type of the decoder.",
            "layers": "Layers of encoder and decoder; -1: enc_layers, dec_layers.",
            "rnn_size": "Size of the states; -1: enc_rnn_size, dec_rnn_size.",
            "word_vec_size": "Size of embeddings; -1: src_ and tgt_word_vec_size.",
            "heads": "Attention heads of a Transformer.",
            "transformer_ff": "Feed-forward size of a Transformer.",
            "dropout": "Dropout probability.",
        },
        "Optimiser": {
            "optim": "Algorithm.",
            "learning_rate": "Learning rate, before any decay.",
            "decay_method": "Decay of the learning rate; plateau and cosine are ours.",
            "learning_rate_decay": "Factor on the learning rate at each decay.",
            "warmup_steps": "Updates in which the learning rate rises.",
            "accum_count": "Batches of an update.",
            "label_smoothing": "Share of a target that is spread over the vocabulary.",
            "average_decay": "Share of the newest weights in the average; 0: no average.",
        },
    },
    others={
        "adam_beta1": "Beta1 of Adam.",
        "adam_beta2": "Beta2 of Adam.",
        "encoder_attention_function": "Self-attention of the encoder.",
        "decoder_attention_function": "Self-attention of the decoder.",
        "context_attention_function": "Attention of the decoder to the source.",
        "encoder_attention_alpha": "Alpha of encoder_attention_function: entmax.",
        "decoder_attention_alpha": "Alpha of decoder_attention_function: entmax.",
        "context_attention_alpha": "Alpha of context_attention_function: entmax.",
        "alpha_init_mean": "Mean of `a` at the start; a learned alpha is 1 + sigmoid(a).",
        "alpha_init_std": "Its standard deviation.",
        "alpha_learning_rate": "Learning rate of learned alphas; by default learning_rate.",
        "accum_steps": "Updates at which accum_count changes.",
        "attention_dropout": "Dropout probability of a Transformer's attention.",
        "average_every": "Updates between two changes of the average.",
        "bucket_size": "Lines that are shuffled and sorted by length together.",
        "max_relative_positions": "Largest relative position in a Transformer; 0: absolute ones.",
        "pos_ffn_activation_fn": "Activation in the feed-forward layers of a Transformer.",
        "queue_size": "Batches that each of num_workers may prefetch.",
        "reset_optim": "all: take only the weights of train_from.",
        "skip_empty_level": "What to do about a line that is empty on one side.",
        "switchout_temperature": "Temperature of SwitchOut; smaller makes data more diverse.",
        "src_vocab_size": "Largest source vocabulary.",
        "tgt_vocab_size": "Largest target vocabulary.",
        "tensorboard": "Also write TensorBoard's files.",
        "tensorboard_log_dir": "Their folder, instead of save_model/tensorboard.",
        "valid_batch_size": "Sentences per batch of the development set.",
        "world_size": "Multiplies accum_count, whatever the number of processes.",
    },
    hidden={*REFUSED_IN_TRAINING, *WITHOUT_EFFECT, *_FIXED},
)

TRANSLATION = Help(
    usage="-model FOLDER -src FILE -output FILE [-option value ...]",
    purpose="Translate a file and prove what can be proven about each output.",
    topics={
        "Search and certificates": {
            "exactness_report": "JSON Lines file with the certificate of each sentence.",
            "stop": "exhaustive: when all outputs are found; optimal: when the best are proven; "
            "first: as in OpenNMT-py.",
            "search": "exact: search on until the n_best are proven; enumerate: list the support.",
            "budget": "Prefixes per sentence that exact, enumerate or -verify may compute.",
            "mass": "Probability at which enumerate may stop.",
            "constraints": "File of phrases that each line's output must contain, or must not.",
            "constraint_regex": "Regular expression over tokens that every output must match.",
            "mbr": "Write the output of the highest expected utility, among those found.",
            "random_sampling_distinct": "Draw samples without replacement.",
            "verify": "Recompute certified sentences in float64, and count disagreements.",
        },
        "Sampling (OpenNMT-py's options from here on)": {
            "random_sampling_topk": "Draw n_best outputs, each token of the k best; -1: of all.",
            "random_sampling_topp": "Draw each token of the best that reach this probability.",
            "random_sampling_temp": "Temperature: divides the scores.",
            "seed": "Seed of the samples; -1 is 0.",
        },
        "Files": {
            "config": "YAML file with any of these options.",
            "model": "Run folders or checkpoints; an ensemble averages probabilities.",
            "src": "File to translate.",
            "output": "File of translations.",
            "tgt": "File of target prefixes, with -tgt_prefix.",
            "tgt_prefix": "Complete the prefixes in tgt.",
            "transforms": "Transforms of the source, instead of training's subwords.",
            "batch_size": "Sentences searched together.",
            "gpu": "The GPU to use; -1: the CPU.",
        },
        "Outputs": {
            "beam_size": "Prefixes kept per sentence.",
            "n_best": "Outputs per sentence, a line each.",
            "min_length": "Shortest output, in tokens.",
            "max_length": "Longest output, in tokens.",
            "length_penalty": "Length penalty of the score.",
            "alpha": "Strength of length_penalty: wu.",
            "coverage_penalty": "Coverage penalty of the score.",
            "beta": "Weight of coverage_penalty.",
            "block_ngram_repeat": "Exclude outputs that repeat an n-gram of this size; 0: none.",
            "ignore_when_blocking": "Tokens that may repeat.",
            "ban_unk_token": "Exclude outputs with <unk>.",
            "replace_unk": "Replace <unk> by the source word with the most attention.",
            "report_align": "Write the attended source positions to OUTPUT.align, as i-j.",
            "phrase_table": "Words for replace_unk: lines of `source|||target`.",
        },
    },
    others={
        "switchout_temperature": "Temperature of SwitchOut; smaller makes data more diverse.",
    },
    hidden={*REFUSED_IN_TRANSLATION, *WITHOUT_EFFECT, *_FIXED, "batch_type"},
)


def is_help(arguments: Sequence[str]) -> bool:
    """Whether the command line asks for help."""
    return any(argument in (*SHORT, *ALL) for argument in arguments)


def help_text(parser: argparse.ArgumentParser, texts: Help, everything: bool) -> str:
    """Return the help of a command.

    Args:
        parser: the options of the command.
        texts: what to say about them.
        everything: list all options, not only those with a topic.
    """
    groups = {
        group.title: {
            canonical(action): action
            for action in group._group_actions
            if not isinstance(action, argparse._HelpAction)
            and type(action).__name__ != "DeprecateAction"
        }
        for group in parser._action_groups
    }
    known = {name: action for group in groups.values() for name, action in group.items()}
    listed = {name for topic in texts.topics.values() for name in topic} | set(texts.hidden)
    topics = {title: dict(topic) for title, topic in texts.topics.items()}
    for name, action in groups[parser._optionals.title].items():  # ours, in no group
        if name not in listed:
            title, text = (action.help or "").split(": ", 1)
            topics[title][name] = text
            listed.add(name)
    lines = [f"usage: {parser.prog} {texts.usage}", "", texts.purpose]
    lines.append(
        "Options may also stand in the YAML file, without the dash; the command line wins."
    )
    if not everything:
        lines.append("--help-all lists all options, those of a Transformer's attention too.")
    for title, topic in topics.items():
        lines += ["", f"{title}:"]
        for name, text in topic.items():
            lines += _entry(known[name], text, everything or name != "transforms")
    for group_title, group in groups.items() if everything else ():
        rest = {name: action for name, action in group.items() if name not in listed}
        if rest:
            lines += ["", f"{_plain(group_title or '')}:"]
        for name, action in rest.items():
            lines += _entry(action, texts.others.get(name, _plain(action.help or "")), True)
    return "\n".join(lines)


def _entry(action: argparse.Action, text: str, choices: bool) -> list[str]:
    """Return the lines of one option: its name, text, choices (if `choices`) and default."""
    name = canonical(action)
    values = SUPPORTED_VALUES.get(name, action.choices)
    if values and choices:
        text += f" {{{', '.join(map(str, values))}}}"
    default = _default(action.default)
    if default and action.nargs != 0 and name != "tensorboard_log_dir":  # has another default here
        text += f" ({default})"
    return textwrap.wrap(
        f"  -{name}".ljust(_COLUMN - 1) + " " + text,
        _WIDTH,
        subsequent_indent=" " * _COLUMN,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _default(value: Any) -> str:
    """Return a default as text; empty if there is none to show."""
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, float):
        value += 0.0  # OpenNMT-py has defaults of -0.0
    return "" if value is None or value == argparse.SUPPRESS else str(value)


def _plain(text: str) -> str:
    """Return a help text of OpenNMT-py without Sphinx markup and lists of choices."""
    text = re.sub(r"\(?:(cite|ref):`[^`]*`\)?|:math:`[^`]*` in ?", "", " ".join(text.split()))
    text = re.sub(r"(Options are \[|Choices are |\(choices: ).*$", "", text)
    text = re.sub(r"\s*-+\s+", " - ", text)
    return re.sub(r"`+", "", text).strip()
