"""What `target_symbols: language` changes: best outputs and their accuracy, by language.

    python -m tools.bench.target_symbols run/2023/model --dev part1/*.dev
    python -m tools.bench.target_symbols data/models/inflection-86 --dev D/*-dev \
        --train D/*-train-high --rows 100

Each row is predicted with `any` and, unless its only possible output has no foreign symbol, with
`language`. A foreign symbol stands neither in a training
target of the row's language nor in the row's source. --train names the tables of the training, for
models that do not record symbols. Columns:

    rows       of the table that were predicted (--rows: at most so many, drawn with seed 0)
    gold       targets with a foreign symbol, which `language` cannot predict
    foreign    best outputs of `any` with a foreign symbol
    changed    best outputs that `language` changes
    right      of these, became right
    wrong      became wrong
    any        accuracy in percent
    language   likewise
    only       outputs of `any` that are proven to be the only one; right ones in percent
    only       of `language`
"""

import random
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.cli.tables import Table, name_languages, read_tables
from onmt_entmax.prediction import Prediction
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import LANGUAGE, StringTask
from onmt_entmax.transducer import Transducer

_COUNTS = ("rows", "gold", "foreign", "changed", "right", "wrong")


def rows_by_language(paths: Sequence[Path], model: Transducer) -> dict[str, list[Row]]:
    """Return the rows of tables, by the name that a model has for the language of their file."""
    tables = [Table("dev", path) for path in paths]
    name_languages(tables, None, by_name=True)
    read_tables(tables, usual=("source", "target", "tags"))
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
    """Return whether a text has a symbol that neither language nor source have."""
    used = {*task.target.encode(text)} if text else set()
    return not symbols.issuperset(used - {*task.source.encode(row.query.source)})


def compare(
    rows: Sequence[Row],
    predictions: Sequence[Sequence[Prediction]],
    symbols: frozenset[str],
    task: StringTask,
) -> dict[str, int]:
    """Return the counts of the table for one language.

    Args:
        rows: of the language.
        predictions: with `any` and with `language`.
        symbols: of its training targets.
        task: of the model.
    """
    before, after = ([prediction.text for prediction in each] for each in predictions)
    hits = [
        [text == row.target for text, row in zip(texts, rows, strict=True)]
        for texts in (before, after)
    ]
    only = [[prediction.level == "only" for prediction in each] for each in predictions]
    return {
        "rows": len(rows),
        "gold": sum(is_foreign(row.target, row, symbols, task) for row in rows),
        "foreign": sum(
            is_foreign(text, row, symbols, task) for text, row in zip(before, rows, strict=True)
        ),
        "changed": sum(a != b for a, b in zip(before, after, strict=True)),
        "right": sum(b > a for a, b in zip(*hits, strict=True)),
        "wrong": sum(a > b for a, b in zip(*hits, strict=True)),
        "any": sum(hits[0]),
        "language": sum(hits[1]),
        "only any": sum(only[0]),
        "only language": sum(only[1]),
        "only any right": sum(a and b for a, b in zip(only[0], hits[0], strict=True)),
        "only language right": sum(a and b for a, b in zip(only[1], hits[1], strict=True)),
    }


def line(name: str, counts: dict[str, int]) -> str:
    """Return a line of the table."""
    cells = [f"{counts[column]:,}" for column in _COUNTS]
    cells += [f"{100 * counts[kind] / counts['rows']:.2f}" for kind in ("any", "language")]
    for kind in ("only any", "only language"):
        share = 100 * counts[f"{kind} right"] / max(counts[kind], 1)
        cells.append(f"{counts[kind]:,} ({share:.2f})")
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
    either = Transducer(model, target_symbols="any")
    if options.train:
        model = with_symbols(model, rows_by_language(options.train, either))
    restricted = Transducer(model, target_symbols="language")
    print("\t".join(["language", *_COUNTS, "any", "language", "only", "only"]))
    total: dict[str, int] = {}
    for language, rows in rows_by_language(options.dev, either).items():
        if 0 < options.rows < len(rows):
            rows = random.Random(0).sample(rows, options.rows)
        symbols = model.vocabularies.target.seen[LANGUAGE + language]
        queries = [row.query._replace(language=language) for row in rows]
        before = list(either.predictions(queries))
        # Where the only possible output has no foreign symbol, both predictions are the same.
        again = [
            index
            for index, (prediction, row) in enumerate(zip(before, rows, strict=True))
            if prediction.level != "only" or is_foreign(prediction.text, row, symbols, model.task)
        ]
        after = list(before)
        predictions = restricted.predictions([queries[index] for index in again])
        for index, prediction in zip(again, predictions, strict=True):
            after[index] = prediction
        counts = compare(rows, [before, after], symbols, model.task)
        print(line(language, counts), flush=True)
        total = {name: total.get(name, 0) + number for name, number in counts.items()}
    print(line("all", total))
    return 0


if __name__ == "__main__":
    run_script(main)
