"""Group the errors of an inflection model, or count the errors of beam search.

    python -m tools.papers.errors words --train run/medium/data/train --dev run/medium/data/dev \\
        --report run/medium/dev.report.jsonl
    python -m tools.papers.errors search run/mine --source dev.src --beam_size 5

words    prints the number of words of a kind, their accuracy and their share of all errors: by
         certificate, by probability of the form, by how often training has the tags and the
         characters, by language, and by what is wrong. --train and --dev are files of `onmt-entmax
         prepare sigmorphon` without `.src` and `.tgt`; --report is the exactness report of --dev.
search   counts the sources for which beam search misses the most probable output, which exact
         search finds within --budget prefixes, and those for which the empty output is possible,
         or the most probable (Stahlberg and Byrne 2019, "On NMT Search Errors and Model Errors:
         Cat Got Your Tongue?"). Log-probabilities that differ by less than 1e-5 are equal.
"""

from __future__ import annotations

import argparse
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rapidfuzz.distance import Levenshtein

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_aligned, read_lines
from onmt_entmax.report.measures import is_right
from onmt_entmax.report.reading import is_only, read_report
from onmt_entmax.rules import whole
from onmt_entmax.search import Budget, SearchConfig, SearchTask
from onmt_entmax.strings.task import INFLECTION, language_of
from onmt_entmax.strings.units import decode_word
from onmt_entmax.translator import Translator
from tools.papers.markdown import markdown_table

ROUNDING = 1e-5  # difference of equal log-probabilities that were computed in two batches
BANDS = ((0.9, "0.9 or more"), (0.7, "0.7 to 0.9"), (0.5, "0.5 to 0.7"), (0.3, "0.3 to 0.5"))
COUNTS = ((30, "30 or more"), (10, "10 to 29"), (3, "3 to 9"), (1, "1 or 2"))
CERTIFICATES = {
    "only": "one form has all the probability",
    "exhaustive": "several forms, all found",
    "optimal": "the most probable form proven",
    "none": "nothing proven",
}
KINDS = (
    "nothing predicted",
    "the lemma itself",
    "accents and other marks only",
    "small and capital letters only",
    "one character",
    "two characters",
    "three characters or more",
)


class Word(NamedTuple):
    """A word of the development set, its prediction (empty: none), certificate and probability."""

    language: str
    tags: tuple[str, ...]
    lemma: str
    form: str
    prediction: str
    level: str
    probability: float
    right: bool


def read_words(prefix: Path, report: Path | None = None) -> list[Word]:
    """Return the words of a data set, with the predictions of a report.

    Args:
        prefix: path of the files without .src and .tgt.
        report: exactness report; without one, nothing is predicted.

    Raises:
        UserError: a file cannot be read, or they do not belong together.
    """
    source, target = (prefix.with_name(f"{prefix.name}{end}") for end in (".src", ".tgt"))
    pairs = list(zip(*read_aligned(source, target), strict=True))
    records: list[Any] = list(read_report(report)) if report else [None] * len(pairs)
    if [record and record["source"] for record in records] != [
        report and line for line, _ in pairs
    ]:
        raise UserError(f"{report}: not of {source}")
    words = []
    for number, ((line, target), record) in enumerate(zip(pairs, records, strict=True), 1):
        language_of(source, number, line)
        lemma, tags, language = INFLECTION.decode_source(line.split())
        best = record["hypotheses"][0] if record and record["hypotheses"] else {}
        texts = target, best.get("text", "")
        form, guess = (decode_word(text.split()) for text in texts)
        level = "none" if not record else "only" if is_only(record) else record["certificate"]
        prob, right = best.get("prob", 0.0), is_right(*texts)
        words.append(Word(language, tags, lemma, form, guess, level, prob, right))
    return words


def error_kind(word: Word) -> str:
    """Return what is wrong with a prediction: the first of `KINDS` that fits."""
    bare = [
        "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
        for text in (word.prediction, word.form)
    ]
    distance = Levenshtein.distance(word.form, word.prediction)
    fits = (
        not word.prediction,
        word.prediction == word.lemma,
        bare[0] == bare[1],
        word.prediction.casefold() == word.form.casefold(),
        distance == 1,
        distance == 2,
    )
    return KINDS[fits.index(True) if True in fits else -1]


