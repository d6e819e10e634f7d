"""The two files of pairs: `PATH.src` and `PATH.tgt`, a line of tokens for each pair."""

from collections.abc import Mapping, Sequence
from pathlib import Path

SIDES = ("src", "tgt")


def pair_texts(pairs: Mapping[Path, Sequence[tuple[str, str]]]) -> dict[Path, str]:
    """Return the contents of `PATH.src` and `PATH.tgt` for the pairs of each path."""
    contents: dict[Path, str] = {}
    for path, path_pairs in pairs.items():
        sources = "".join(f"{source}\n" for source, _ in path_pairs)
        targets = "".join(f"{target}\n" for _, target in path_pairs)
        for side, text in zip(SIDES, (sources, targets), strict=True):
            contents[path.with_name(f"{path.name}.{side}")] = text
    return contents
