"""The two files of pairs: `PATH.src` and `PATH.tgt`, a line of tokens for each pair."""

from collections.abc import Mapping, Sequence
from pathlib import Path

SIDES = ("src", "tgt")


def pair_texts(pairs: Mapping[Path, Sequence[tuple[str, str]]]) -> dict[Path, str]:
    """Return the contents of `PATH.src` and `PATH.tgt` for the pairs of each path."""
    return {
        path.with_name(f"{path.name}.{side}"): "".join(f"{pair[number]}\n" for pair in of_path)
        for path, of_path in pairs.items()
        for number, side in enumerate(SIDES)
    }
