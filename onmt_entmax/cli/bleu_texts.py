"""Read the texts of `bleu`, and check their numbers of lines and the lengths of lines."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from onmt_entmax.cli.messages import warn
from onmt_entmax.data.parallel import read_maybe_compressed
from onmt_entmax.errors import UserError, counted

_SLOW_WORDS = 500  # TER takes minutes for a longer line
_MOST_WORDS = 5_000  # TER takes gigabytes for a longer line


def read_references(paths: Sequence[Path]) -> list[list[str]]:
    """Return the lines of references, without trailing white space.

    Args:
        paths: at least one; all files have as many lines as the first.

    Raises:
        UserError: one cannot be read, is empty or a report, or has another number of lines.
    """
    texts: list[list[str]] = []
    for path in paths:
        text = _read_text(path)
        if texts and len(text) != len(texts[0]):
            raise _wrong_length(path, text, len(texts[0]), f"as in the reference {paths[0]}")
        texts.append(text)
    return texts


def read_systems(paths: Sequence[Path], sentences: int, nbest: int) -> list[list[str]]:
    """Return the lines of the outputs of systems, without trailing white space.

    Args:
        paths: paths of the files.
        sentences: number of lines of the reference.
        nbest: number of lines of a system for each sentence.

    Raises:
        UserError: one cannot be read, is empty or a report, or has another number of lines.
    """
    texts: list[list[str]] = []
    for path in paths:
        text = _read_text(path)
        if len(text) != sentences * nbest:
            expectation = _expectation(len(text), sentences, nbest)
            raise _wrong_length(path, text, sentences * nbest, expectation)
        texts.append(text)
    return texts


def _read_text(path: Path) -> list[str]:
    """Return the lines of a text, without trailing white space.

    Raises:
        UserError: the file cannot be read, is empty or a report.
    """
    text = [line.rstrip() for line in read_maybe_compressed(path)]
    if not text:
        raise UserError(f"{path}: the file is empty")
    if text[0].startswith('{"') and '"source": ' in text[0]:
        raise UserError(
            f"{path}: an -exactness_report, not text; name the file that `translate` wrote to "
            "-output (only --tune and --report read a report)"
        )
    return text


def _expectation(lines: int, sentences: int, nbest: int) -> str:
    """Return the reason for the expected number of lines, as the end of an error.

    Without --nbest, a multiple of the number of sentences hints at n-best lists.

    Args:
        lines: number of lines of the system.
        sentences: number of lines of the reference.
        nbest: number of lines of the system for each sentence.
    """
    if nbest > 1:
        return f"{nbest} for each of {counted(sentences, 'line')} of the reference"
    if lines % sentences == 0:
        return f"as in the reference (n-best lists? --nbest {lines // sentences})"
    return "as in the reference"


def _wrong_length(path: Path, text: Sequence[str], expected: int, why: str) -> UserError:
    """Return the error about a file with another number of lines than expected, and why."""
    return UserError(f"{path}: has {counted(len(text), 'line')}, expected {expected}, {why}")


def check_lengths(texts: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Refuse lines that are too long for TER, whose time and memory grow with the square of a line.

    Args:
        texts: names and lines of systems and references.

    Raises:
        UserError: a line is too long.
    """
    for name, lines in texts:
        counts = [len(line.split()) for line in lines]
        longest = max(counts)
        longest_line = f"{name}: line {1 + counts.index(longest)} has {counted(longest, 'word')}"
        advice = "--metrics bleu chrf leaves TER out"
        if longest > _MOST_WORDS:
            raise UserError(f"{longest_line}, and TER takes at most {_MOST_WORDS:,}; {advice}")
        if longest > _SLOW_WORDS:
            warn(f"{longest_line}, for which TER takes minutes; {advice}")
