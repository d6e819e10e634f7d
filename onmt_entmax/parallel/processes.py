"""The processes that `torchrun` starts: their ranks, and what they exchange.

In training, every process reads the same stream of batches and computes its share of each update.
So the number of processes changes nothing but the dropout masks. Only the first process writes
files.

`process_group.py` connects the processes, and `devices.py` chooses the device of each.
"""

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from onmt_entmax.errors import UserError, printable
from onmt_entmax.rules import shown


class ProcessError(UserError):
    """Another process of the run has died, or the processes were started wrongly."""


class Processes:
    """The processes of a run, as seen by one of them.

    `sum`, `sum_gradients`, `from_first` and `gather` communicate: every process calls them, in the
    same order, inside `in_process_group`. If there is one process, they return what they were
    given.

    Attributes:
        rank: number of this process, from 0.
        count: number of processes.
        local_rank: number of this process on its machine, which is also its GPU.

    Raises:
        ProcessError: if the environment, which `torchrun` sets, has no such numbers.
    """

    def __init__(self) -> None:
        self.rank = _number_in_environment("RANK", 0)
        self.count = _number_in_environment("WORLD_SIZE", 1)
        self.local_rank = _number_in_environment("LOCAL_RANK", 0)
        if self.rank >= self.count:  # no process would be the first, which alone writes
            raise ProcessError(
                f"RANK: is {self.rank}, but WORLD_SIZE is {self.count}, and ranks count from 0; "
                "start processes with torchrun, or unset both"
            )

    @property
    def writes(self) -> bool:
        """Whether this process writes files and messages."""
        return self.rank == 0

    def say(self, message: str) -> None:
        """Print a message in one line of stderr, in the first process alone.

        Control characters are escaped, since names in a message may come from a stranger.
        """
        if self.writes:
            print(printable(message), file=sys.stderr, flush=True)

    def sum(self, values: Tensor) -> Tensor:
        """Add the values of all processes to `values`, of any shape, in place; return them."""
        if self.count > 1:
            dist.all_reduce(values)
        return values

    def sum_gradients(self, parameters: Sequence[Tensor]) -> None:
        """Replace the gradients of `parameters` by their sums over all processes.

        Every process has gradients of the same parameters.
        """
        gradients = [p.grad for p in parameters if p.grad is not None]
        if self.count == 1 or not gradients:
            return
        # One message, since each costs time whatever its length.
        message = self.sum(torch.cat([gradient.flatten() for gradient in gradients]))
        parts = message.split([gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))

    def from_first(self, value: Any) -> Any:
        """Return the value of the first process; those of the others are ignored.

        Args:
            value: what JSON can hold. PyTorch's own broadcast of objects would unpickle data from
                the network.
        """
        if self.count == 1:
            return value
        where = self._exchange_device()
        text = bytearray(json.dumps(value).encode())
        content = torch.frombuffer(text, dtype=torch.uint8).to(where)
        size = torch.tensor([len(content)], device=where)  # in bytes
        dist.broadcast(size, src=0)
        if self.rank != 0:
            content = content.new_empty(int(size))  # which the next broadcast fills
        dist.broadcast(content, src=0)
        return json.loads(bytes(content.tolist()))

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Return the tensors of all processes, in order of rank.

        Args:
            tensor: this process's tensor, on the CPU; all have the same shape and type.
        """
        if self.count == 1:
            return [tensor]
        where = self._exchange_device()
        gathered = [torch.empty_like(tensor, device=where) for _ in range(self.count)]
        dist.all_gather(gathered, tensor.to(where))
        return [of_process.cpu() for of_process in gathered]

    def _exchange_device(self) -> str:
        """Return the type of device whose tensors the group exchanges; nccl knows only GPUs."""
        return "cuda" if dist.get_backend() == "nccl" else "cpu"


def _number_in_environment(name: str, default: int) -> int:
    """Return the number in an environment variable, at least 0; the default if it is not set.

    Raises:
        ProcessError: it is no such number.
    """
    text = os.environ.get(name, str(default))
    if not (text.isascii() and text.isdecimal()):
        raise ProcessError(
            f"{name}: must be a whole number, not {shown(text)}; start processes with torchrun, "
            "or unset it"
        )
    return int(text)
