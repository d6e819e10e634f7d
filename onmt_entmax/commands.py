"""The commands behind `train.py` and `translate.py`: how they begin, fail and end."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Sequence

from onmt_entmax.errors import UserError


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Run "train" or "translate"; returns the exit status.

    An error of the user's is one line on the standard error and status 2. A run that a signal
    ended has saved its state; its status is 128 plus the number of the signal, as a shell has it.
    """
    warnings.showwarning = _one_line  # type: ignore[assignment]
    try:
        # Imported here, so that an interrupt while loading is as quiet as any other.
        from onmt_entmax import experiment

        # What is loaded by now stays; the garbage collector need not walk over it again.
        gc.freeze()
        command = {"train": experiment.train, "translate": experiment.translate}[name]
        return command(arguments)
    except UserError as error:
        print(f"{name}.py: error: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # a full disk, a file that vanished
        where = f"{error.filename}: " if error.filename else ""
        print(f"{name}.py: error: {where}{error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{name}.py: interrupted", file=sys.stderr)
        return 130
    finally:
        gc.unfreeze()  # else libraries report at the end what was never collected


def _one_line(message: Warning | str, *_: object) -> None:
    print(f"warning: {message}", file=sys.stderr)