def word_errors(options: argparse.Namespace) -> str:
    """Return the tables of `words`."""
    words = read_words(options.dev, options.report)
    training = read_words(options.train)
    tags = Counter((word.language, word.tags) for word in training)
    characters: dict[str, set[str]] = {}
    for word in training:
        characters.setdefault(word.language, set()).update(word.lemma, word.form)
    known = set().union(*characters.values())

    def band(value: float, bands: Sequence[tuple[float, str]], least: str) -> str:
        return next((name for low, name in bands if value >= low), least)

    def spelling(word: Word) -> str:
        letters = {*word.lemma, *word.form}
        if letters <= characters.get(word.language, set()):
            return "all known in its language"
        return "unseen in any language" if letters - known else "unseen in its language"

    def right(some: Sequence[Word]) -> float:
        return 100 * sum(word.right for word in some) / len(some)

    wrong = [word for word in words if not word.right]

    def table(title: str, kind: Callable[[Word], str], order: Sequence[str] = ()) -> str:
        groups: dict[str, list[Word]] = {name: [] for name in order}
        for word in words:
            groups.setdefault(kind(word), []).append(word)
        rows = []
        for name, group in groups.items():
            if group:
                errors = sum(not word.right for word in group)
                share = f"{100 * errors / max(len(wrong), 1):.1f}"
                rows.append([name, str(len(group)), f"{right(group):.1f}", share])
        if not order:
            rows = sorted(rows, key=lambda row: float(row[2]))[: options.languages]
        return markdown_table([title, "words", "right (%)", "share of errors (%)"], rows)

    names, (least, never) = [name for _, name in BANDS], ("less than 0.3", "never")
    trained = [name for _, name in COUNTS]
    kinds = Counter(map(error_kind, wrong))
    parts = [
        f"{len(words)} words: {right(words):.2f} % right, {len(wrong)} errors.",
        table("certificate", lambda w: CERTIFICATES[w.level], [*CERTIFICATES.values()]),
        table("probability", lambda w: band(w.probability, BANDS, least), [*names, least]),
        table(
            "training rows with these tags",
            lambda w: band(tags[w.language, w.tags], COUNTS, never),
            [*trained, never],
        ),
        table("characters", spelling, ["all known in its language"]),
        table("language", lambda w: w.language),
        markdown_table(
            ["kind of error", "errors", "share (%)"],
            [
                [kind, str(kinds[kind]), f"{100 * kinds[kind] / max(len(wrong), 1):.1f}"]
                for kind in KINDS
            ],
        ),
    ]
    return "\n\n".join(parts)


def search_errors(options: argparse.Namespace) -> str:
    """Return the table of `search`."""
    models = [load(folder) for folder in options.models]
    sizes = {"max_length": options.max_length}
    tasks = {
        "beam": SearchTask(SearchConfig(options.beam_size, n_best=0, **sizes)),
        "exact": SearchTask(
            SearchConfig(options.beam_size, n_best=1, stop="optimal", **sizes),
            "exact",
            Budget(options.budget),
        ),
        "empty": SearchTask(SearchConfig(1, max_length=0)),
    }
    translators = {name: Translator(models, task) for name, task in tasks.items()}
    lines = [line for line in read_lines(options.source) if line.strip()]
    if not lines:
        raise UserError(f"{options.source}: has no words")
    beams = list(translators["beam"].answers(lines, options.batch_size))

    def proven(answer: Any) -> bool:
        return answer.result is not None and answer.result.certificate.level != "none"

    unproven = [i for i, answer in enumerate(beams) if not proven(answer)]
    exact = translators["exact"].answers([lines[i] for i in unproven], options.batch_size)
    exacts = dict(zip(unproven, exact, strict=True))
    counts: Counter[str] = Counter()
    masses = []
    for i, empty in enumerate(translators["empty"].answers(lines, options.batch_size)):
        answers = [answer for answer in (beams[i], exacts.get(i)) if answer and answer.hypotheses]
        found = [answer.hypotheses[0].hypothesis for answer in answers]
        output = beams[i].hypotheses[0].hypothesis.log_prob if beams[i].hypotheses else -math.inf
        best = max(found, key=lambda one: one.log_prob, default=None)
        certain = i not in exacts or proven(exacts[i])
        counts["most probable output proven by the beam"] += i not in exacts
        counts["most probable output proven"] += certain
        counts["missed by the beam"] += best is not None and best.log_prob > output + ROUNDING
        counts["empty output possible"] += bool(empty.hypotheses)
        counts["empty output the most probable"] += certain and best is not None and not best.tokens
        masses += [math.exp(each.hypothesis.log_prob) for each in empty.hypotheses]
    rows = [[name, f"{count:,}", f"{count / len(lines):.2%}"] for name, count in counts.items()]
    rows.append(["probability of the empty output: mean", f"{sum(masses) / len(lines):.2g}", ""])
    rows.append(["largest", f"{max(masses, default=0):.2g}", ""])
    return markdown_table([f"beam {options.beam_size}", f"of {len(lines):,}", ""], rows)


def main(arguments: Sequence[str]) -> int:
    """Print the tables; return the exit status."""
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    command, count = commands.add_parser("words"), whole(1, 10**9)
    command.set_defaults(do=word_errors)
    add: Any = command.add_argument
    add("--train", type=Path, required=True, metavar="PREFIX", help="training files")
    add("--dev", type=Path, required=True, metavar="PREFIX", help="development files")
    add("--report", type=Path, required=True, metavar="FILE", help="exactness report")
    add("--languages", type=count, default=15, metavar="N", help="list the N worst (default 15)")
    command = commands.add_parser("search")
    command.set_defaults(do=search_errors)
    add = command.add_argument
    add("models", nargs="+", type=Path, metavar="MODEL", help="several are averaged")
    add("--source", type=Path, required=True, metavar="FILE")
    add("--beam_size", type=count, default=5, metavar="N")
    add("--max_length", type=count, default=100, metavar="N")
    add("--budget", type=count, default=10_000, help="prefixes of exact search")
    add("--batch_size", type=count, default=64, metavar="N")
    options = parser.parse_args(arguments)
    print(options.do(options))
    return 0


if __name__ == "__main__":
    run_script(main)
