"""Words that mix scripts, such as a Latin a among Cyrillic letters: most are typing errors.

Scripts that are written together count as one, as in the level "highly restrictive" of Unicode's
security mechanisms (UTS 39): Latin with Han, Hiragana and Katakana, with Han and Hangul, and with
Han and Bopomofo. Signs that many scripts share, such as digits and combining accents, go with any.
"""

from collections.abc import Iterable, Sequence
from functools import cache

import regex

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
    """Return the script of a character; an empty string for shared signs and rarer scripts."""
    found = (s for s in _SCRIPTS if regex.match(rf"\p{{Script={s}}}", character))
    return next(found, "")


def mixture(form: str, lemma: str = "") -> str:
    """Return how a form mixes scripts, for people; an empty string if it does not.

    A hyphen or a space may stand between scripts if the lemma has both: `PCR-тест`, `PCR-теста`.

    Args:
        form: one or several words.
        lemma: the form should be in its script.
    """
    if _fit({script_of(c) for c in {*form, *lemma}} - {""}):
        return ""
    for word in _LETTERS.findall(form):
        if not _fit(scripts := _scripts(word)):
            others = [c for c in dict.fromkeys(word) if script_of(c) not in ("", scripts[0])]
            named = ", ".join(f"{script_of(c)} {c} (U+{ord(c):04X})" for c in others)
            return f"{form!r} mixes scripts: {scripts[0]} with {named}"
    ours, theirs = _scripts(form), _scripts(lemma)
    if ours and theirs and set(ours) != set(theirs) and _fit(theirs) and not _fit(ours + theirs):
        return f"{form!r} is in {' and '.join(ours)}, its lemma {' and '.join(theirs)}"
    return ""


def mixtures(pairs: Sequence[tuple[str, str]]) -> dict[int, str]:
    """Return the numbers of those pairs of lemma and form that mix scripts, and how each does.

    If most forms are in another script than their lemmas, as in a transliteration, that is right.
    """
    mixed, other = {}, []
    for number, (lemma, form) in enumerate(pairs):
        if text := mixture(form) or mixture(lemma):
            mixed[number] = text
        elif text := mixture(form, lemma):
            mixed[number] = text
            other.append(number)
    if 2 * len(other) > len(pairs):
        for number in other:
            del mixed[number]
    return mixed


def _scripts(text: str) -> list[str]:
    """Return the scripts of a text, that of most characters first."""
    scripts = [script for script in map(script_of, text) if script]
    return sorted(dict.fromkeys(scripts), key=scripts.count, reverse=True)


def _fit(scripts: Iterable[str]) -> bool:
    """Tell whether scripts are one, or written together."""
    names = set(scripts)
    return len(names) <= 1 or any(names <= together for together in _TOGETHER)
