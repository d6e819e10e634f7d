"""Many files as words of a shell command: a pattern where there is one that names them alone."""

import glob
import re
import shlex
from collections.abc import Sequence
from pathlib import Path


def files_for_shell(paths: Sequence[Path], beside: Sequence[Path] = ()) -> str:
    """Return files as a shell takes them: `data/*_dev.tsv`, or each by its name.

    A pattern stands for three files or more of one folder, if it names no others there. Files that
    are not there yet have the pattern of those that they are made of:

        data/a_dev.tsv data/b_dev.tsv data/c_dev.tsv           ->  data/*_dev.tsv
        out/a_dev.tsv out/b_dev.tsv out/c_dev.tsv, of these    ->  out/*_dev.tsv
        data/a_dev.tsv data/b_dev.tsv                          ->  data/a_dev.tsv data/b_dev.tsv

    Args:
        paths: paths of the files.
        beside: files of the same names that are there already, if these are not.
    """
    present = list(beside or paths)
    ending = _common_ending([path.name for path in present])
    matched = present[0].parent.glob(f"*{glob.escape(ending)}")
    if len(paths) > 2 and ending and sorted(matched) == sorted(present):
        return f"{shlex.quote(str(paths[0].parent))}/*{shlex.quote(ending)}"
    return shlex.join(map(str, paths))


def _common_ending(names: Sequence[str]) -> str:
    """Return the longest ending of all names that begins with `.`, `_` or `-`; empty if none.

    Of `deu_new_dev.tsv` and `fra_dev.tsv`, that is `_dev.tsv`.
    """
    ending = re.sub(r"^[^._-]*", "", names[0])
    while ending and not all(name.endswith(ending) for name in names):
        ending = re.sub(r"^[._-][^._-]*", "", ending)
    return ending
