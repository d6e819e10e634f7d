"""The device of a process: the GPU that an option names, the one of its own number, or the CPU."""

import sys

import torch

from onmt_entmax.errors import counted
from onmt_entmax.parallel.processes import ProcessError, Processes


def choose_device(processes: Processes, gpu: int | None, option: str) -> torch.device:
    """Return the device of this process; a GPU also becomes PyTorch's current device.

    Without any GPU on the machine, the process runs on the CPU, and a warning says so.

    Args:
        processes: the processes of the run. If there are several, each takes the GPU whose number
            is its own on the machine, and `gpu` only says that GPUs are used.
        gpu: number of the GPU for a single process; None: all processes run on the CPU.
        option: name of the option that gave `gpu`, for messages.

    Raises:
        ProcessError: if there are GPUs, but none of this number.
    """
    if gpu is None:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        if processes.local_rank == 0:  # once on each machine
            warning = f"warning: {option} {gpu}: no GPU here; running on the CPU"
            print(warning, file=sys.stderr, flush=True)
        return torch.device("cpu")
    number = gpu if processes.count == 1 else processes.local_rank
    gpus = torch.cuda.device_count()
    if number >= gpus:
        raise ProcessError(
            f"{option}: there is no GPU {number}; this machine has {counted(gpus, 'GPU')}, "
            "counted from 0"
        )
    device = torch.device("cuda", number)
    torch.cuda.set_device(device)
    return device
