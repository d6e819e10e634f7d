"""Compute the probabilities that a model gives to targets, token by token (forced decoding).

    onmt-entmax score -model run/pilot/model -src dev.src -tgt dev.tgt -output dev.scores.jsonl

Source and target have one sentence per line, in the format that `translate` reads. The
probabilities of several models are averaged. The output has a line of JSON for each sentence:

    id           number of the sentence, from 0
    log_prob     null if the model cannot produce the target
    excluded_at  position of the first token of probability zero, from 0; null if there is none
    steps        for each token and the end, in the order in which the model writes: token,
                 log_prob, rank among all tokens, and support, the number of tokens of positive
                 probability

Three more fields have tokens with their numbers of occurrences; empty ones are left out:

    unknown          source tokens that are not in the vocabulary
    unseen           source tokens that training did not see in the source's language
    unknown_target   target tokens that are not in the vocabulary

A model cannot produce a token outside its vocabulary, or a symbol for start, end or padding.
Targets that `translate` would exclude from a search, for example by -target_symbols, are scored all
the same.

The command prints the share of targets that the model can produce, their mean log-probability, and
the share of tokens that are the most probable ones.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.pair_scores import score_pairs
from onmt_entmax.cli.scored_targets import Totals, record
from onmt_entmax.data.unknown_warnings import unknown_warnings
from onmt_entmax.errors import UserError
from onmt_entmax.files import json_line, read_aligned, refuse_overwriting, replaced_when_done
from onmt_entmax.rules import whole
from onmt_entmax.translator import Translator


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add(
        "-model",
        nargs="+",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="model or run folders; several are averaged",
    )
    add("-src", type=Path, required=True, metavar="FILE", help="sources")
    add("-tgt", type=Path, required=True, metavar="FILE", help="targets, one for each source")
    add("-output", type=Path, required=True, metavar="FILE", help="JSON lines to write")
    add("-transforms", nargs="*", help="transforms of both files (default: training's subwords)")
    add(
        "-batch_size",
        type=whole(1, 10**7),
        default=64,
        metavar="N",
        help="pairs scored together (default 64)",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Score a file; return the exit status."""
    options = parse_arguments(arguments)
    refuse_overwriting([options.src, options.tgt], [options.output])
    totals = Totals()
    translator = Translator.from_folders(options.model, transforms=options.transforms)
    sources, targets = read_aligned(options.src, options.tgt)
    for line, source in enumerate(sources, 1):
        if not source.strip():
            raise UserError(f"{options.src}:{line}: the line is blank")
    with replaced_when_done([options.output]) as (output,):
        pairs = zip(sources, targets, strict=True)
        scores = score_pairs(pairs, translator, options.batch_size)
        for number, scored in enumerate(scores):
            totals.add(scored)
            output.write(json_line(record(number, scored)))
    warn(*unknown_warnings(totals.unknown))
    warn(*unknown_warnings(totals.unknown_target, "target"))
    print(totals.text())
    return 0
