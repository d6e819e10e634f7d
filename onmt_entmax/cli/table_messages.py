"""Print how `prepare` read its tables: their columns, units, languages and numbers of rows."""

from collections import Counter
from collections.abc import Mapping, Sequence

from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.tables import Table
from onmt_entmax.errors import counted, printable
from onmt_entmax.strings.languages import known_language_of_file
from onmt_entmax.strings.task import LANGUAGE_COLUMN, StringTask


def print_tables(tables: Sequence[Table], task: StringTask) -> None:
    """Print layouts, units, and each language with its files and rows.

    Warn if several files of a split have the same language, by their names, or if the tables have
    no languages, but the names of their files say different ones.
    """
    _print_layouts(tables)
    print(f"source: {task.source}; target: {task.target}{_tags_text(tables, task)}")
    by_language: dict[tuple[str, str], list[Table]] = {}  # by the file's language, and split
    for table in tables:
        by_language.setdefault((table.language, table.split), []).append(table)
    _print_languages(tables, by_language)
    _warn_of_equal_languages(by_language)
    _warn_of_unread_languages(tables)


def _tags_text(tables: Sequence[Table], task: StringTask) -> str:
    """Return the text about tags: their separator, and whether some are layered.

    It is empty if the task has no tags.
    """
    if not task.has_tags:
        return ""
    # A layered tag has others in parentheses, such as NOM(1,SG).
    layered = any("(" in tag for table in tables for row in table.rows for tag in row.query.tags)
    return f"; tags between {task.tag_separator!r}{', some layered' if layered else ''}"


def _print_layouts(tables: Sequence[Table]) -> None:
    """Print each layout with the first table that has it."""
    by_layout: dict[str, list[Table]] = {}
    for table in tables:
        by_layout.setdefault(str(table.layout), []).append(table)
    for layout, (first, *others) in by_layout.items():
        more = f" and {counted(len(others), 'file')} more" if others else ""
        print(printable(f"{first.path.name}{more}: {layout}"))


def _print_languages(
    tables: Sequence[Table], by_language: Mapping[tuple[str, str], Sequence[Table]]
) -> None:
    """Print the files and the number of rows of each language.

    Args:
        tables: all of them.
        by_language: the same, by the file's language and split. If a column has the languages, the
            files have none, and only numbers of rows are printed.
    """
    counts: dict[str, Counter[str]] = {}  # numbers of rows, by the row's language, and split
    for table in tables:
        for row in table.rows:
            counts.setdefault(row.query.language, Counter())[table.split] += 1
    for language, by_split in counts.items():
        parts = []
        for split, count in by_split.items():
            names = ", ".join(table.path.name for table in by_language.get((language, split), ()))
            rows = counted(count, "row")
            parts.append(f"{split}: {names} ({rows})" if names else f"{split}: {rows}")
        title = f"language {language}: " if language else ""
        print(printable(title + "; ".join(parts)))


def _warn_of_equal_languages(by_language: Mapping[tuple[str, str], Sequence[Table]]) -> None:
    """Warn if several files of a split have the same language, by their names.

    Args:
        by_language: tables by the file's language and split.
    """
    for (language, split), tables in by_language.items():
        if len(tables) > 1 and tables[0].language_is_guessed:
            names = ", ".join(table.path.name for table in tables)
            warn(f"{split}: {names} are one language here, {language}; --language names another")


def _warn_of_unread_languages(tables: Sequence[Table]) -> None:
    """Warn if the name of a file says another language than those of the training tables.

    Rows of a single language do not name it, so no other check compares the languages of splits.

    Args:
        tables: all tables; the training tables come first.
    """
    if any(table.language or LANGUAGE_COLUMN in table.layout.columns for table in tables):
        return
    trained = known_language_of_file(tables[0].path.name)
    for table in tables:
        language = known_language_of_file(table.path.name)
        if trained and language and language != trained:
            warn(
                f"{table.split}: {table.path.name} is of the language {language} by its name, and "
                f"the training tables are of {trained}"
            )
