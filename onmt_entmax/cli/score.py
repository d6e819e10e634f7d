"""Compute the probabilities that a model gives to targets, token by token (forced decoding).

    onmt-entmax score -model run/pilot/model -src dev.src -tgt dev.tgt -output dev.scores.jsonl

Source and target have a sentence a line, in the format that translate reads. The probabilities of
several models are averaged. The output has a line of JSON for each sentence:

    log_prob     null if the model cannot produce the target
    excluded_at  position of the first token of probability zero, from 0; null if there is none
    steps        for each token and the end, in the order in which the model writes: token,
                 log_prob, rank among all tokens, and support, the number of tokens of positive
                 probability
    unknown      number of each source token that is not in the vocabulary, if there are any
    unseen       the same of known tokens that training did not see in the source's language
    unknown_target   the same of target tokens that are not in the vocabulary

A token outside the vocabulary, or a symbol for start, end or padding, cannot be produced. What
options of `translate` exclude from a search, such as `-target_symbols`, has its probability here.

Prints the share of targets that the model can produce, their mean log-probability, and the share
of tokens that are the most probable ones.
"""

import argparse
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.scored_targets import Scored, Totals, record
from onmt_entmax.data.batch import batches_by_length
from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.errors import UserError
from onmt_entmax.files import json_line, read_aligned, refuse_overwriting, replaced_when_done
from onmt_entmax.rules import whole
from onmt_entmax.search import TargetScore, TokenScore, score_targets
from onmt_entmax.strings.units import UNKNOWN
from onmt_entmax.translator import Translator, emptied

WINDOW = 4096  # pairs that are sorted by length together


def score_pairs(
    pairs: Iterable[tuple[str, str]],
    translator: Translator,
    batch_size: int,
) -> Iterator[Scored]:
    """Score each pair of source and target, in order, as a translator reads them.

    Raises:
        TooLargeError: a pair is longer than a Transformer model reads or the memory takes.
    """
    supply = (translator.reader.preprocess(source, target) for source, target in pairs)
    done = 0
    while window := list(islice(supply, WINDOW)):
        for number, (source, _) in enumerate(window, done):
            if not source:
                raise emptied(number)
        yield from _score_window(window, done, translator, batch_size)
        done += len(window)


def _score_window(
    pairs: Sequence[tuple[Sequence[str], Sequence[str]]],
    first: int,
    translator: Translator,
    batch_size: int,
) -> Iterator[Scored]:
    """Score pairs of tokens, sorted by length; yield them in their own order.

    Args:
        pairs: tokens of source and target.
        first: number of the first pair.
        translator: reads and scores them.
        batch_size: pairs scored together.
    """
    vocabularies = translator.vocabularies
    vocabulary = vocabularies.target
    sources = [
        translator.reader.encode(source, number) for number, (source, _) in enumerate(pairs, first)
    ]
    targets = [target for _, target in pairs]
    examples = [
        replace(source.example, target=_writable_ids(target, vocabulary))
        for source, target in zip(sources, targets, strict=True)
    ]
    scores: dict[int, TargetScore] = {}
    with translator.readable(examples, batch_size):
        for batch in batches_by_length(examples, batch_size, vocabularies):
            ids = [examples[index - first].target or () for index in batch.indices]
            batch_scores = score_targets(translator.stepper, batch, ids)
            scores.update(zip(batch.indices, batch_scores, strict=True))
    for source, target in zip(sources, targets, strict=True):
        score = _without_unknown(scores[source.example.index], target, vocabulary)
        unknown = tuple(token for token in target if not vocabulary.can_write(token))
        yield Scored(source, tuple(target), score, unknown)


def _writable_ids(target: Sequence[str], vocabulary: Vocabulary) -> tuple[int, ...]:
    """Return the ids of a target, that of `<unk>` for tokens that no output can have."""
    return tuple(
        vocabulary.encode(token if vocabulary.can_write(token) else UNKNOWN for token in target)
    )


def _without_unknown(
    score: TargetScore, target: Sequence[str], vocabulary: Vocabulary
) -> TargetScore:
    """Return a score in which tokens that no output can have have probability zero.

    The model scored them as `<unk>`.
    """
    *steps, end = score.steps
    corrected = [
        step
        if vocabulary.can_write(token)
        else TokenScore(-math.inf, rank=step.support + 1, support=step.support)
        for token, step in zip(target, steps, strict=True)
    ]
    return TargetScore((*corrected, end))


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
    add("-transforms", nargs="*", help="transforms of both files, instead of training's subwords")
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
    warn(*totals.unknown.warnings())
    warn(*totals.unknown_target.warnings("target"))
    print(totals.text())
    return 0
