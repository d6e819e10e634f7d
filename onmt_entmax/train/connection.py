"""The connection of the processes that share a training."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from onmt_entmax.errors import first_line
from onmt_entmax.parallel.process_group import in_process_group
from onmt_entmax.parallel.processes import ProcessError, Processes


@contextmanager
def connected(processes: Processes, device: torch.device, folder: Path) -> Iterator[None]:
    """Connect to the other processes, if there are any, and disconnect at the end.

    An update communicates in many places, each of which raises RuntimeError if another process has
    failed. So any RuntimeError inside the block is reported as that of this or another process.

    Args:
        processes: the processes of the run.
        device: the device of this process.
        folder: the run folder, for advice.

    Raises:
        ProcessError: this or another process failed.
    """
    advice = f"continue from the last checkpoint with -train_from {folder}"
    with in_process_group(processes, device, advice):
        try:
            yield
        except RuntimeError as error:
            if processes.count == 1:
                raise
            # torchrun ends the other processes now; let them report their error first.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            raise ProcessError(
                f"this or another process of the run has failed ({first_line(error)}); {advice}"
            ) from None
