"""The processes that `torchrun` starts, seen from one of them.

In training every process reads the same stream of batches and takes its share of each update, so
that an update is the same whatever the number of processes, and so is the place in the data. Only
the first process writes.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from onmt_entmax.errors import UserError

# A process may wait this long for the first one, which validates alone.
_PATIENCE = timedelta(hours=2)


class ProcessError(UserError):
    """Another process of the run has died, or they were started wrongly."""


class Processes:
    """The processes of a run, seen from one of them; alone, everything is a no-operation.

    Attributes:
        rank: number of this process, from 0.
        count: how many there are.
        local_rank: its number on its machine, which is the GPU it takes.
    """

    def __init__(self) -> None:
        self.rank = int(os.environ.get("RANK", "0"))
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        self.local_rank = int(os.environ.get("LOCAL_RANK", "0"))

    @property
    def writes(self) -> bool:
        """Whether this process is the one that writes files and speaks."""
        return self.rank == 0

    def connect(self, device: torch.device) -> None:
        """Meet the other processes: by nccl on GPUs, by gloo on CPUs.

        Raises:
            ProcessError: it is not said where they are.
        """
        if self.count > 1 and not dist.is_initialized():
            kind = "nccl" if device.type == "cuda" else "gloo"
            try:
                dist.init_process_group(kind, timeout=_PATIENCE)
            except ValueError as error:
                raise ProcessError(
                    f"WORLD_SIZE says that there are {self.count} processes, but they cannot meet "
                    f"({str(error).splitlines()[0]}); start them with torchrun, or unset it"
                ) from None

    def disconnect(self) -> None:
        """Leave the group."""
        if self.count > 1 and dist.is_initialized():
            dist.destroy_process_group()

    def share(self, module: nn.Module, device: torch.device) -> nn.Module:
        """`module`, whose gradients are then averaged over the processes."""
        if self.count == 1:
            return module
        where = [device.index] if device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(
            module, device_ids=where, gradient_as_bucket_view=True
        )

    def sum(self, values: Tensor) -> Tensor:
        """The sum of `values`, any shape, over all processes."""
        if self.count > 1:
            dist.all_reduce(values)
        return values

    def from_first(self, value: Any) -> Any:
        """What the first process gave; numbers, strings, lists and dicts of them."""
        if self.count == 1:
            return value
        where = self._where()
        # As text: PyTorch's own way for objects unpickles what comes over the network.
        content = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
        size = torch.tensor([len(content)], device=where)
        dist.broadcast(size, src=0)
        content = (
            content.to(where) if self.rank == 0 else content.new_empty(int(size), device=where)
        )
        dist.broadcast(content, src=0)
        return json.loads(bytes(content.tolist()))

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """The tensor of every process, in order of rank; they have the same shape."""
        if self.count == 1:
            return [tensor]
        where = self._where()
        gathered = [torch.empty_like(tensor, device=where) for _ in range(self.count)]
        dist.all_gather(gathered, tensor.to(where))
        return [each.cpu() for each in gathered]

    def _where(self) -> str:
        """The kind of device whose tensors the processes exchange."""
        return "cuda" if dist.get_backend() == "nccl" else "cpu"


# What a run stands in: the device it was given, and whom it talks to.

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
