"""Names of languages: ISO 639 codes for UniMorph's names, and the other way round."""

from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files


@cache
def codes() -> Mapping[str, tuple[str, ...]]:
    """Return the codes of each language, ISO 639-3 first, by UniMorph's name."""
    text = files("onmt_entmax.strings").joinpath("languages.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")][1:]
    return {name: tuple(listed.split(",")) for name, listed in rows}


def known_as(language: str, known: Collection[str]) -> str:
    """Return the name under which a model knows a language; the language itself if it does not.

    Args:
        language: a name, or a code such as `deu`.
        known: languages of the model.
    """
    if language in known:
        return language
    for name, listed in codes().items():
        if language == name or language in listed:
            return next((each for each in (name, *listed) if each in known), language)
    return language
