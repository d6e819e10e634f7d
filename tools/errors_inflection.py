"""Analyse the errors of an inflection model: a page of tables, and a picture.

    python tools/errors_inflection.py --train run/medium/data/train --dev run/medium/data/dev \\
        --predictions run/medium/dev.pred --report run/medium/dev.report.jsonl \\
        --output errors.md --picture errors

--train and --dev are files of `onmt-entmax prepare sigmorphon` without `.src` and `.tgt`; --report
is the exactness report of the predictions. The tables give the number of words of a kind, their
accuracy, and their share of all errors: by the query (unseen characters, rare tags, certificates,
probabilities, languages), then by the kind of error. --reversed is for right-to-left models and
their data.
"""

from __future__ import annotations

import argparse
import random
import textwrap
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from onmt_entmax.cli.ending import argument_parser, following, run_script
from onmt_entmax.data.inflection import decode_source, decode_word, order_tokens
from onmt_entmax.errors import UserError, counted
from onmt_entmax.figures.style import output_stem, picture_paths, prepare, write_figure
from onmt_entmax.files import read_aligned, refuse_overwriting, replaced_when_done
from onmt_entmax.report.measures import edit_distance
from onmt_entmax.report.reading import is_only, read_report
from onmt_entmax.report.tables import markdown_table
from onmt_entmax.rules import whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The functions below return the kind of a word or an error as a number, by which tables are sorted,
# and a name.


@dataclass(frozen=True)
class Word:
    """A word of the development set, its prediction and certificate.

    Attributes:
        language: name of the language.
        tags: UniMorph tags.
        lemma: dictionary form.
        form: expected form.
        prediction: predicted form.
        level: level of the certificate, or `only` if one form has all the probability.
        prob: probability of the prediction; 0 if no hypothesis finished.
    """

    language: str
    tags: tuple[str, ...]
    lemma: str
    form: str
    prediction: str
    level: str
    prob: float

    @property
    def right(self) -> bool:
        """Whether the prediction is the expected form."""
        return self.form == self.prediction


@dataclass
class Training:
    """Counts of the training data, by language."""

    size: Counter[str] = field(default_factory=Counter)
    tags: Counter[tuple[str, tuple[str, ...]]] = field(default_factory=Counter)
    characters: set[str] = field(default_factory=set)
    own_characters: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    forms: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, language: str, tags: tuple[str, ...], lemma: str, form: str) -> None:
        """Count one training pair."""
        self.size[language] += 1
        self.tags[language, tags] += 1
        self.characters.update(lemma, form)
        self.own_characters[language].update(lemma, form)
        self.forms[language, lemma].add(form)


def character_kind(word: Word, training: Training) -> str:
    """Return whether lemma and form have characters that are not in the training data."""
    used = set(word.lemma) | set(word.form)
    if used - training.characters:
        return "2 one that no language has in training"
    if used - training.own_characters[word.language]:
        return "1 one that its language has not in training"
    return "0 all known in its language"


def tags_kind(word: Word, training: Training) -> str:
    """Return how often the training data of the language has these tags."""
    count = training.tags[word.language, word.tags]
    for number, (least, name) in enumerate(
        [(30, "30 or more"), (10, "10 to 29"), (3, "3 to 9"), (1, "1 or 2")]
    ):
        if count >= least:
            return f"{number} {name}"
    return "4 never"


def lemma_kind(word: Word, training: Training) -> str:
    """Return whether the training data has the lemma, with other tags."""
    known = (word.language, word.lemma) in training.forms
    return "0 trained with other tags" if known else "1 not in training"


def certificate_kind(word: Word) -> str:
    """Return what was proven."""
    return {
        "only": "0 one form has all the probability",
        "exhaustive": "1 every possible form found, several",
        "optimal": "2 the most probable form proven",
    }.get(word.level, "3 nothing proven")


def probability_kind(word: Word) -> str:
    """Return the range of the prediction's probability, near a calibrated model's accuracy."""
    for number, (least, name) in enumerate(
        [(0.9, "0.9 or more"), (0.7, "0.7 to 0.9"), (0.5, "0.5 to 0.7"), (0.3, "0.3 to 0.5")]
    ):
        if word.prob >= least:
            return f"{number} {name}"
    return "4 less than 0.3"


