"""Vocabulary files, which hold the tokens of one side and how often the data has each.

`onmt_build_vocab` of OpenNMT-py writes the same format.
"""

from collections import Counter
from pathlib import Path

from onmt_entmax.data.vocabulary import VocabularyError
from onmt_entmax.files import read_lines

# Count of the first token of a file without counts; each further token has one less. So the counts
# keep the order of the file, and all are above any minimum frequency.
_FIRST_COUNT = 1 << 62


def read_counts(path: str) -> Counter[str]:
    """Read the token counts of a vocabulary file.

    A line is a token, or a token and its count. Without counts, the order of the file is kept and
    no token is too rare.

    Raises:
        VocabularyError: a line has another form, a token occurs twice, or the file is empty.
    """
    lines = enumerate(read_lines(Path(path)), 1)
    rows = [(number, line.split()) for number, line in lines if line.strip()]
    if not rows:
        raise VocabularyError(f"{path}: the vocabulary file is empty")
    _, first_columns = rows[0]
    has_counts = len(first_columns) == 2
    counts: Counter[str] = Counter()
    for position, (number, columns) in enumerate(rows):
        if has_counts and not (len(columns) == 2 and columns[1].isdecimal()):
            raise VocabularyError(f"{path}: line {number}: expected a token and its count")
        if not has_counts and len(columns) != 1:
            raise VocabularyError(f"{path}: line {number}: expected one token")
        token = columns[0]
        if token in counts:
            raise VocabularyError(f"{path}: line {number}: {token!r} is there twice")
        counts[token] = int(columns[1]) if has_counts else _FIRST_COUNT - position
    return counts


def file_text(path: str, counts: Counter[str]) -> str:
    """Return the text of a vocabulary file, the most frequent tokens first.

    Args:
        path: the path of the file, for the error.
        counts: how often the data has each token.

    Raises:
        VocabularyError: a token has white space, so the file could not be read again.
    """
    for token in counts:
        if len(token.split()) != 1:
            raise VocabularyError(
                f"{path}: not there yet, and cannot be written: a transform makes tokens with "
                f"spaces in them, such as {token!r}; fix it, or name no vocabulary file"
            )
    return "".join(f"{token}\t{count}\n" for token, count in counts.most_common())
