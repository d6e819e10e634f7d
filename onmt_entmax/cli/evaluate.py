"""Compute accuracy and error rate of predicted tables, or of files of tokens.

    onmt-entmax evaluate predicted/* --reference gold/*.tst --model run/2023/model
    onmt-entmax evaluate words.out.tsv --reference words.tsv --separator "target= "

Predicted tables have the columns of the gold tables, or a heading names theirs. Rows are matched by
their queries (source, tags and language), in any order; several tables by their languages, which
the names of the files say. A prediction is right if it is one of the gold targets of its query;
nothing is normalised. The error rate is the sum of the edit distances (Levenshtein) to the nearest
gold target, in units of the target, over the sum of their lengths: PER of phones, CER of
characters. WER is 100 minus the accuracy. The average is over languages. A gold query without a
prediction counts as wrong. Of tables of `predict --details`, another table has for each certificate
how many queries have it, and how many of these are right.

--against OTHER compares with other predictions of the same rows or words: for each language and in
all, how many only one of the two gets right, and the p-value of McNemar's exact test.

    onmt-entmax evaluate --source run/pilot/data/dev.src --reference run/pilot/data/dev.tgt \\
        --predictions run/pilot/dev.pred

prints the official measures of the CoNLL-SIGMORPHON 2018 shared task for files of tokens: the
percentage of correct forms and the mean edit distance (in tokens, which are characters in files of
`prepare sigmorphon`) for each language, and their averages over languages. Each reference of a
source counts as correct, such as dreamed and dreamt; one with `<unk>` never does. --nbest N reads
predictions of `translate -n_best N`, N lines a word: it measures the first ones, and the best of N,
that nearest to a reference.

--report REPORT, of the same translation, prints how many words remain, and how many of those are
right, if all others are left to a person: by the probability of the output, and by what is proven.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rapidfuzz.distance import Levenshtein

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.ending import argument_parser, warn
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import json_text, read_aligned, read_lines, refuse_overwriting, write_files
from onmt_entmax.report.measures import (
    LanguageScores,
    Score,
    comparison,
    comparison_text,
    correct_forms,
    coverage,
    coverage_text,
    is_right,
    nearest_form,
    output_of,
    score_by_language,
)
from onmt_entmax.report.reading import read_report
from onmt_entmax.report.string_scores import answered, score_strings
from onmt_entmax.report.string_tables import (
    guessed_task,
    named_together,
    read_gold,
    read_predicted,
    refuse_other_queries,
)
from onmt_entmax.report.tables import aligned_table
from onmt_entmax.rules import whole
from onmt_entmax.strings.tables import checked_columns
from onmt_entmax.strings.task import (
    LANGUAGE,
    SOURCE,
    TAGS,
    TARGET,
    decode_tag,
    is_language,
    is_tag,
    language_of,
)


def table(scores: LanguageScores, best: LanguageScores | None = None, nbest: int = 1) -> str:
    """Return the scores as an aligned table, accuracy in percent.

    Args:
        scores: of the first predictions.
        best: of the best of `nbest` predictions, if there are several.
        nbest: predictions of a word.
    """
    head = ["language", "words", "accuracy", "edit distance"]
    rows = [head + ([] if best is None else [f"best of {nbest}", "edit distance"])]
    names = [*scores.languages, "average"]
    for name, each, of_best in zip(names, _scores(scores), _scores(best or scores), strict=True):
        other = [] if best is None else _cells(of_best)
        rows.append([name, str(each.words), *_cells(each), *other])
    lines = aligned_table(rows).splitlines()
    lines.insert(-1, "-" * len(lines[0]))
    return "\n".join(lines)


def _scores(scores: LanguageScores) -> list[Score]:
    """Return the scores of each language, and the average."""
    return [*scores.languages.values(), scores.average]


def _cells(score: Score) -> list[str]:
    return [f"{100 * score.accuracy:.2f}", f"{score.edit_distance:.3f}"]


def read_predictions(path: Path, source: Path, number: int) -> list[str]:
    """Return the tokens of each predicted word, between single spaces.

    Raises:
        UserError: the file cannot be read, has another number of lines, or a line is no tokens.
    """
    lines = list(read_lines(path))
    for place, line in enumerate(lines, 1):
        if "\t" in line or line.startswith('{"'):
            raise UserError(
                f"{path}:{place}: expected tokens between spaces, as `onmt-entmax translate` "
                "writes to -output, not lines of `inflect` or of a report"
            )
    if len(lines) != number:
        raise UserError(
            f"{path}: {counted(len(lines), 'line')}, but there must be {number:,} for the lines of "
            f"{source} (times --nbest)"
        )
    return [" ".join(line.split()) for line in lines]


def evaluate(options: argparse.Namespace) -> str:
    """Score a file of predictions; write the scores as JSON if asked to.

    Returns:
        What to print.

    Raises:
        UserError: a file cannot be read, the files differ in length, or a prediction is no tokens.
    """
    files = [options.source, options.reference, options.predictions]
    refuse_overwriting([*files, *options.against, options.report], [options.json])
    sources, references = read_aligned(options.source, options.reference)
    nbest = options.nbest
    if not sources:
        raise UserError(f"{options.source}: no lines")
    words = read_predictions(options.predictions, options.source, nbest * len(sources))
    languages = [language_of(options.source, n, line) for n, line in enumerate(sources, start=1)]
    forms = correct_forms(sources, [" ".join(line.split()) for line in references])
    compared = list(map(nearest_form, forms, words[::nbest]))
    scores, best = score_by_language(languages, compared, words[::nbest]), None
    content = asdict(scores)
    if nbest > 1:
        # Blank lines fill up a list of fewer predictions.
        starts = range(0, len(words), nbest)
        lists = [[words[n], *filter(None, words[n + 1 : n + nbest])] for n in starts]
        nearest = [
            min(
                (Levenshtein.distance(form.split(), word.split()), rank, number, form, word)
                for rank, word in enumerate(each)
                for number, form in enumerate(some)
            )
            for some, each in zip(forms, lists, strict=True)
        ]
        best = score_by_language(
            languages, [form for *_, form, _ in nearest], [word for *_, word in nearest]
        )
        content[f"best of {nbest}"] = asdict(best)
    texts = [table(scores, best, nbest)]
    if several := sum(len(some) > 1 for some in forms):
        texts.append(f"words with several correct forms: {several:,} of {len(forms):,}")
    right = list(map(is_right, compared, words[::nbest]))
    for path in options.against:
        others = read_predictions(path, options.source, nbest * len(sources))[::nbest]
        other = list(map(is_right, map(nearest_form, forms, others), others))
        content["against"] = against = comparison(languages, right, other)
        texts.append(comparison_text(against, path.name))
    if options.report:
        records = list(read_report(options.report, len(sources)))
        if [record["source"] for record in records] != sources:
            raise UserError(f"{options.report}: not of {options.source}")
        written = ["" if "abstained" in each else output_of(each)[0] for each in records]
        if [" ".join(text.split()) for text in written] != words[::nbest]:
            raise UserError(f"{options.report}: not of {options.predictions}")
        curve = coverage(records, lambda kept: 100 * sum(right[n] for n in kept) / len(kept))
        content["coverage"] = [vars(each) for each in curve]
        texts.append(coverage_text(curve, "accuracy"))
    if options.json:
        write_files({options.json: json_text(content)})
    return "\n\n".join(texts)


def evaluate_tables(options: argparse.Namespace) -> str:
    """Score predicted tables; write the scores as JSON if asked to.

    Returns:
        What to print.

    Raises:
        UserError: a table cannot be read, or a prediction has no gold row.
    """
    paths, gold_paths = options.predicted, options.reference
    refuse_overwriting([*paths, *gold_paths, *options.against], [options.json])
    columns = checked_columns(options.columns or "", (SOURCE, TARGET))
    separators = dict(map(_separator, options.separator))
    texts, tags, languages = [], frozenset[str](), frozenset[str]()
    if options.model:
        model = load(options.model)
        task, tokens = model.task, model.vocabularies.source.tokens
        tags = frozenset(decode_tag(token) for token in tokens if is_tag(token))
        languages = frozenset(t.removeprefix(LANGUAGE) for t in tokens if is_language(t))
    else:
        task, said = guessed_task(gold_paths[0], columns, separators)
        texts.append(f"{gold_paths[0].name}: {said}")
    gold = read_gold(gold_paths, task, columns, tags, languages)
    found = read_predicted(paths, gold)
    other = read_predicted(options.against, gold) if options.against else None
    if other is not None:
        refuse_other_queries(found, other, paths, options.against)
    scores = score_strings(gold.targets, found.guesses, task.target)
    several = sum(len(targets) > 1 for targets in gold.targets.values())
    if several:
        texts.append(f"queries with several gold targets: {several:,} of {len(gold.targets):,}")
    if missing := len(gold.targets) - len(found.guesses):
        lacking = sorted(scores.languages.keys() - {query.language for query in found.guesses})
        every = f" (all of {', '.join(lacking)})" if lacking else ""
        warn(
            f"gold queries without a prediction: {missing:,} of {len(gold.targets):,}{every}; they "
            "count as wrong"
        )
    if empty := sum(not guess.text for guess in found.guesses.values()):
        warn(f"empty predictions: {empty:,} of {len(found.guesses):,}")
    for path in found.unwritten:
        warn(f"{path}: all targets are empty: are they predictions?")
    for each, where in ((found, paths), (other, options.against)):
        if each is not None and each.several:
            name = f"{named_together(where)}: " if other is not None else ""
            warn(
                f"{name}queries with several predictions, of which the first counts: "
                f"{len(each.several):,}"
            )
    content = {**scores.as_dict(), "missing": missing}
    texts.append(scores.text())
    if other is not None:
        named = (query.language for query in gold.targets)
        right, others = (answered(gold.targets, each.guesses) for each in (found, other))
        content["against"] = against = comparison(named, right, others)
        texts.append(comparison_text(against, named_together(options.against)))
    if options.json:
        write_files({options.json: json_text(content)})
    return "\n\n".join(texts)


def _separator(text: str) -> tuple[str, str]:
    """Return the column and the separator of `--separator COLUMN=TEXT`.

    Raises:
        UserError: the text has another form.
    """
    column, equals, separator = text.partition("=")
    column = {"lemma": SOURCE, "form": TARGET}.get(column, column)
    if not equals or column not in (SOURCE, TARGET, TAGS):
        raise UserError(
            f"--separator {text!r}: expected target= or tags= and what stands between symbols, "
            'such as "target= "'
        )
    return column, separator


def _check(options: argparse.Namespace) -> None:
    """Refuse options of tables with lines, and the other way round.

    Raises:
        UserError: names the option.
    """
    given = [name for name in ("model", "columns", "separator") if getattr(options, name)]
    if options.predicted:
        names = ("source", "predictions", "report")
        if other := [name for name in names if getattr(options, name) is not None]:
            raise UserError(f"--{other[0]} goes with files of tokens, not with tables")
        if options.nbest != 1:
            raise UserError("--nbest goes with files of tokens; tables have a column for ranks")
        if options.model and options.separator:
            raise UserError("--separator: the model says so; leave it out")
        if not options.reference:
            raise UserError("--reference GOLD is missing, the table with the right targets")
        return
    if given:
        raise UserError(f"--{given[0]} goes with predicted tables; name them")
    lines = ("source", "reference", "predictions")
    if missing := [f"--{name}" for name in lines if not getattr(options, name)]:
        raise UserError(
            "the following arguments are required: "
            f"{', '.join(missing)}, or predicted tables; -h explains the arguments"
        )
    if len(options.reference) > 1:
        raise UserError("--reference: one file of tokens; several are of tables")
    if len(options.against) > 1:
        raise UserError("--against: one file of tokens; several are of tables")


def main(arguments: Sequence[str]) -> int:
    """Print the measures; return the exit status."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("predicted", nargs="*", type=Path, metavar="PREDICTED", help="tables of `predict`")
    add("--reference", nargs="+", type=Path, metavar="GOLD", help="gold tables, or the target "
        "file of `prepare sigmorphon`")  # fmt: skip
    add("--model", type=Path, help="of tables: says columns and units")
    add("--columns", help="of tables, such as source,target,tags,language,- (default: a heading "
        "names them, or they are guessed)")  # fmt: skip
    add("--separator", action="append", default=[], metavar="COLUMN=TEXT",
        help='of tables: between symbols, such as "target= " (default: guessed)')  # fmt: skip
    add("--against", nargs="+", type=Path, default=[], metavar="OTHER",
        help="other predictions of the same rows, or words")  # fmt: skip
    add("--json", type=Path, help="write the scores here too (accuracy from 0 to 1)")
    lines = parser.add_argument_group("files of tokens, a word a line")
    add = lines.add_argument
    add("--source", type=Path, help="source file of `prepare sigmorphon`")
    add("--predictions", type=Path, help="one predicted target a line")
    add(
        "--nbest",
        type=whole(1, 10_000),
        default=1,
        metavar="N",
        help="N predicted targets for each source line",
    )
    add("--report", type=Path, help="-exactness_report of the predictions")
    options = parser.parse_args(arguments)
    _check(options)
    if options.predicted:
        print(evaluate_tables(options))
    else:
        (options.reference,) = options.reference
        print(evaluate(options))
    return 0
