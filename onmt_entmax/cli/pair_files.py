"""Write pairs as two files of lines: the sources in `PATH.src`, and the targets in `PATH.tgt`."""

from collections.abc import Mapping, Sequence
from pathlib import Path


def pair_paths(path: Path) -> tuple[Path, Path]:
    """Return `PATH.src` and `PATH.tgt`."""
    return Path(f"{path}.src"), Path(f"{path}.tgt")


def pair_texts(pairs: Mapping[Path, Sequence[tuple[str, str]]]) -> dict[Path, str]:
    """Return the contents of the files of pairs, by their paths.

    Args:
        pairs: the pairs of each `PATH`: a source line and a target line, without line ends.
    """
    contents: dict[Path, str] = {}
    for path, path_pairs in pairs.items():
        sources, targets = pair_paths(path)
        contents[sources] = "".join(f"{source}\n" for source, _ in path_pairs)
        contents[targets] = "".join(f"{target}\n" for _, target in path_pairs)
    return contents
