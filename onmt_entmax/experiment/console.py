"""What a run stands in: the device it was given, and whom it talks to."""

from __future__ import annotations

import sys

import torch

HELP = ("-h", "--help", "-help")


def say(message: str) -> None:
    """Tell the user."""
    print(message, file=sys.stderr, flush=True)


def silent(message: str) -> None:
    """What the other processes of a run say."""


def device_for(gpu: int | None, local_rank: int | None = None) -> torch.device:
    """The device asked for; with several processes, each takes the GPU of its own number.

    A GPU becomes the current one: streams, events and what processes exchange are then on it.
    """
    if gpu is None:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        if not local_rank:
            say(f"note: no CUDA device here, so GPU {gpu} is not used; running on the CPU")
        return torch.device("cpu")
    device = torch.device("cuda", gpu if local_rank is None else local_rank)
    torch.cuda.set_device(device)
    return device
