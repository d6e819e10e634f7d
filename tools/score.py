#!/usr/bin/env python
"""Forced decoding: the probability that a model gives to targets, token by token.

    python tools/score.py -model run/pilot -src dev.src -tgt dev.tgt -output dev.scores.jsonl

Source and target hold a sentence a line, as tokens between spaces, the way the model reads and
writes them. With several model folders their probabilities are averaged. The output is a line of
JSON for each sentence: `log_prob` (null if the model cannot produce the target), `excluded_at`
(position of the first token that it excludes, from 0; null if none), and `steps`, one for each
token and one for the end: `token`, `log_prob`, `rank` among all tokens, `support` (how many tokens
have positive probability there). A token that is not in the vocabulary cannot be produced.

A summary is printed: the share of targets that the model can produce at all, the mean
log-probability of those, and how often each token of the targets was the most probable one.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from onmt_entmax.checkpoint import load
from onmt_entmax.commands import command
from onmt_entmax.errors import UserError
from onmt_entmax.reports.writers import replaced_when_done
from onmt_entmax.search import EnsembleStepper, ModelStepper, Stepper, TargetScore, score_targets
from onmt_entmax.text.batch import group_by_length, make_batch
from onmt_entmax.text.copying import copying
from onmt_entmax.text.corpus import numericalise
from onmt_entmax.text.vocabulary import Vocabularies, Vocabulary

WINDOW = 4096  # pairs read ahead, to be sorted by length


@dataclass
class Summary:
    """What is known of all targets together."""

    targets: int = 0
    possible: int = 0
    log_prob: float = 0.0
    tokens: int = 0
    first: int = 0

    def add(self, score: TargetScore, excluded_at: int | None) -> None:
        """Count one target."""
        self.targets += 1
        self.tokens += len(score.steps)
        self.first += sum(step.rank == 1 for step in score.steps)
        if excluded_at is None:
            self.possible += 1
            self.log_prob += score.log_prob

    def text(self) -> str:
        """The summary as it is printed."""
        if not self.targets:
            return "no targets"
        mean = f"{self.log_prob / self.possible:.4f}" if self.possible else "-"
        return (
            f"targets {self.targets}\n"
            f"possible {self.possible} ({self.possible / self.targets:.2%})\n"
            f"mean log-probability of the possible ones {mean}\n"
            f"tokens that are the most probable {self.first / self.tokens:.2%}"
        )


def load_stepper(folders: Sequence[Path]) -> tuple[Stepper, Vocabularies]:
    """The models of some folders as one stepper, with their vocabularies.

    Raises:
        UserError: if a folder cannot be read, or their vocabularies differ.
    """
    models = [load(folder) for folder in folders]
    if any(loaded.vocabularies != models[0].vocabularies for loaded in models):
        raise UserError("the models of an ensemble must have the same vocabularies")
    steppers = [ModelStepper(m.model.eval(), m.vocabularies.target) for m in models]
    return (
        EnsembleStepper(steppers) if len(steppers) > 1 else steppers[0],
        models[0].vocabularies,
    )


def read_pairs(source: Path, target: Path) -> Iterator[tuple[list[str], list[str]]]:
    """The tokens of both files, line by line.

    Raises:
        UserError: if a file cannot be read, the files differ in length, or a source is blank.
    """
    try:
        with open(source, encoding="utf-8") as sources, open(target, encoding="utf-8") as targets:
            for number, line in enumerate(sources, 1):
                other = targets.readline()
                if not other:
                    raise UserError(f"{target}: has fewer lines than {source}")
                if not line.split():
                    raise UserError(f"{source}: line {number} is blank")
                yield line.split(), other.split()
            if targets.readline():
                raise UserError(f"{target}: has more lines than {source}")
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{source} or {target}: not text in UTF-8") from None


def score_pairs(
    pairs: Iterable[tuple[list[str], list[str]]],
    stepper: Stepper,
    vocabularies: Vocabularies,
    batch_size: int,
) -> Iterator[tuple[list[str], TargetScore, int | None]]:
    """Score pairs of source and target tokens, in order.

    Yields:
        The target, its score, and the position of the first token that cannot be produced there.
    """
    supply = iter(pairs)
    while window := list(islice(supply, WINDOW)):
        examples = [numericalise(pair, vocabularies, i) for i, pair in enumerate(window)]
        scores: dict[int, TargetScore] = {}
        for group in group_by_length(examples, batch_size, "sents"):
            batch = make_batch(group, vocabularies)
            targets = [examples[i].target or () for i in batch.indices]
            scores.update(zip(batch.indices, score_targets(stepper, batch, targets), strict=True))
        for i, (source, target) in enumerate(window):
            written = copying(source, vocabularies).hide(target)
            yield target, scores[i], excluded_at(written, scores[i], vocabularies.target)


def excluded_at(target: Sequence[str], score: TargetScore, vocabulary: Vocabulary) -> int | None:
    """Position of the first token that the model cannot produce there, or None."""
    positions = [i for i, token in enumerate(target) if token not in vocabulary][:1]
    if score.excluded_at is not None:
        positions.append(score.excluded_at)
    return min(positions, default=None)


def record(
    number: int, target: Sequence[str], score: TargetScore, position: int | None
) -> dict[str, object]:
    """A score as an object of the output file; JSON has no infinity, so -inf is null."""
    return {
        "id": number,
        "log_prob": score.log_prob if position is None else None,
        "excluded_at": position,
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


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-model", nargs="+", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("-src", type=Path, required=True, metavar="FILE")
    parser.add_argument("-tgt", type=Path, required=True, metavar="FILE")
    parser.add_argument("-output", type=Path, required=True, metavar="FILE")
    parser.add_argument("-batch_size", type=int, default=64, metavar="N")
    options = parser.parse_args(arguments)
    if options.batch_size < 1:
        parser.error("-batch_size must be at least 1")
    return options


@command
def main(arguments: Sequence[str] | None = None) -> int:
    """Scores a file; an error of the user's is one line on the standard error and status 2."""
    options = parse_arguments(arguments)
    summary = Summary()
    stepper, vocabularies = load_stepper(options.model)
    pairs = read_pairs(options.src, options.tgt)
    with replaced_when_done([options.output]) as (output,):
        scored = score_pairs(pairs, stepper, vocabularies, options.batch_size)
        for number, (target, score, position) in enumerate(scored):
            summary.add(score, position)
            line = json.dumps(record(number, target, score, position), ensure_ascii=False)
            output.write(line + "\n")
    print(summary.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
