"""The files of tables that `prepare` and `audit` read, with their splits and languages."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onmt_entmax.errors import UserError, counted
from onmt_entmax.rules import shown
from onmt_entmax.strings.languages import language_of_file


@dataclass(frozen=True)
class SplitFile:
    """The file of a table, with its split and language.

    Attributes:
        split: name of the split, such as `train`.
        path: path of the file.
        language: language of all rows; empty if a column has languages, or if the tables have none.
        language_is_guessed: whether the language was taken from the name of the file.
    """

    split: str
    path: Path
    language: str = ""
    language_is_guessed: bool = False


def with_languages(
    files: Sequence[SplitFile], language: str | None, *, needs_language: bool = False
) -> list[SplitFile]:
    """Return the files with their languages, for tables without a column of languages.

    Unless the user names a language, each file's name contains it. If all training files contain
    the same name, it may be something else, and the files get no language, unless each needs one.

    Args:
        files: files of all splits; the training files come first.
        language: language of all files, if the user named it.
        needs_language: whether every file must have a language.

    Raises:
        UserError: the name of a file contains no language, or `language` has spaces.
    """
    if language is not None:
        if language.split() != [language]:
            raise UserError(f"--language {shown(language)}: must be one word without spaces")
        return [replace(file, language=language) for file in files]
    training = [file for file in files if file.split == files[0].split]
    names = {language_of_file(file.path.name) for file in training}
    if len(names) < 2 and not needs_language:
        return list(files)
    named = [
        replace(file, language=language_of_file(file.path.name), language_is_guessed=True)
        for file in files
    ]
    unnamed = [file for file in named if file.language.split() != [file.language]]
    if unnamed:
        more = f" and {counted(len(unnamed) - 1, 'file')} more" if unnamed[1:] else ""
        column = (
            ", or let `prepare table` read a column of languages"
            if needs_language
            else ", or name a column of languages with --columns"
        )
        raise UserError(
            f"{unnamed[0].path}{more}: the name of the file says no language (one word, as in "
            f"deu_train.tsv); rename it{column}; if all tables are of one language, --language "
            "names it"
        )
    return named
