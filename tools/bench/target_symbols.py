"""What `target_symbols: language` changes: best outputs and their accuracy, by language.

    python -m tools.bench.target_symbols run/2023/model --dev part1/*.dev
    python -m tools.bench.target_symbols data/models/inflection-86 --dev D/*-dev \
        --train D/*-train-high --rows 100

Each row is predicted with `any` and, unless its only possible output has no foreign symbol, with
`language`. A foreign symbol stands neither in a training target of the row's language nor in the
row's source. --train names the tables of the training, for models that do not record symbols.
Columns:

    rows       of the table that were predicted (--rows: at most so many, drawn with seed 0)
    gold       targets with a foreign symbol, which `language` cannot predict
    foreign    best outputs of `any` with a foreign symbol
    changed    best outputs that `language` changes
    right      of these, became right
    wrong      became wrong
    any        accuracy of `any` in percent
    language   accuracy of `language` in percent
    only       outputs of `any` that are proven to be the only one; right ones in percent
    only       of `language`
"""

import random
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.cli.split_files import SplitFile, with_languages
from onmt_entmax.cli.tables import read_tables
from onmt_entmax.prediction import Prediction
from onmt_entmax.strings.marks import LANGUAGE
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import Query, StringTask
from onmt_entmax.transducer import Transducer

# Columns of counts, and settings with a column each for accuracy and for proven outputs.
_COUNTS = ("rows", "gold", "foreign", "changed", "right", "wrong")
_SETTINGS = ("any", "language")
_PROVEN_SETTINGS = tuple(f"only {setting}" for setting in _SETTINGS)


def rows_by_language(paths: Sequence[Path], model: Transducer) -> dict[str, list[Row]]:
    """Return the rows of tables, by the name that a model has for the language of their file.

    Raises:
        UserError: a table cannot be read, or the model does not know its language.
    """
    files = [SplitFile("dev", path) for path in paths]
    named = with_languages(files, None, needs_language=True)
    tables, _ = read_tables(named, usual=("source", "target", "tags"))
    return {model.known_language(table.language): table.rows for table in tables}


def symbols_of_rows(rows: Sequence[Row], task: StringTask) -> frozenset[str]:
    """Return the symbols of targets."""
    return frozenset(symbol for row in rows for symbol in task.target.encode(row.target))


def with_symbols(model: LoadedModel, rows: dict[str, list[Row]]) -> LoadedModel:
    """Return a model that records the target symbols of training rows."""
    seen = {
        LANGUAGE + language: symbols_of_rows(of_language, model.task)
        & {*model.vocabularies.target.tokens}
        for language, of_language in rows.items()
    }
    target = replace(model.vocabularies.target, seen=seen)
    return replace(model, vocabularies=model.vocabularies._replace(target=target))


def is_foreign(text: str, row: Row, symbols: frozenset[str], task: StringTask) -> bool:
    """Return whether a text has a symbol that neither language nor source have.

    Args:
        text: a target of the row, or a prediction; empty: none.
        row: has the source.
        symbols: of the training targets of the row's language.
        task: divides texts into symbols.
    """
    used = {*task.target.encode(text)} if text else set()
    return not symbols.issuperset(used - {*task.source.encode(row.query.source)})


def compare(
    rows: Sequence[Row],
    unrestricted: Sequence[Prediction],
    restricted: Sequence[Prediction],
    symbols: frozenset[str],
    task: StringTask,
) -> Counter[str]:
    """Return the counts of the table for one language, by the columns that `line` prints.

    Args:
        rows: of the language.
        unrestricted: their predictions with `any`.
        restricted: those with `language`.
        symbols: of its training targets.
        task: of the model.
    """
    counts = Counter(rows=len(rows))
    for row, before, after in zip(rows, unrestricted, restricted, strict=True):
        before_right = before.text == row.target
        after_right = after.text == row.target
        facts = {
            "gold": is_foreign(row.target, row, symbols, task),
            "foreign": is_foreign(before.text, row, symbols, task),
            "changed": before.text != after.text,
            "right": after_right and not before_right,
            "wrong": before_right and not after_right,
            "any": before_right,
            "language": after_right,
            "only any": before.level == "only",
            "only language": after.level == "only",
            "only any right": before.level == "only" and before_right,
            "only language right": after.level == "only" and after_right,
        }
        counts.update({name: int(fact) for name, fact in facts.items()})
    return counts


def predict_restricted(
    restricted: Transducer,
    rows: Sequence[Row],
    queries: Sequence[Query],
    unrestricted: Sequence[Prediction],
    symbols: frozenset[str],
) -> list[Prediction]:
    """Return the predictions of rows with `language`.

    Where the only possible output has no foreign symbol, both predictions are the same.

    Args:
        restricted: predicts with `language`.
        rows: of one language.
        queries: of the rows.
        unrestricted: their predictions with `any`.
        symbols: of the training targets of the language.
    """
    may_differ = [
        index
        for index, (prediction, row) in enumerate(zip(unrestricted, rows, strict=True))
        if prediction.level != "only" or is_foreign(prediction.text, row, symbols, restricted.task)
    ]
    predictions = list(unrestricted)
    predicted_again = restricted.predictions([queries[index] for index in may_differ])
    for index, prediction in zip(may_differ, predicted_again, strict=True):
        predictions[index] = prediction
    return predictions


def line(name: str, counts: Mapping[str, int]) -> str:
    """Return a line of the table."""
    cells = [f"{counts[column]:,}" for column in _COUNTS]
    cells += [f"{100 * counts[setting] / counts['rows']:.2f}" for setting in _SETTINGS]
    for proven in _PROVEN_SETTINGS:
        share = 100 * counts[f"{proven} right"] / max(counts[proven], 1)
        cells.append(f"{counts[proven]:,} ({share:.2f})")
    return "\t".join([name, *cells])


def parse_arguments(arguments: Sequence[str] | None = None) -> Namespace:
    """Read the command line."""
    parser: ArgumentParser = argument_parser(__doc__)
    parser.add_argument("model", type=Path, help="run or model folder")
    parser.add_argument("--dev", nargs="+", type=Path, required=True, help="tables to predict")
    parser.add_argument("--train", nargs="+", type=Path, default=[], help="tables of the training")
    parser.add_argument("--rows", type=int, default=0, help="of each table; 0: all")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit status."""
    options = parse_arguments(arguments)
    model = load(options.model)
    unrestricted = Transducer(model, target_symbols="any")
    if options.train:
        model = with_symbols(model, rows_by_language(options.train, unrestricted))
    restricted = Transducer(model, target_symbols="language")
    print("\t".join(["language", *_COUNTS, *_SETTINGS, *("only" for _ in _SETTINGS)]))
    total: Counter[str] = Counter()
    for language, rows in rows_by_language(options.dev, unrestricted).items():
        if 0 < options.rows < len(rows):
            rows = random.Random(0).sample(rows, options.rows)
        symbols = model.vocabularies.target.seen[LANGUAGE + language]
        queries = [row.query._replace(language=language) for row in rows]
        before = list(unrestricted.predictions(queries))
        after = predict_restricted(restricted, rows, queries, before, symbols)
        counts = compare(rows, before, after, symbols, model.task)
        print(line(language, counts), flush=True)
        total.update(counts)
    print(line("all", total))
    return 0


if __name__ == "__main__":
    run_script(main)
