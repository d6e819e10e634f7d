"""Find the language of a predicted table that has no column of languages.

If there is one predicted table and one gold table, they have the same language. Otherwise the name
of the file says the language, by its name or its code: `known_as` turns `deu` into `german` if the
gold tables have only `german`.
"""

from pathlib import Path

from onmt_entmax.errors import UserError
from onmt_entmax.report.gold_tables import ALL, Gold
from onmt_entmax.strings.languages import known_as, language_of_file


def predicted_language(path: Path, gold: Gold, *, is_only: bool) -> str:
    """Return the language of all rows of a predicted table, as the gold targets have it.

    Args:
        path: path of the table.
        gold: the gold targets.
        is_only: whether it is the only predicted table.

    Raises:
        UserError: if there is no gold table of this language.
    """
    languages = {query.language for query in gold.targets}
    if is_only and len(gold.table_languages) == 1:
        # The two tables belong together, whatever their names.
        _refuse_other_language(path, gold)
        language = gold.table_languages[0]
    else:
        language = known_as(language_of_file(path.name) or ALL, languages)
    if language not in languages:
        raise UserError(
            f"{path}: of the language {language} by its name, of which there is no gold table; "
            f"these are of {', '.join(sorted(languages))}"
        )
    return language


def _refuse_other_language(path: Path, gold: Gold) -> None:
    """Refuse a predicted table of another language than the only gold table.

    The names of the files are compared only if both are languages that the model knows: other names
    may be any words.

    Raises:
        UserError: if they are different languages.
    """
    known = gold.reading.languages
    language = known_as(language_of_file(path.name), known)
    gold_language = known_as(gold.table_languages[0], known)
    if language != gold_language and {language, gold_language} <= known:
        raise UserError(
            f"{path}: of the language {language} by its name, and the gold table is of "
            f"{gold_language}"
        )
