"""Compute the probabilities that a model gives to targets, token by token (forced decoding).

    onmt-entmax score -model run/pilot/model -src dev.src -tgt dev.tgt -output dev.scores.jsonl

Source and target have a sentence a line, as the model's tokens separated by spaces. The
probabilities of several models are averaged. The output has a line of JSON for each sentence:

    log_prob     null if the model cannot produce the target
    excluded_at  position of the first token of probability zero, from 0; null if there is none
    steps        for each token and the end: token, log_prob, rank among all tokens, and support,
                 the number of tokens of positive probability

A token outside the vocabulary, or a symbol for start, end or padding, cannot be produced.

Prints the share of targets that the model can produce, their mean log-probability, and the share
of tokens that are the most probable ones.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.ending import argument_parser, following
from onmt_entmax.data.batch import group_by_length, make_batch
from onmt_entmax.data.corpus import numericalise
from onmt_entmax.data.parallel import read_side_by_side
from onmt_entmax.data.transforms import copying
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary
from onmt_entmax.errors import UserError
from onmt_entmax.files import refuse_overwriting, replaced_when_done
from onmt_entmax.opennmt import SequenceTooLongError
from onmt_entmax.rules import whole
from onmt_entmax.search import Stepper, TargetScore, TokenScore, score_targets
from onmt_entmax.translator import make_stepper

WINDOW = 4096  # pairs that are sorted by length together


@dataclass
class Summary:
    """Sums over all targets."""

    targets: int = 0
    possible: int = 0
    log_prob: float = 0.0
    tokens: int = 0
    first: int = 0

    def add(self, score: TargetScore) -> None:
        """Count one target."""
        self.targets += 1
        self.tokens += len(score.steps)
        self.first += sum(step.rank == 1 for step in score.steps)
        if score.excluded_at is None:
            self.possible += 1
            self.log_prob += score.log_prob

    def text(self) -> str:
        """Return the printed summary."""
        if not self.targets:
            return "no targets"
        mean = f"{self.log_prob / self.possible:.4f}" if self.possible else "-"
        return (
            f"targets {self.targets}\n"
            f"possible {self.possible} ({self.possible / self.targets:.2%})\n"
            f"mean log-probability of the possible ones {mean}\n"
            f"tokens that are the most probable {self.first / self.tokens:.2%}"
        )


def score_pairs(
    pairs: Iterable[tuple[list[str], list[str]]],
    stepper: Stepper,
    vocabularies: Vocabularies,
    batch_size: int,
) -> Iterator[tuple[list[str], TargetScore]]:
    """Yield the target tokens and the score of each pair of source and target, in order.

    Raises:
        UserError: a pair is longer than a Transformer model reads.
    """
    supply = iter(pairs)
    done = 0
    while window := list(islice(supply, WINDOW)):
        examples = [numericalise(pair, vocabularies, i) for i, pair in enumerate(window)]
        scores: dict[int, TargetScore] = {}
        for group in group_by_length(examples, batch_size, "sents"):
            batch = make_batch(group, vocabularies)
            targets = [examples[i].target or () for i in batch.indices]
            try:
                found = score_targets(stepper, batch, targets)
            except SequenceTooLongError as error:
                longest = 1 + done + max(batch.indices, key=lambda i: max(map(len, window[i])))
                raise UserError(
                    f"line {longest}: longer than a Transformer model reads ({error})"
                ) from None
            scores.update(zip(batch.indices, found, strict=True))
        for i, (source, target) in enumerate(window):
            written = copying(source, vocabularies).hide(target)
            yield target, without_impossible(written, scores[i], vocabularies.target)
        done += len(window)


def without_impossible(
    target: Sequence[str], score: TargetScore, vocabulary: Vocabulary
) -> TargetScore:
    """Exclude the tokens that no output can have; the model scored them as `<unk>`."""
    steps = [
        step
        if vocabulary.can_write(token)
        else TokenScore(-math.inf, step.support + 1, step.support)
        for token, step in zip(target, score.steps, strict=False)
    ]
    return TargetScore((*steps, score.steps[-1]))


def record(number: int, target: Sequence[str], score: TargetScore) -> dict[str, object]:
    """Return a score as an object of the output file; -inf is null, which JSON lacks."""
    return {
        "id": number,
        "log_prob": score.log_prob if score.excluded_at is None else None,
        "excluded_at": score.excluded_at,
        "steps": [
            {
                "token": token,
                "log_prob": step.log_prob if step.log_prob > -math.inf else None,
                "rank": step.rank,
                "support": step.support,
            }
            for token, step in zip([*target, "</s>"], score.steps, strict=True)
        ],
    }


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
    add("-src", type=Path, required=True, metavar="FILE", help="sources, tokens between spaces")
    add("-tgt", type=Path, required=True, metavar="FILE", help="targets, one for each source")
    add("-output", type=Path, required=True, metavar="FILE", help="JSON lines to write")
    add(
        "-batch_size",
        type=following(whole(1, 10**7)),
        default=64,
        metavar="N",
        help="pairs scored together (default 64)",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Score a file; return the exit status."""
    options = parse_arguments(arguments)
    refuse_overwriting([options.src, options.tgt], [options.output])
    summary = Summary()
    models = [load(folder) for folder in options.model]
    stepper, vocabularies = make_stepper(models), models[0].vocabularies
    pairs = read_side_by_side(options.src, options.tgt)
    with replaced_when_done([options.output]) as (output,):
        scored = score_pairs(pairs, stepper, vocabularies, options.batch_size)
        for number, (target, score) in enumerate(scored):
            summary.add(score)
            line = json.dumps(record(number, target, score), ensure_ascii=False)
            output.write(line + "\n")
    print(summary.text())
    return 0
