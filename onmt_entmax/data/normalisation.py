"""Normalise the text of translations: Unicode, spaces, and marks of tokenisers and subwords."""

import re
import unicodedata

# Escapes of Moses' tokeniser; `&` must come last.
_MOSES = {
    "&quot;": '"',
    "&apos;": "'",
    "&lt;": "<",
    "&gt;": ">",
    "&#124;": "|",
    "&#91;": "[",
    "&#93;": "]",
    "&amp;": "&",
}
# Removes all diacritics, comma and cedilla forms alike, as Sennrich et al. 2016 ("Edinburgh Neural
# Machine Translation Systems for WMT 16"), section 3.1.
_ROMANIAN = str.maketrans("ŞşŢţȘșȚțĂăÂâÎî", "SsTtSsTtAaAaIi")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\u200b\ufeff]")
# Marks of pyonmttok and sentencepiece, and the characters that replace them in a text.
_MARKS = str.maketrans("￭￨▁｟｠", "■│_⦅⦆")


def normalise(line: str, language: str, is_tokenised: bool) -> str:
    """Return a line in NFC, with single spaces, and without characters that mark subwords.

    Args:
        line: a line of a text.
        language: the code of its language; Romanian (`ro`) loses its diacritics.
        is_tokenised: whether the text is tokenised; then escapes of Moses' tokeniser are undone.
    """
    line = unicodedata.normalize("NFC", _CONTROL.sub(" ", line)).translate(_MARKS)
    if is_tokenised:
        line = unescape_moses(line)
    if language == "ro":
        line = line.translate(_ROMANIAN)
    return " ".join(line.split())


def unescape_moses(line: str) -> str:
    """Undo the escapes of Moses' tokeniser."""
    for escaped, plain in _MOSES.items():
        line = line.replace(escaped, plain)
    return line
