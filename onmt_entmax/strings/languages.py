"""Names and ISO 639 codes of languages, and the language of a file or of a line of tokens."""

import re
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

from onmt_entmax.errors import UserError
from onmt_entmax.strings.marks import LANGUAGE, is_language

# Endings of a file's name that are not part of the language's name.
_ENDING = re.compile(
    r"""[._-](?:
        train(?:ing)?(?:[._-]?\d+)?(?:[._-](?:low|medium|high|sm|lg))? | trn | small | large
        | (?:dev|val|test)(?:[._-]?\d+)? | develop\w* | valid\w*
        | tst | covered | uncovered | gold | segmentations
        | task\d* | part\d*
        | tsv | csv | txt
    )$""",
    re.IGNORECASE | re.VERBOSE,
)
# What may stand before the language's name instead, as in `dev_deu.tsv`.
_BEGINNING = re.compile(r"(?:train(?:ing)?|dev|val(?:id)?|test)[._-]", re.IGNORECASE)


@cache
def codes() -> Mapping[str, tuple[str, ...]]:
    """Return the codes of each language, ISO 639-3 first, by UniMorph's name."""
    text = files("onmt_entmax.strings").joinpath("languages.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")][1:]
    return {name: tuple(language_codes.split(",")) for name, language_codes in rows}


@cache
def _names() -> Mapping[str, tuple[str, ...]]:
    """Return all names and codes of a language, UniMorph's name first, by each of them."""
    names = [(name, *language_codes) for name, language_codes in codes().items()]
    return {name: of_language for of_language in names for name in of_language}


def known_as(language: str, known: Collection[str]) -> str:
    """Return the name under which a model knows a language; the language itself if it does not.

    Args:
        language: a name, or a code such as `deu`.
        known: languages of the model.
    """
    if language in known:
        return language
    names = _names().get(language, ())
    return next((name for name in names if name in known), language)


def language_of_file(name: str) -> str:
    """Return the language in the name of a file: the name without the usual other parts.

    `heb_unvoc.trn` is `heb_unvoc`, `vie_hanoi_test.covered.tsv` is `vie_hanoi`,
    `classical-syriac-train-low` is `classical-syriac`, and `dev_deu.tsv` is `deu`. The result is
    empty if the name has only such parts, as `train.tsv` does.
    """
    rest = f"_{name}"  # endings begin with a divider, also if the name has nothing else
    while ending := _ENDING.search(rest):
        rest = rest[: ending.start()]
    rest = rest[1:]
    beginning = _BEGINNING.match(rest)
    return rest[beginning.end() :] if beginning else rest


def known_language_of_file(name: str) -> str:
    """Return UniMorph's name of the language with which the name of a file begins.

    `deu_train.tsv` and `deu_latn_broad_dev.tsv` are `german`. The result is empty if the name does
    not begin with a language of `codes`: other words may mean anything.
    """
    language = language_of_file(name).casefold()
    first_word = re.split("[._-]", language)[0]
    names = _names().get(language) or _names().get(first_word) or ("",)
    return names[0]


def language_of_line(path: Path, number: int, line: str) -> str:
    """Return the language at the beginning of a source, as tokens between spaces.

    Args:
        path: path of the file, for the error.
        number: number of the line, from 1.
        line: the source.

    Raises:
        UserError: the line does not begin with a language.
    """
    first = line.split(" ", 1)[0]
    if not is_language(first):
        raise UserError(
            f"{path}:{number}: expected a language first ({LANGUAGE}...), as `prepare sigmorphon` "
            "writes it; put one before each line"
        )
    return first.removeprefix(LANGUAGE)
