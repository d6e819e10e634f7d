"""Write a folder whole or not at all: after a failure, the old one is still there."""

import os
from collections.abc import Callable
from pathlib import Path

from onmt_entmax.files.paths import naming
from onmt_entmax.files.signals import ended_by_exception
from onmt_entmax.files.temporary import flush, remove, temporary_beside


def write_folder(folder: Path, write: Callable[[Path], object]) -> None:
    """Write a temporary folder, flush it to disk, and rename it to `folder`.

    After an error, `folder` is either unchanged or complete. Replacing it takes two renames, and a
    kill between them leaves the old folder as `.NAME.old`. `train.run_lock` gives a checkpoint its
    name back; any other folder must be renamed by hand.

    If `folder` is a link, the link is replaced. What it leads to stays: a stranger's run folder may
    have a link to any folder of the user.

    Args:
        folder: what to write; it replaces only a folder, or a link to one.
        write: called with the temporary path, to create and fill it.

    Raises:
        FileError: it cannot be written.
    """
    target, temporary = temporary_beside(folder, folder=True)
    old = target.with_name(f".{target.name}.old")  # a folder cannot be renamed over another
    with ended_by_exception(), naming(folder):
        try:
            write(temporary)
            for path in [*temporary.rglob("*"), temporary]:
                flush(path)
            if os.path.lexists(target):
                remove(old)
                os.replace(target, old)
            os.replace(temporary, target)
        except BaseException:  # also an interrupt
            if os.path.lexists(old) and not os.path.lexists(target):
                os.replace(old, target)
            remove(temporary)
            raise
        remove(old)
        flush(target.parent)
