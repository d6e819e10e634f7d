"""The values of `--columns` and `--separator`."""

from collections.abc import Sequence

from onmt_entmax.errors import UserError
from onmt_entmax.strings.task import SOURCE, TAGS, TARGET, TaskError, check_columns

# Other names of columns.
_ALIASES = {"lemma": SOURCE, "form": TARGET}


def checked_columns(text: str, needed: Sequence[str] = (SOURCE,)) -> tuple[str, ...]:
    """Return the columns that `--columns` names; lemma and form are source and target.

    Args:
        text: names between commas; none if it is empty.
        needed: columns that must be there.

    Raises:
        UserError: a column is unknown, twice there or missing.
    """
    if not text:
        return ()
    columns = tuple(_ALIASES.get(name, name) for name in map(str.strip, text.split(",")))
    try:
        check_columns(columns, needed)
    except TaskError as error:
        raise UserError(f"--{error}") from None
    return columns


def separators_of(texts: Sequence[str]) -> dict[str, str]:
    """Return the separators of `--separator COLUMN=TEXT`.

    Raises:
        UserError: a text has another form.
    """
    separators = {}
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
        separators[column] = separator
    return separators
