"""Read the values of `--columns` and `--separator`, which describe a table."""

from collections.abc import Sequence

from onmt_entmax.errors import UserError
from onmt_entmax.strings.task import SOURCE, TAGS, TARGET, TaskError, check_columns

# Names of columns in tables of inflections.
_ALIASES = {"lemma": SOURCE, "form": TARGET}


def checked_columns(text: str, needed: Sequence[str] = (SOURCE,)) -> tuple[str, ...]:
    """Return the columns that `--columns` names, such as `lemma,form,tags`.

    The names `lemma` and `form` stand for `source` and `target`.

    Args:
        text: names between commas; empty: there are no columns.
        needed: columns that must be among them.

    Raises:
        UserError: a name is unknown or repeated, or a needed one is missing.
    """
    if not text:
        return ()
    columns = tuple(_ALIASES.get(name, name) for name in map(str.strip, text.split(",")))
    try:
        check_columns(columns, needed)
    except TaskError as error:
        raise UserError(f"--{error}") from None  # the message begins with `columns: `
    return columns


def separators_of(texts: Sequence[str]) -> dict[str, str]:
    """Return the separators of a table, by column.

    Args:
        texts: values of `--separator`, such as `target= ` for symbols between spaces.

    Raises:
        UserError: a value is not `COLUMN=TEXT`, its column is not divided, tags have no separator,
            or a column has two different ones.
    """
    separators: dict[str, str] = {}
    for text in texts:
        name, equals, separator = text.partition("=")
        column = _ALIASES.get(name, name)
        if not equals or column not in (SOURCE, TARGET, TAGS):
            raise UserError(
                f"--separator {text!r}: expected source=, target= or tags= and what stands between "
                'symbols, such as "target= "'
            )
        if column == TAGS and not separator:
            raise UserError("--separator tags=: tags need a sign between them, such as tags=;")
        first = separators.setdefault(column, separator)
        if separator != first:
            raise UserError(
                f"--separator: {column} has two separators, {first!r} and {separator!r}; name one"
            )
    return separators
