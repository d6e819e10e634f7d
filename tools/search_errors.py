"""Count search errors: does beam search find the most probable output, and how long is that?

    python tools/search_errors.py -model run/mine -src dev.src -output dev.errors.jsonl -beam_size 5

Stahlberg and Byrne (2019, "On NMT Search Errors and Model Errors: Cat Got Your Tongue?") found that
the most probable output of a translation model is often empty, which beam search hides. For each
source line this writes a line of JSON:

    beam, argmax   output of beam search, and the most probable one: text, length in tokens,
                   log_prob; null if nothing was found. Exact search within -budget finds the
                   argmax where the beam's certificate does not prove it
    level          certificate of the beam
    proven         whether `argmax` is proven; if not, it is the best output found
    missed         whether the beam missed the argmax; null if unknown
    empty          log_prob and rank of the empty output; null if the model cannot produce it

Blank lines are left out. It prints the totals as a table.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.ending import argument_parser, following, run_script
from onmt_entmax.files import read_lines, refuse_overwriting, replaced_when_done
from onmt_entmax.report.writers import Answer, Decoded
from onmt_entmax.rules import whole
from onmt_entmax.search import Budget, Hypothesis, SearchConfig, SearchTask
from onmt_entmax.translator import Translator

WINDOW = 4096  # lines in memory at a time
ROUNDING = 1e-5  # difference of equal log-probabilities that were computed in two batches


@dataclass(frozen=True)
class Searches:
    """Searches with the same models.

    Attributes:
        beam: beam search, which returns all it found.
        exact: exact search.
        empty: search for outputs of length 0.
    """

    beam: Translator
    exact: Translator
    empty: Translator

    @classmethod
    def of(cls, folders: Sequence[Path], config: SearchConfig, budget: Budget) -> Searches:
        """Load the models."""
        models = [load(folder) for folder in folders]
        return cls(
            Translator(models, SearchTask(replace(config, n_best=0))),
            Translator(
                models, SearchTask(replace(config, n_best=1, stop="optimal"), "exact", budget)
            ),
            Translator(models, SearchTask(SearchConfig(1, max_length=0))),
        )

    def analyse(self, lines: Iterable[str], batch_size: int) -> Iterator[dict[str, Any]]:
        """Yield the record of each line that is not blank."""
        supply = self.beam.answers(lines, batch_size)
        while window := list(islice(supply, WINDOW)):
            beams = [beam for beam in window if beam.result is not None]
            open_ = [beam.source for beam in beams if not is_proven(beam)]
            exacts = self.exact.answers(open_, batch_size)
            empties = self.empty.answers((beam.source for beam in beams), batch_size)
            for beam, empty in zip(beams, empties, strict=True):
                exact = None if is_proven(beam) else next(exacts)
                yield record(beam.id, beam, exact, empty)


def is_proven(answer: Answer) -> bool:
    """Return whether the first hypothesis is proven to be the most probable (or none to exist)."""
    assert answer.result is not None, "blank lines were left out"
    return answer.result.certificate.level != "none"


def described(found: Decoded | None) -> dict[str, Any] | None:
    """Return a hypothesis as a part of a record."""
    if found is None:
        return None
    hypothesis = found.hypothesis
    return {
        "text": found.text,
        "length": len(hypothesis.tokens),
        "log_prob": hypothesis.log_prob,
    }


def is_better(one: Hypothesis, other: Hypothesis) -> bool:
    """Return whether a hypothesis is more probable than another, by more than rounding."""
    return one.tokens != other.tokens and one.log_prob > other.log_prob + ROUNDING


def record(number: int, beam: Answer, exact: Answer | None, empty: Answer) -> dict[str, Any]:
    """Return the record of one line.

    Args:
        number: number of the line, from 0.
        beam: result of beam search.
        exact: result of exact search, if the beam has proven nothing.
        empty: result of the search of length 0.
    """
    assert beam.result is not None
    output = beam.hypotheses[0] if beam.hypotheses else None
    best, proven = output, True
    if exact is not None:
        # Exact search runs a beam of its own, with other rounding.
        found = [answer.hypotheses[0] for answer in (exact, beam) if answer.hypotheses]
        best = max(found, key=lambda one: one.hypothesis.log_prob, default=None)
        proven = is_proven(exact)
    missed: bool | None = False if proven else None
    if best is not None and (output is None or is_better(best.hypothesis, output.hypothesis)):
        missed = True
    log_probs = {one.hypothesis.tokens: one.hypothesis.log_prob for one in beam.hypotheses}
    if best is not None:
        log_probs[best.hypothesis.tokens] = best.hypothesis.log_prob
    nothing = None
    if empty.hypotheses:
        log_prob = empty.hypotheses[0].hypothesis.log_prob
        better = [tokens for tokens, value in log_probs.items() if tokens and value > log_prob]
        nothing = {"log_prob": log_prob, "rank": 1 + len(better)}
    return {
        "id": number,
        "source": beam.source,
        "beam": described(output),
        "level": beam.result.certificate.level,
        "argmax": described(best),
        "proven": proven,
        "missed": missed,
        "empty": nothing,
    }


@dataclass
class Summary:
    """Totals over the records."""

    sentences: int = 0
    by_beam: int = 0
    proven: int = 0
    missed: int = 0
    unknown: int = 0
    empty: int = 0
    empty_first: int = 0
    empty_mass: float = 0.0
    # Lengths of beam output and argmax: where the argmax is proven, and where the beam missed it.
    lengths: list[tuple[int, int]] = field(default_factory=list)
    missed_lengths: list[tuple[int, int]] = field(default_factory=list)

    def add(self, line: dict[str, Any]) -> None:
        """Add a record."""
        self.sentences += 1
        self.by_beam += line["level"] != "none"
        self.proven += line["proven"]
        self.missed += line["missed"] is True
        self.unknown += line["missed"] is None
        if line["empty"] is not None:
            self.empty += 1
            self.empty_mass += math.exp(line["empty"]["log_prob"])
        self.empty_first += line["proven"] and (line["argmax"] or {}).get("length") == 0
        if line["argmax"] is not None and line["beam"] is not None:
            pair = line["beam"]["length"], line["argmax"]["length"]
            if line["proven"]:
                self.lengths.append(pair)
            if line["missed"]:
                self.missed_lengths.append(pair)

    def text(self) -> str:
        """Return the table."""
        if not self.sentences:
            return "no sentences"
        counts = {
            "proven by the beam": self.by_beam,
            "argmax proven": self.proven,
            "argmax missed by the beam": self.missed,
            "not known whether missed": self.unknown,
            "empty string possible": self.empty,
            "empty string is the argmax": self.empty_first,
        }
        rows = [f"{'sentences':28}{self.sentences:>8}"]
        rows += [
            f"{name:28}{count:>8}  {count / self.sentences:8.2%}" for name, count in counts.items()
        ]
        mass = self.empty_mass / self.sentences
        rows.append(f"{'mean probability of empty':28}{mass:>8.2g}")
        for name, pairs in (
            ("mean length, argmax proven", self.lengths),
            ("mean length, missed", self.missed_lengths),
        ):
            if pairs:
                beam, argmax = (sum(side) / len(pairs) for side in zip(*pairs, strict=True))
                rows.append(f"{name:28}beam {beam:.2f}, argmax {argmax:.2f}")
        return "\n".join(rows)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("-model", nargs="+", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("-src", type=Path, required=True, metavar="FILE")
    parser.add_argument("-output", type=Path, required=True, metavar="FILE")
    count = following(whole(1, 10**9))
    parser.add_argument("-beam_size", type=count, default=5, metavar="N")
    parser.add_argument("-max_length", type=following(whole(0, 10**9)), default=100, metavar="N")
    parser.add_argument("-stop", choices=("exhaustive", "optimal", "first"), default="exhaustive")
    parser.add_argument("-budget", type=count, default=10_000, help="prefixes of exact search")
    parser.add_argument("-batch_size", type=count, default=64, metavar="N")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Analyse a file; return the exit status."""
    options = parse_arguments(arguments)
    refuse_overwriting([options.src], [options.output])
    config = SearchConfig(options.beam_size, max_length=options.max_length, stop=options.stop)
    summary = Summary()
    searches = Searches.of(options.model, config, Budget(options.budget))
    with replaced_when_done([options.output]) as (output,):
        for line in searches.analyse(read_lines(options.src), options.batch_size):
            summary.add(line)
            output.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(summary.text())
    return 0


if __name__ == "__main__":
    run_script(main)
