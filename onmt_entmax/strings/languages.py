"""Names of languages: ISO 639 codes for UniMorph's names, and what the names of files say."""

import re
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files

# Of a file's name, what does not belong to the language.
_ENDINGS = re.compile(
    r"[._-](?:train(?:ing)?\d*(?:[._-](?:low|medium|high|sm|lg))?|small|large|trn|dev|develop\w*|"
    r"valid\w*|val|test|tst|"
    r"covered|uncovered|gold|segmentations|task\d*|part\d*|tsv|csv|txt)$",
    re.IGNORECASE,
)


@cache
def codes() -> Mapping[str, tuple[str, ...]]:
    """Return the codes of each language, ISO 639-3 first, by UniMorph's name."""
    text = files("onmt_entmax.strings").joinpath("languages.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")][1:]
    return {name: tuple(language_codes.split(",")) for name, language_codes in rows}


def known_as(language: str, known: Collection[str]) -> str:
    """Return the name under which a model knows a language; the language itself if it does not.

    Args:
        language: a name, or a code such as `deu`.
        known: languages of the model.
    """
    if language in known:
        return language
    for name, language_codes in codes().items():
        names = (name, *language_codes)
        if language in names:
            return next((other for other in names if other in known), language)
    return language


def language_of_file(name: str) -> str:
    """Return the language that the name of a file says: what its usual endings leave.

    `heb_unvoc.trn` is `heb_unvoc`, `vie_hanoi_test.covered.tsv` is `vie_hanoi`,
    `classical-syriac-train-low` is `classical-syriac`. Nothing if only endings are there, as in
    `train.tsv`.
    """
    rest = f"_{name}"  # so that a name that is an ending alone has a divider, too
    while True:
        shorter = _ENDINGS.sub("", rest)
        if shorter == rest:
            return rest[1:]
        rest = shorter
