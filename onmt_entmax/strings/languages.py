"""Names of languages: ISO 639 codes for UniMorph's names, and the other way round."""

from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files


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
