"""The process group, through which the processes of a run communicate while they are connected."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module

import torch
import torch.distributed as dist

from onmt_entmax.errors import first_line
from onmt_entmax.parallel.contact import Contact, in_contact
from onmt_entmax.parallel.processes import ProcessError, Processes

# How long processes wait for the first one, which validates alone; `contact.py` notices lost ones.
_TIMEOUT = timedelta(hours=2)


@contextmanager
def in_process_group(processes: Processes, device: torch.device, advice: str) -> Iterator[None]:
    """Join the process group, by nccl on GPUs and gloo on CPUs, and leave it at the end.

    A single process joins nothing. If the caller has joined a group, that one is used and not left.
    Failed communication raises RuntimeError, which each caller reports in its own way.

    Args:
        processes: the processes of the run.
        device: the device of this process.
        advice: how the user should go on; for the message with which this process ends if another
            one is lost.

    Raises:
        ProcessError: if the environment does not say where the other processes are, or one of them
            cannot be reached.
    """
    if processes.count == 1 or dist.is_initialized():
        yield
        return
    contact: Contact | None = None
    try:
        contact = _join(processes, device, advice)
        yield
    finally:
        if contact is not None:
            contact.leave()
        # This waits for the group's threads. Python must not end before them: a thread that then
        # frees a tensor aborts the process. So nothing may hold the group, such as a
        # DistributedDataParallel.
        if dist.is_initialized():
            dist.destroy_process_group()


def _join(processes: Processes, device: torch.device, advice: str) -> Contact:
    """Join the process group, and begin to send heartbeats; see `in_process_group`."""
    # Optimisers import this module. Its default arguments would keep a group that exists already
    # beyond its end.
    import_module("torch.distributed.nn.functional")
    backend = "nccl" if device.type == "cuda" else "gloo"
    try:
        dist.init_process_group(backend, timeout=_TIMEOUT)
        return in_contact(processes.rank, processes.count, advice)
    except (ValueError, RuntimeError) as error:
        raise ProcessError(
            f"WORLD_SIZE says that there are {processes.count} processes, but they cannot meet "
            f"({first_line(error)}); start them with torchrun, or unset it"
        ) from None
