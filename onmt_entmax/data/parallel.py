"""Parallel text for translation: read its files, and hold out a development set."""

import gzip
import io
import lzma
import random
import zlib
from collections.abc import Callable
from pathlib import Path

from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import check_aligned, text_lines

Pairs = list[tuple[str, str]]
"""Lines of source and target"""

# How to decompress a file, by its ending; a file with another ending is not compressed.
_DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".xz": lzma.decompress,
    ".gz": gzip.decompress,
}


def read_maybe_compressed(path: Path) -> list[str]:
    """Return the lines of a UTF-8 text file, which may be compressed.

    Args:
        path: the path of the file. If there is no such file, .xz or .gz is added to it.

    Raises:
        UserError: there is no such file, or it cannot be read.
    """
    candidates = [path, *(Path(f"{path}{ending}") for ending in _DECOMPRESS)]
    file = next((file for file in candidates if file.is_file()), None)
    if file is None:
        raise UserError(f"{path}: no such file, nor with .xz or .gz")
    try:
        content = file.read_bytes()
        if file.suffix in _DECOMPRESS:
            content = _DECOMPRESS[file.suffix](content)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise UserError(f"{file}: cannot read: {error}") from None
    return list(text_lines(io.BytesIO(content), str(file)))


def read_pairs(source: Path, target: Path) -> Pairs:
    """Return the pairs of lines of two files.

    Raises:
        UserError: a file cannot be read, or they differ in length.
    """
    sides = read_maybe_compressed(source), read_maybe_compressed(target)
    check_aligned({source: len(sides[0]), target: len(sides[1])})
    return list(zip(*sides, strict=True))


def hold_out(pairs: Pairs, size: int, seed: int) -> tuple[Pairs, Pairs]:
    """Return the training pairs, and a random development set.

    The training part keeps no sentence of the development set, on either side.

    Args:
        pairs: the pairs to divide; those with an empty side are never held out.
        size: the size of the development set, in distinct pairs.
        seed: the seed of the choice.

    Raises:
        UserError: there are too few pairs.
    """
    distinct = sorted({pair for pair in pairs if all(pair)})
    if size >= len(distinct):
        raise UserError(
            f"cannot hold out {size:,} of {counted(len(distinct), 'distinct pair')}; "
            "lower --val_size, or name dev files with --val"
        )
    held_out = random.Random(seed).sample(distinct, size)
    sources = {source for source, _ in held_out}
    targets = {target for _, target in held_out}
    training = [
        (source, target)
        for source, target in pairs
        if source not in sources and target not in targets
    ]
    return training, held_out
