"""The texts that `bleu` reads, and their limits."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from onmt_entmax.cli.messages import warn
from onmt_entmax.data.parallel import read_lines
from onmt_entmax.errors import UserError, counted

SLOW = 500  # words of a line for which TER takes minutes
MOST = 5_000  # words of a line for which TER takes gigabytes


def read_references(paths: Sequence[Path]) -> list[list[str]]:
    """Return the lines of references, without trailing white space.

    Args:
        paths: at least one; all files have as many lines as the first.

    Raises:
        UserError: one cannot be read, is empty or a report, or has another number of lines.
    """
    texts: list[list[str]] = []
    for path in paths:
        text = _read_lines(path)
        sentences = len(texts[0]) if texts else len(text)
        _check_text(path, text, sentences, nbest=1)
        texts.append(text)
    return texts


def read_systems(paths: Sequence[Path], sentences: int, nbest: int) -> list[list[str]]:
    """Return the lines of the outputs of systems, without trailing white space.

    Args:
        paths: of the files.
        sentences: lines of the reference.
        nbest: lines for each of them.

    Raises:
        UserError: one cannot be read, is empty or a report, or has another number of lines.
    """
    texts = []
    for path in paths:
        text = _read_lines(path)
        _check_text(path, text, sentences, nbest)
        texts.append(text)
    return texts


def _read_lines(path: Path) -> list[str]:
    """Return the lines of a file, without trailing white space."""
    return [line.rstrip() for line in read_lines(path)]


def _check_text(path: Path, text: Sequence[str], sentences: int, nbest: int) -> None:
    """Check that a file is text, with `nbest` lines for each sentence.

    Raises:
        UserError: it is empty or a report, or has another number of lines.
    """
    if not text:
        raise UserError(f"{path}: the file is empty")
    if text[0].startswith('{"') and '"source": ' in text[0]:
        raise UserError(
            f"{path}: an -exactness_report, not text; name the file that `translate` wrote to "
            "-output (only --tune and --report read a report)"
        )
    if len(text) == sentences * nbest:
        return
    if nbest > 1:
        why = f"{nbest} for each of {counted(sentences, 'line')} of the reference"
    elif len(text) % sentences == 0:
        why = f"as in the reference (n-best lists? --nbest {len(text) // sentences})"
    else:
        why = "as in the reference"
    raise UserError(
        f"{path}: has {counted(len(text), 'line')}, expected {sentences * nbest}, {why}"
    )


def check_lengths(texts: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Check that TER ends: its time and memory grow with the square of a line's words.

    Args:
        texts: names and lines of systems and references.

    Raises:
        UserError: a line is too long.
    """
    for name, lines in texts:
        counts = [len(line.split()) for line in lines]
        longest = max(counts)
        where = f"{name}: line {1 + counts.index(longest)} has {counted(longest, 'word')}"
        advice = "--metrics bleu chrf leaves TER out"
        if longest > MOST:
            raise UserError(f"{where}, and TER takes at most {MOST:,}; {advice}")
        if longest > SLOW:
            warn(f"{where}, for which TER takes minutes; {advice}")
