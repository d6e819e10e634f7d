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
from onmt_entmax.report.answers import Answer
from onmt_entmax.report.measures import is_right
from onmt_entmax.report.reading import read_report
from onmt_entmax.report.records import is_only
from onmt_entmax.rules import whole
from onmt_entmax.search import Budget, Hypothesis, SearchConfig, SearchTask
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
    records: list[Any] = [{"hypotheses": [], "certificate": "none"}] * len(pairs)
    if report is not None:
        records = list(read_report(report))
        if [record["source"] for record in records] != [line for line, _ in pairs]:
            raise UserError(f"{report}: not of {source}")
    words = []
    for number, ((line, reference), record) in enumerate(zip(pairs, records, strict=True), 1):
        language_of(source, number, line)
        lemma, tags, language = INFLECTION.decode_source(line.split())
        best = record["hypotheses"][0] if record["hypotheses"] else {}
        text = best.get("text", "")
        level = record["certificate"]
        if report is not None and is_only(record):
            level = "only"
        words.append(
            Word(
                language=language,
                tags=tags,
                lemma=lemma,
                form=decode_word(reference.split()),
                prediction=decode_word(text.split()),
                level=level,
                probability=best.get("prob", 0.0),
                right=is_right(reference, text),
            )
        )
    return words


def error_kind(word: Word) -> str:
    """Return what is wrong with a prediction: the first of `KINDS` that fits."""
    distance = Levenshtein.distance(word.form, word.prediction)
    fits = (
        not word.prediction,
        word.prediction == word.lemma,
        without_marks(word.prediction) == without_marks(word.form),
        word.prediction.casefold() == word.form.casefold(),
        distance == 1,
        distance == 2,
        True,
    )
    return KINDS[fits.index(True)]


def without_marks(text: str) -> str:
    """Return a text without accents and other combining marks."""
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(character for character in decomposed if not unicodedata.combining(character))


def band(value: float, bands: Sequence[tuple[float, str]], below: str) -> str:
    """Return the name of the first band whose least value is not above this one."""
    return next((name for least, name in bands if value >= least), below)


def percent_right(words: Sequence[Word]) -> float:
    """Return the percentage of right predictions."""
    return 100 * sum(word.right for word in words) / len(words)


class Characters:
    """The characters of training, by language."""

    def __init__(self, training: Sequence[Word]) -> None:
        self._of_language: dict[str, set[str]] = {}
        for word in training:
            self._of_language.setdefault(word.language, set()).update(word.lemma, word.form)
        self._all = set[str]().union(*self._of_language.values())

    def kind(self, word: Word) -> str:
        """Return whether training has all characters of a word."""
        characters = {*word.lemma, *word.form}
        if characters <= self._of_language.get(word.language, set()):
            return "all known in its language"
        return "unseen in any language" if characters - self._all else "unseen in its language"


def grouped(
    words: Sequence[Word], title: str, kind: Callable[[Word], str], order: Sequence[str] = ()
) -> tuple[list[str], list[list[str]]]:
    """Return heading and rows of a table of words by kind: number, accuracy and share of errors.

    Args:
        words: of the development set.
        title: of the kinds.
        kind: of a word.
        order: kinds that come first, in this order; without it, the least accurate come first.
    """
    groups: dict[str, list[Word]] = {name: [] for name in order}
    for word in words:
        groups.setdefault(kind(word), []).append(word)
    all_errors = max(sum(not word.right for word in words), 1)
    rows = []
    for name, group in groups.items():
        if group:
            errors = sum(not word.right for word in group)
            share = f"{100 * errors / all_errors:.1f}"
            rows.append([name, str(len(group)), f"{percent_right(group):.1f}", share])
    if not order:
        rows.sort(key=lambda row: float(row[2]))
    return [title, "words", "right (%)", "share of errors (%)"], rows


def word_errors(options: argparse.Namespace) -> str:
    """Return the tables of `words`."""
    words, training = read_words(options.dev, options.report), read_words(options.train)
    tags = Counter((word.language, word.tags) for word in training)
    least, never = "less than 0.3", "never"

    def probability(word: Word) -> str:
        return band(word.probability, BANDS, least)

    def times_of_tags(word: Word) -> str:
        return band(tags[word.language, word.tags], COUNTS, never)

    bands = [*(name for _, name in BANDS), least]
    counts = [*(name for _, name in COUNTS), never]
    levels, all_known = [*CERTIFICATES.values()], ["all known in its language"]
    head, languages = grouped(words, "language", lambda word: word.language)
    wrong = [word for word in words if not word.right]
    kinds = Counter(map(error_kind, wrong))
    errors = [
        [kind, str(kinds[kind]), f"{100 * kinds[kind] / max(len(wrong), 1):.1f}"] for kind in KINDS
    ]
    tables = [
        grouped(words, "certificate", lambda word: CERTIFICATES[word.level], levels),
        grouped(words, "probability", probability, bands),
        grouped(words, "training rows with these tags", times_of_tags, counts),
        grouped(words, "characters", Characters(training).kind, all_known),
        (head, languages[: options.languages]),
        (["kind of error", "errors", "share (%)"], errors),
    ]
    summary = f"{len(words)} words: {percent_right(words):.2f} % right, {len(wrong)} errors."
    return "\n\n".join([summary, *(markdown_table(*table) for table in tables)])


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
    unproven = [index for index, answer in enumerate(beams) if not _is_proven(answer)]
    exact = translators["exact"].answers([lines[index] for index in unproven], options.batch_size)
    exacts = dict(zip(unproven, exact, strict=True))
    counts: Counter[str] = Counter()
    masses = []
    for index, empty in enumerate(translators["empty"].answers(lines, options.batch_size)):
        output = _best(beams[index])
        candidates = [output, _best(exacts[index])] if index in exacts else [output]
        best = max(
            (each for each in candidates if each is not None),
            key=lambda hypothesis: hypothesis.log_prob,
            default=None,
        )
        reached = -math.inf if output is None else output.log_prob
        proven = index not in exacts or _is_proven(exacts[index])
        counts["most probable output proven by the beam"] += index not in exacts
        counts["most probable output proven"] += proven
        counts["missed by the beam"] += best is not None and best.log_prob > reached + ROUNDING
        counts["empty output possible"] += bool(empty.hypotheses)
        counts["empty output the most probable"] += proven and best is not None and not best.tokens
        masses += [math.exp(each.hypothesis.log_prob) for each in empty.hypotheses]
    rows = [[name, f"{count:,}", f"{count / len(lines):.2%}"] for name, count in counts.items()]
    rows.append(["probability of the empty output: mean", f"{sum(masses) / len(lines):.2g}", ""])
    rows.append(["largest", f"{max(masses, default=0):.2g}", ""])
    return markdown_table([f"beam {options.beam_size}", f"of {len(lines):,}", ""], rows)


def _is_proven(answer: Answer) -> bool:
    """Return whether the best output is proven to be the most probable."""
    return answer.result is not None and answer.result.certificate.level != "none"


def _best(answer: Answer) -> Hypothesis | None:
    """Return the best finished hypothesis, if there is one."""
    return answer.hypotheses[0].hypothesis if answer.hypotheses else None


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
