#!/usr/bin/env python
"""What the errors of a model of inflection are: a page of tables and a picture.

    python tools/errors_inflection.py --train run/medium/data/train --dev run/medium/data/dev \\
        --predictions run/medium/dev.pred --report run/medium/dev.report.jsonl \\
        --output errors.md --picture errors.png

`--train` and `--dev` are the files of `tools/sigmorphon.py prepare` without `.src` and `.tgt`;
`--report` is what `translate.py -exactness_report` wrote beside the predictions. Every table gives
the number of words of a kind, how many of them are right, and which part of all errors they are:
kinds of questions (unseen characters, rare tags, certificates, probabilities, languages), then
kinds of errors.

`--reversed` is for models and data of `prepare --reverse`: what is trained, expected and predicted
is read from right to left, so that the tables speak of the forms as they are.
"""

from __future__ import annotations

import argparse
import random
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from pictures.style import picture_format, write_picture
from words.error_kinds import (
    Training,
    Word,
    certificate_kind,
    character_kind,
    confusions,
    error_kind,
    lemma_kind,
    place_kind,
    probability_kind,
    tags_kind,
)

from onmt_entmax.commands import command
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines, refuse_overwriting, replaced_when_done
from onmt_entmax.reports.reading import is_only, read_report
from onmt_entmax.text.morphology import decode_source, decode_word, turned

EXAMPLES = 20


def read_words(options: argparse.Namespace) -> list[Word]:
    """The development words with what was predicted and proven.

    Raises:
        UserError: a file cannot be read, or the files do not belong together.
    """
    paths = [*_pair(options.dev), options.predictions]
    columns = [list(read_lines(path)) for path in paths]
    records = list(read_report(options.report))
    for path, lines in zip([*paths, options.report], [*columns, records], strict=True):
        if len(lines) != len(columns[0]):
            raise UserError(f"{path}: {len(lines)} lines, but {paths[0]} has {len(columns[0])}")
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
    """What training showed.

    Args:
        prefix: of the training files.
        reverse: whether its forms are written from right to left.

    Raises:
        UserError: a file cannot be read, or they differ in length.
    """
    source, target = _pair(prefix)
    sources, targets = list(read_lines(source)), list(read_lines(target))
    if len(sources) != len(targets):
        raise UserError(f"{target}: {len(targets)} lines, but {source} has {len(sources)}")
    training = Training()
    for number, (line, form) in enumerate(zip(sources, targets, strict=True), 1):
        training.add(*_decoded(source, number, line), _word(form, reverse))
    return training


def _pair(prefix: Path) -> list[Path]:
    """The files of a data set: a prefix, which may have a dot in it, and what they end in."""
    return [prefix.with_name(f"{prefix.name}{ending}") for ending in (".src", ".tgt")]


def _word(text: str, reverse: bool) -> str:
    """The word of a line of tokens, which may be written from right to left."""
    return decode_word(turned(text, reverse).split())


def _decoded(path: Path, number: int, line: str) -> tuple[str, tuple[str, ...], str]:
    try:
        return decode_source(line.split() or [""])
    except ValueError as error:
        raise UserError(f"{path}:{number}: {error}") from None


def table(title: str, words: Sequence[Word], kind: Callable[[Word], str]) -> list[list[str]]:
    """Words by kind, kinds in order of name: how many, how many right, which part of errors."""
    groups: dict[str, list[Word]] = {}
    for word in words:
        groups.setdefault(kind(word), []).append(word)
    errors = sum(not word.right for word in words)
    rows = [[title, "words", "right (%)", "part of errors (%)"]]
    for name, group in sorted(groups.items()):
        wrong = sum(not word.right for word in group)
        # A number before a name puts it in its place and is not shown.
        shown = name.split(" ", 1)[1] if name[0].isdigit() else name
        share = 100 * wrong / max(errors, 1)
        rows.append([shown, str(len(group)), f"{accuracy(group):.1f}", f"{share:.1f}"])
    return rows


def accuracy(words: Sequence[Word]) -> float:
    """Percent of the words that are right."""
    return 100 * sum(word.right for word in words) / max(len(words), 1)


def by_language(words: Sequence[Word]) -> dict[str, list[Word]]:
    """Words of each language, the worst language first."""
    groups: dict[str, list[Word]] = {}
    for word in words:
        groups.setdefault(word.language, []).append(word)
    return dict(sorted(groups.items(), key=lambda item: (accuracy(item[1]), item[0])))


def language_table(words: Sequence[Word], training: Training, limit: int) -> list[list[str]]:
    """The languages with the lowest accuracy; `one form` is where it has all the probability."""
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
    """Errors by kind."""
    counts = Counter(map(kind, wrong))
    rows = [[title, "errors", "part (%)"]]
    for name, count in sorted(counts.items()):
        share = 100 * count / max(len(wrong), 1)
        rows.append([name.split(" ", 1)[1], str(count), f"{share:.1f}"])
    return rows


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a Markdown table, the first being the head."""
    rules = ["---"] + ["---:"] * (len(rows[0]) - 1)
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in [rows[0], rules, *rows[1:]]]
    return "\n".join("| " + " | ".join(row) + " |" for row in escaped)


def page(words: Sequence[Word], training: Training, languages: int) -> str:
    """The whole page."""
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
        f"{len(words)} words of {len(groups)} languages: {accuracy(words):.2f} % right, "
        f"{macro:.2f} % averaged over languages, {len(wrong)} errors."
    )
    return "\n\n".join([head, *map(markdown, tables)]) + "\n"


def draw(words: Sequence[Word], training: Training, output: Path) -> None:
    """A picture: accuracy by language, by how often the tags were trained, by certificate.

    Raises:
        UserError: matplotlib is missing, or the picture cannot be written.
    """
    try:
        import matplotlib
    except ImportError:
        raise UserError('matplotlib is missing: pip install -e ".[plot]"') from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    groups = by_language(words)
    figure = pyplot.figure(figsize=(12, 6.5), layout="constrained")
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
        axes[name].set_xlim(0, 150)
        axes[name].invert_yaxis()
    write_picture(figure, output)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--train", type=Path, required=True, metavar="PREFIX", help="training files")
    add("--dev", type=Path, required=True, metavar="PREFIX", help="development files")
    add("--predictions", type=Path, required=True, metavar="FILE", help="one form a line")
    add("--report", type=Path, required=True, metavar="FILE", help="exactness report")
    add("--output", type=Path, required=True, metavar="FILE", help="page to write, Markdown")
    add("--picture", type=Path, metavar="FILE", help="picture to write, .png, .pdf or .svg")
    add("--reversed", action="store_true", help="the forms are written from right to left")
    add("--languages", type=int, default=15, metavar="N", help="show the N worst (default 15)")
    options = parser.parse_args(arguments)
    if options.languages < 1:
        parser.error("--languages must be at least 1")
    return options


@command
def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the page; an error of the user's is one line on the standard error and status 2."""
    options = parse_arguments(arguments)
    read = [*_pair(options.train), *_pair(options.dev), options.predictions, options.report]
    refuse_overwriting(read, [options.output])
    refuse_overwriting([*read, options.output], [options.picture])
    if options.picture:
        picture_format(options.picture)  # before the work, not after
    words, training = read_words(options), read_training(options.train, options.reversed)
    text = page(words, training, options.languages)
    with replaced_when_done([options.output]) as (file,):
        file.write(text)
        if options.picture:
            draw(words, training, options.picture)
    print(text.split("\n", 1)[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
