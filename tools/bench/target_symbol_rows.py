"""Rows of tables with the target symbols of their language, for `target_symbols.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.cli.split_files import SplitFile, with_languages
from onmt_entmax.cli.tables import read_tables
from onmt_entmax.errors import UserError
from onmt_entmax.strings.marks import LANGUAGE
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import StringTask
from onmt_entmax.transducer import Transducer


def rows_by_language(paths: Sequence[Path], model: Transducer) -> dict[str, list[Row]]:
    """Return the rows of tables, by the name that the model has for the language of their file.

    Tables of the same language are joined. Rows that cannot be read are left out.

    Raises:
        UserError: a table cannot be read, or the model does not know its language.
    """
    files = [SplitFile("dev", path) for path in paths]
    tables, _ = read_tables(
        with_languages(files, None, needs_language=True), fallback=("source", "target", "tags")
    )
    rows: dict[str, list[Row]] = {}
    for table in tables:
        language = model.known_language(table.language)
        rows.setdefault(language, []).extend(
            row._replace(query=row.query._replace(language=language)) for row in table.rows
        )
    return rows


def with_symbols(model: LoadedModel, training: Mapping[str, Sequence[Row]]) -> LoadedModel:
    """Return the model with the target symbols of training rows recorded for their languages.

    Args:
        model: the model; what it records of other languages does not change.
        training: rows by language.
    """
    target = model.vocabularies.target
    recorded = dict(target.seen)
    for language, rows in training.items():
        symbols = {symbol for row in rows for symbol in model.task.target.encode(row.target)}
        recorded[LANGUAGE + language] = frozenset(symbols.intersection(target.tokens))
    return replace(
        model, vocabularies=model.vocabularies._replace(target=replace(target, seen=recorded))
    )


@dataclass(frozen=True)
class LanguageRows:
    """Rows of one language.

    Attributes:
        rows: rows whose queries name the language as the model does.
        symbols: target symbols that training saw in the language.
        task: divides texts into symbols.
    """

    rows: Sequence[Row]
    symbols: frozenset[str]
    task: StringTask

    def is_foreign(self, row: Row, text: str) -> bool:
        """Return whether a target or prediction of a row has a foreign symbol; "" has none."""
        if not text:
            return False
        own = self.symbols.union(self.task.source.encode(row.query.source))
        return not own.issuperset(self.task.target.encode(text))


def language_rows(model: LoadedModel, rows: Mapping[str, Sequence[Row]]) -> dict[str, LanguageRows]:
    """Return the rows of each language with its symbols.

    Raises:
        UserError: the model records no symbols of a language.
    """
    recorded = model.vocabularies.target.seen
    missing = [language for language in rows if LANGUAGE + language not in recorded]
    if missing:
        raise UserError(
            f"{model.folder} does not record the target symbols of {', '.join(missing)}; "
            "name the tables that it was trained on with --train"
        )
    return {
        language: LanguageRows(table_rows, recorded[LANGUAGE + language], model.task)
        for language, table_rows in rows.items()
    }
