"""The help of `train.py` and `translate.py`: OpenNMT-py's texts where they are so here, and ours.

What is not supported is not listed; giving it is an error that says why (support.py).
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping

from onmt_entmax.options.reader import canonical

TRAINING: Mapping[str, str] = {
    "save_model": "Folder of the run: checkpoints step_N, best.json, metrics.jsonl.",
    "train_from": "Folder of a run, or of one of its checkpoints, to continue from.",
    "keep_checkpoint": "Checkpoints to keep beside the best one; -1: all.",
    "global_attention_function": "Weights from scores; entmax has global_attention_alpha.",
    "generator_function": "Probabilities from scores; entmax has generator_alpha.",
    "label_smoothing": "Part of a target that is spread over the whole vocabulary.",
    "early_stopping": "Validations without a better selection after which training ends; 0: never.",
    "seed": "Of all that is random; -1 is 0.",
    "tensorboard": "Write TensorBoard's files too.",
    "tensorboard_log_dir": "Their folder; without it, tensorboard in save_model.",
    "world_size": "Batches of an update, times accum_count, in any number of processes.",
    "gpu_ranks": "The GPU to train on; none: the CPU, or what torchrun gives.",
    "src_vocab": "Vocabulary file; one that is not there is written. None: counted from the data.",
    "tgt_vocab": "As src_vocab, for targets.",
    "valid_batch_size": "Sentences of a batch of the development set.",
}
TRANSLATION: Mapping[str, str] = {
    "model": "Run folders or checkpoints; of several, probabilities are averaged.",
    "n_best": "Outputs a sentence, each on a line of its own.",
    "batch_size": "Sentences that are searched together.",
    "output": "File of outputs.",
    "tgt": "Beginnings of the outputs, a line each, with tgt_prefix.",
    "tgt_prefix": "Complete what is in tgt.",
}
EPILOG = (
    "Every option may stand in the YAML file of -config, without its dashes; the command line wins."
)


def set_help(
    parser: argparse.ArgumentParser,
    texts: Mapping[str, str],
    refused: Collection[str],
    without_effect: Collection[str],
) -> None:
    """Give the options of a parser these texts; leave those out of its help that do nothing."""
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        name = canonical(action)
        if name in refused or name in without_effect:
            action.help = argparse.SUPPRESS
        else:
            action.help = texts.get(name, action.help)
