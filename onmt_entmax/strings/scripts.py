"""Words that mix scripts, such as a Latin a among Cyrillic letters: most are typing errors.

Scripts that are written together count as one, as in the level "highly restrictive" of Unicode's
security mechanisms (UTS 39): Latin with Han, Hiragana and Katakana, with Han and Hangul, and with
Han and Bopomofo. Signs that many scripts share, such as digits and combining accents, go with any.

A form is compared with itself, word by word, and with its lemma: `mixture` looks at one form,
`mixtures` at a whole table, which may show that other scripts than the lemmas' are right.
"""

from collections.abc import Iterable, Sequence
from functools import cache

import regex

# Those of most languages, tried in this order.
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
    for script in _SCRIPTS:
        if regex.match(rf"\p{{Script={script}}}", character):
            return script
    return ""


def mixture(form: str, lemma: str = "") -> str:
    """Return how a form mixes scripts, for people; an empty string if it does not.

    A word, which no hyphen or space divides, must be in one script. The words of a form may be in
    several, as in `PCR-теста`, unless the lemma is in one script alone.

    Args:
        form: one or several words.
        lemma: if it is empty, the form alone is looked at.
    """
    # Most forms have one script: look no further.
    if _fit({script_of(character) for character in {*form, *lemma}} - {""}):
        return ""
    return _mixture_within_a_word(form) or _mixture_with_lemma(form, lemma)


def mixtures(pairs: Sequence[tuple[str, str]]) -> dict[int, str]:
    """Return the numbers of those pairs of lemma and form that mix scripts, and how each does.

    If most forms are in another script than their lemmas, as in a transliteration, that is right:
    then only mixtures within a lemma or a form are errors.
    """
    within_one: dict[int, str] = {}
    between: dict[int, str] = {}  # of pairs whose form and lemma do not mix scripts themselves
    for number, (lemma, form) in enumerate(pairs):
        if within := mixture(form) or mixture(lemma):
            within_one[number] = within
        elif between_both := mixture(form, lemma):
            between[number] = between_both
    is_transliteration = 2 * len(between) > len(pairs)
    return within_one if is_transliteration else dict(sorted((within_one | between).items()))


def _mixture_within_a_word(form: str) -> str:
    """Return how the first word that mixes scripts does so, and by which characters."""
    for word in _LETTERS.findall(form):
        scripts = _scripts(word)
        if not _fit(scripts):
            others = [c for c in dict.fromkeys(word) if script_of(c) not in ("", scripts[0])]
            named = ", ".join(f"{script_of(c)} {c} (U+{ord(c):04X})" for c in others)
            return f"{form!r} mixes scripts: {scripts[0]} with {named}"
    return ""


def _mixture_with_lemma(form: str, lemma: str) -> str:
    """Return the scripts of form and lemma if the form has some that do not go with the lemma's.

    Nothing, if the lemma mixes scripts itself: no script is then expected of the form.
    """
    of_form, of_lemma = _scripts(form), _scripts(lemma)
    if not of_form or not of_lemma or not _fit(of_lemma) or _fit(of_form + of_lemma):
        return ""
    return f"{form!r} is in {' and '.join(of_form)}, its lemma {' and '.join(of_lemma)}"


def _scripts(text: str) -> list[str]:
    """Return the scripts of a text, that of most characters first."""
    scripts = [script for script in map(script_of, text) if script]
    return sorted(dict.fromkeys(scripts), key=scripts.count, reverse=True)


def _fit(scripts: Iterable[str]) -> bool:
    """Tell whether scripts are one, or written together."""
    names = set(scripts)
    return len(names) <= 1 or any(names <= together for together in _TOGETHER)