def error_kind(word: Word, training: Training | None = None) -> str:
    """Return what is wrong with a prediction: the first kind that fits.

    Args:
        word: an error.
        training: finds predictions that are other forms of the lemma, if given.
    """
    if not word.prediction:
        return "0 nothing predicted"
    if word.prediction == word.lemma:
        return "1 the lemma itself"
    if training and word.prediction in training.forms.get((word.language, word.lemma), ()):
        return "2 another form of the lemma that training has"
    if bare(word.prediction) == bare(word.form):
        return "3 accents and other marks only"
    if word.prediction.casefold() == word.form.casefold():
        return "4 small and capital letters only"
    distance = edit_distance(word.form, word.prediction)
    if distance > 2:
        return "9 three characters or more"
    if distance == 2:
        return "8 two characters"
    longer = len(word.prediction) - len(word.form)
    names = {
        -1: "5 one character missing",
        0: "6 one character another",
        1: "7 one character too many",
    }
    return names[longer]


def bare(word: str) -> str:
    """Return a word without accents and other combining marks."""
    decomposed = unicodedata.normalize("NFD", word)
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def place_kind(word: Word) -> str:
    """Return the third of the expected form with the first difference."""
    pairs = zip(word.form, word.prediction, strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
    if at is None:
        at = min(len(word.form), len(word.prediction))
    third = min(2, 3 * at // max(len(word.form), 1))
    return ("0 first third", "1 second third", "2 last third or after the end")[third]


def confusions(words: Iterable[Word]) -> Counter[tuple[str, str]]:
    """Count what was predicted in place of something else, in words with one difference."""
    counts: Counter[tuple[str, str]] = Counter()
    for word in words:
        start = sum(1 for _ in _common(word.form, word.prediction))
        end = sum(1 for _ in _common(word.form[start:][::-1], word.prediction[start:][::-1]))
        expected = word.form[start : len(word.form) - end]
        predicted = word.prediction[start : len(word.prediction) - end]
        if max(len(expected), len(predicted)) <= 3:
            counts[expected or "(nothing)", predicted or "(nothing)"] += 1
    return counts


def _common(first: Sequence[str], second: Sequence[str]) -> Iterator[str]:
    """Yield the common first characters of two words."""
    for one, other in zip(first, second, strict=False):
        if one != other:
            return
        yield one


EXAMPLES = 20


def read_words(options: argparse.Namespace) -> list[Word]:
    """Return the development words with predictions and certificates.

    Raises:
        UserError: a file cannot be read, or the files do not belong together.
    """
    paths = [*_pair(options.dev), options.predictions]
    columns, records = read_aligned(*paths), list(read_report(options.report))
    if len(records) != len(columns[0]):
        found = counted(len(records), "sentence")
        raise UserError(f"{options.report}: {found}, but {paths[0]} has {len(columns[0])}")
    words = []
    for number, (source, target, prediction, record) in enumerate(
        zip(*columns, records, strict=True), 1
    ):
        outputs = [h["text"] for h in record["hypotheses"]] + [record.get("unfinished", "")]
        if (record["source"], outputs[0]) != (source, prediction):
            raise UserError(
                f"{options.report}:{number}: not of {paths[0]} and {options.predictions}: another "
                f"source, or another output than the one that is predicted there"
            )
        level = "only" if is_only(record) else record["certificate"]
        language, tags, lemma = _decoded(paths[0], number, source)
        form, guess = (_word(text, options.reversed) for text in (target, prediction))
        prob = next((h["prob"] for h in record["hypotheses"]), 0.0)
        words.append(Word(language, tags, lemma, form, guess, level, prob))
    if not words:
        raise UserError(f"{paths[0]}: no words")
    return words


def read_training(prefix: Path, reverse: bool) -> Training:
    """Return the counts of the training data.

    Args:
        prefix: path of the training files without ending.
        reverse: whether the forms are right to left.

    Raises:
        UserError: a file cannot be read, or they differ in length.
    """
    source, target = _pair(prefix)
    sources, targets = read_aligned(source, target)
    training = Training()
    for number, (line, form) in enumerate(zip(sources, targets, strict=True), 1):
        training.add(*_decoded(source, number, line), _word(form, reverse))
    return training


def _pair(prefix: Path) -> list[Path]:
    """Return the files of a data set, whose prefix may contain a dot."""
    return [prefix.with_name(f"{prefix.name}{ending}") for ending in (".src", ".tgt")]


def _word(text: str, reverse: bool) -> str:
    """Return the word of a line of tokens, left to right or right to left."""
    return decode_word(order_tokens(text, reverse).split())


def _decoded(path: Path, number: int, line: str) -> tuple[str, tuple[str, ...], str]:
    try:
        return decode_source(line.split() or [""])
    except ValueError as error:
        raise UserError(f"{path}:{number}: {error}") from None


def table(title: str, words: Sequence[Word], kind: Callable[[Word], str]) -> list[list[str]]:
    """Return rows of words by kind: count, accuracy, and share of the errors."""
    groups: dict[str, list[Word]] = {}
    for word in words:
        groups.setdefault(kind(word), []).append(word)
    errors = sum(not word.right for word in words)
    rows = [[title, "words", "right (%)", "part of errors (%)"]]
    for name, group in sorted(groups.items()):
        wrong = sum(not word.right for word in group)
        # The number before a name only sorts it.
        shown = name.split(" ", 1)[1] if name[0].isdigit() else name
        share = 100 * wrong / max(errors, 1)
        rows.append([shown, str(len(group)), f"{accuracy(group):.1f}", f"{share:.1f}"])
    return rows


def accuracy(words: Sequence[Word]) -> float:
    """Return the accuracy in percent."""
    return 100 * sum(word.right for word in words) / max(len(words), 1)


def by_language(words: Sequence[Word]) -> dict[str, list[Word]]:
    """Return the words of each language, the lowest accuracy first."""
    groups: dict[str, list[Word]] = {}
    for word in words:
        groups.setdefault(word.language, []).append(word)
    return dict(sorted(groups.items(), key=lambda item: (accuracy(item[1]), item[0])))


def language_table(words: Sequence[Word], training: Training, limit: int) -> list[list[str]]:
    """Return rows of the languages with the lowest accuracy.

    `one form` counts words for which one form has all the probability.
    """
    rows = [["language", "training words", "words", "right (%)"]]
    rows[0] += ["one form (%)", "right of those (%)", "most frequent kind of error"]
    for language, group in list(by_language(words).items())[:limit]:
        kinds = Counter(
            error_kind(word, training).split(" ", 1)[1] for word in group if not word.right
        )
        kind, count = kinds.most_common(1)[0] if kinds else ("-", 0)
        trained = str(training.size[language])
        only = [word for word in group if word.level == "only"]
        sure = [f"{100 * len(only) / len(group):.1f}", f"{accuracy(only):.1f}" if only else "-"]
        right = f"{accuracy(group):.1f}"
        rows.append([language, trained, str(len(group)), right, *sure, f"{kind} ({count})"])
    return rows


def error_table(title: str, wrong: Sequence[Word], kind: Callable[[Word], str]) -> list[list[str]]:
    """Return rows of errors by kind."""
    counts = Counter(map(kind, wrong))
    rows = [[title, "errors", "part (%)"]]
    for name, count in sorted(counts.items()):
        share = 100 * count / max(len(wrong), 1)
        rows.append([name.split(" ", 1)[1], str(count), f"{share:.1f}"])
    return rows


def page(words: Sequence[Word], training: Training, languages: int) -> str:
    """Return the page."""
    wrong = [word for word in words if not word.right]
    groups = by_language(words)
    macro = sum(map(accuracy, groups.values())) / len(groups)
    shown = random.Random(0).sample(wrong, min(EXAMPLES, len(wrong)))
    confused = confusions(wrong).most_common(15)
    examples = [["language", "lemma", "tags", "expected", "predicted", "certificate"]]
    examples += [
        [w.language, w.lemma, ";".join(w.tags), w.form, w.prediction, w.level] for w in shown
    ]
    tables = [
        table("characters of the word", words, lambda w: character_kind(w, training)),
        table(
            "times the tags were trained, in that language", words, lambda w: tags_kind(w, training)
        ),
        table("lemma", words, lambda w: lemma_kind(w, training)),
        table("certificate", words, certificate_kind),
        table("probability of the form", words, probability_kind),
        language_table(words, training, languages),
        error_table("what is wrong", wrong, lambda w: error_kind(w, training)),
        error_table("where the first difference is", wrong, place_kind),
        [["expected", "predicted", "times"], *([*pair, str(n)] for pair, n in confused)],
        examples,
    ]
    head = (
        f"{counted(len(words), 'word')} of {counted(len(groups), 'language')}: "
        f"{accuracy(words):.2f} % right, {macro:.2f} % averaged over languages, "
        f"{counted(len(wrong), 'error')}."
    )
    return "\n\n".join([head, *(markdown_table(rows[0], rows[1:]) for rows in tables)]) + "\n"


def draw(words: Sequence[Word], training: Training) -> Figure:
    """Draw accuracy by language, tag frequency, certificate and characters."""
    from matplotlib import pyplot

    groups = by_language(words)
    figure = pyplot.figure(figsize=(12, 6.5))
    axes = figure.subplot_mosaic([["languages"] * 3, ["tags", "certificate", "characters"]])
    axes["languages"].bar(range(len(groups)), [accuracy(group) for group in groups.values()])
    axes["languages"].set_xticks(range(len(groups)), list(groups), rotation=90, fontsize=6)
    axes["languages"].set_title("right (%), by language", fontsize=10)
    axes["languages"].margins(x=0.005)
    panels = {
        "tags": ("times the tags were trained", lambda w: tags_kind(w, training)),
        "certificate": ("certificate", certificate_kind),
        "characters": ("characters", lambda w: character_kind(w, training)),
    }
    for name, (title, kind) in panels.items():
        rows = table(title, words, kind)[1:]
        labels = [textwrap.fill(row[0], 24) for row in rows]
        bars = axes[name].barh(labels, [float(row[2]) for row in rows])
        axes[name].bar_label(bars, [f"{row[2]} % of {row[1]}" for row in rows], fontsize=7)
        axes[name].set_title(f"right (%), by {title}", fontsize=10)
        axes[name].tick_params(labelsize=7)
        axes[name].set_xlim(0, 150)  # with room for the labels
        axes[name].set_xticks(range(0, 101, 20))
        axes[name].invert_yaxis()
    return figure


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("--train", type=Path, required=True, metavar="PREFIX", help="training files")
    add("--dev", type=Path, required=True, metavar="PREFIX", help="development files")
    add("--predictions", type=Path, required=True, metavar="FILE", help="one form a line")
    add("--report", type=Path, required=True, metavar="FILE", help="exactness report")
    add("--output", type=Path, required=True, metavar="FILE", help="page to write, Markdown")
    add("--picture", type=Path, metavar="FILE", help="picture: .pdf and .png")
    add("--reversed", action="store_true", help="the forms are right to left")
    count = following(whole(1, 10**9))
    add("--languages", type=count, default=15, metavar="N", help="list the N worst (default 15)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Write the page; return the exit status."""
    options = parse_arguments(arguments)
    read = [*_pair(options.train), *_pair(options.dev), options.predictions, options.report]
    refuse_overwriting(read, [options.output])
    picture = output_stem(options.picture) if options.picture else None
    refuse_overwriting([*read, options.output], picture_paths(picture) if picture else [])
    words, training = read_words(options), read_training(options.train, options.reversed)
    text = page(words, training, options.languages)
    with replaced_when_done([options.output]) as (file,):
        file.write(text)
        if picture:
            prepare(word.language for word in words)
            write_figure(draw(words, training), picture)
    print(text.split("\n", 1)[0])
    return 0


if __name__ == "__main__":
    run_script(main)
