"""Find words that mix scripts, such as a Latin a among Cyrillic letters: most are typing errors.

Scripts that are written together count as one, as in the level "highly restrictive" of Unicode's
security mechanisms (UTS 39): Latin with Han, Hiragana and Katakana, with Han and Hangul, and with
Han and Bopomofo. Signs that many scripts share, such as digits and combining accents, go with any.

`script_mixture` checks one form, within each word and against its lemma. `script_mixtures` checks
the pairs of a table, in which it may be right that forms are in other scripts than lemmas.
"""

from collections.abc import Iterable, Sequence
from functools import cache

import regex

# Scripts of most languages, tried in this order. Letters of other scripts are not checked: they go
# with any script, as shared signs do.
_SCRIPTS = tuple(
    "Latin Cyrillic Greek Arabic Hebrew Armenian Georgian Devanagari Bengali Gurmukhi Gujarati "
    "Oriya Tamil Telugu Kannada Malayalam Sinhala Thai Lao Tibetan Myanmar Khmer Mongolian "
    "Ethiopic Hangul Han Hiragana Katakana Bopomofo Thaana Syriac Cherokee Canadian_Aboriginal "
    "Coptic Gothic Glagolitic Runic Ogham Nko Tifinagh Vai Javanese Balinese".split()
)
_TOGETHER = (
    {"Latin", "Han", "Hiragana", "Katakana"},
    {"Latin", "Han", "Hangul"},
    {"Latin", "Han", "Bopomofo"},
)
_LETTERS = regex.compile(r"[\p{L}\p{M}]+")


@cache
def script_of(character: str) -> str:
    """Return the script of a character; an empty string for shared signs and scripts not listed."""
    for script in _SCRIPTS:
        if regex.match(rf"\p{{Script={script}}}", character):
            return script
    return ""


def script_mixture(form: str, lemma: str = "") -> str:
    """Return a sentence on how a form mixes scripts; an empty string if it does not.

    A word, which no hyphen or space divides, must be in one script. The words of a form may be in
    several, as in `PCR-теста`, unless the lemma is in one script alone.

    Args:
        form: one or several words.
        lemma: lemma, whose scripts the form may have; empty: only words of the form are checked.
    """
    # Most forms and lemmas have one script together: no need to divide them into words.
    if _go_together({script_of(character) for character in {*form, *lemma}} - {""}):
        return ""
    return _mixture_within_a_word(form) or _mixture_with_lemma(form, lemma)


def script_mixtures(pairs: Sequence[tuple[str, str]]) -> dict[int, str]:
    """Return how pairs of lemma and form mix scripts, by the position of each that does.

    If most forms are in another script than their lemmas, as in a transliteration, that is right:
    then only mixtures within a lemma or a form are returned.
    """
    within_one: dict[int, str] = {}
    between: dict[int, str] = {}  # pairs whose form and lemma do not mix scripts themselves
    for position, (lemma, form) in enumerate(pairs):
        if within := script_mixture(form) or script_mixture(lemma):
            within_one[position] = within
        elif between_both := script_mixture(form, lemma):
            between[position] = between_both
    is_transliteration = 2 * len(between) > len(pairs)
    return within_one if is_transliteration else dict(sorted((within_one | between).items()))


def _mixture_within_a_word(form: str) -> str:
    """Return a sentence on the first word that mixes scripts and its characters; else nothing."""
    for word in _LETTERS.findall(form):
        scripts = _scripts(word)
        if not _go_together(scripts):
            others = [c for c in dict.fromkeys(word) if script_of(c) not in ("", scripts[0])]
            named = ", ".join(f"{script_of(c)} {c} (U+{ord(c):04X})" for c in others)
            return f"{form!r} mixes scripts: {scripts[0]} with {named}"
    return ""


def _mixture_with_lemma(form: str, lemma: str) -> str:
    """Return a sentence if a form has scripts that do not go with its lemma's; else nothing.

    If the lemma mixes scripts itself, the form may have any.
    """
    of_form, of_lemma = _scripts(form), _scripts(lemma)
    if not of_form or not of_lemma or not _go_together(of_lemma):
        return ""
    if _go_together(of_form + of_lemma):
        return ""
    return f"{form!r} is in {' and '.join(of_form)}, its lemma {' and '.join(of_lemma)}"


def _scripts(text: str) -> list[str]:
    """Return the scripts of a text, the script of most characters first."""
    scripts = [script for script in map(script_of, text) if script]
    return sorted(dict.fromkeys(scripts), key=scripts.count, reverse=True)


def _go_together(scripts: Iterable[str]) -> bool:
    """Return whether there is at most one script, or several that are written together."""
    names = set(scripts)
    return len(names) <= 1 or any(names <= together for together in _TOGETHER)
