"""Name files in a shell command: by their paths, or by a pattern that matches them."""

import glob
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

_FEWEST_MATCHED = 3  # files; fewer are as short without a pattern, and easier to read


def files_for_shell(paths: Sequence[Path], inputs: Sequence[Path] = ()) -> str:
    """Return files as arguments for a shell: a pattern such as `data/*_dev.tsv`, or each path.

    A pattern stands for three or more files if it matches no others in their folder. Files that a
    command has not written yet get the pattern of its inputs:

        data/a_dev.tsv data/b_dev.tsv                     ->  data/a_dev.tsv data/b_dev.tsv
        data/a_dev.tsv data/b_dev.tsv data/c_dev.tsv      ->  data/*_dev.tsv
        out/a_dev.tsv out/b_dev.tsv out/c_dev.tsv,
            with those in data/ as their inputs           ->  out/*_dev.tsv

    Args:
        paths: at least one file. Files in several folders get no pattern.
        inputs: if the files do not exist yet: the files of the same names that they are made from.
    """
    existing = list(inputs or paths)
    ending = _common_ending([path.name for path in existing])
    matched = existing[0].parent.glob(f"*{glob.escape(ending)}")
    if len(paths) >= _FEWEST_MATCHED and ending and sorted(matched) == sorted(existing):
        return f"{shlex.quote(str(paths[0].parent))}/*{shlex.quote(ending)}"
    return shlex.join(map(str, paths))


def _common_ending(names: Sequence[str]) -> str:
    """Return the longest ending that all names have, from a `.`, `_` or `-` on; "" if none.

    For `deu_new_dev.tsv` and `fra_dev.tsv`, this is `_dev.tsv`.
    """
    ending = re.sub(r"^[^._-]*", "", names[0])
    while ending and not all(name.endswith(ending) for name in names):
        ending = re.sub(r"^[._-][^._-]*", "", ending)
    return ending
