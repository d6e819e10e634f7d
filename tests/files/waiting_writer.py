"""A process that writes `file` or `folder` in the current folder, and waits in the middle.

    python -m tests.files.waiting_writer file|folder

It prints `ready` before it waits.
"""

import sys
import time
from pathlib import Path

from onmt_entmax.files import replaced_when_done, write_folder


def _wait() -> None:
    print("ready", flush=True)
    time.sleep(60)


def _write_file() -> None:
    with replaced_when_done([Path("file")]) as (file,):
        file.write("half")
        _wait()


def _fill(folder: Path) -> None:
    folder.mkdir()
    _wait()


if __name__ == "__main__":
    (kind,) = sys.argv[1:]
    if kind == "file":
        _write_file()
    else:
        write_folder(Path("folder"), _fill)
