"""The processes that `torchrun` starts, and the device of each.

In training, every process reads the same stream of batches and computes its share of each update.
Updates therefore depend on the number of processes by their dropout masks alone. Only the first
process writes files.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from onmt_entmax.errors import UserError, counted, first_line
from onmt_entmax.parallel.contact import Contact, in_contact

# How long processes wait for the first one, which validates alone; `contact.py` notices lost ones.
_TIMEOUT = timedelta(hours=2)


class ProcessError(UserError):
    """Another process of the run has died, or the processes were started wrongly."""


class Processes:
    """The processes of a run, as seen by one of them.

    If there is one process, methods that communicate return what they were given.

    Attributes:
        rank: number of this process, from 0.
        count: number of processes.
        local_rank: number of this process on its machine, which is also its GPU.
    """

    def __init__(self) -> None:
        self.rank = int(os.environ.get("RANK", "0"))
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        self.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        self._contact: Contact | None = None

    def device(self, gpu: int | None, option: str) -> torch.device:
        """Return the device of this process; a GPU also becomes PyTorch's current device.

        Without any GPU on the machine, the process runs on the CPU, and a warning says so.

        Args:
            gpu: number of the GPU; None for the CPU. Of several processes, each takes the GPU of
                its number on the machine instead.
            option: the option that names it.

        Raises:
            ProcessError: there are GPUs, but none of this number.
        """
        if gpu is None:
            return torch.device("cpu")
        if not torch.cuda.is_available():
            if self.local_rank == 0:  # once on each machine
                _print(f"warning: {option} {gpu}: no GPU here; running on the CPU")
            return torch.device("cpu")
        number = gpu if self.count == 1 else self.local_rank
        gpus = torch.cuda.device_count()
        if number >= gpus:
            raise ProcessError(
                f"{option}: there is no GPU {number}; this machine has {counted(gpus, 'GPU')}, "
                "counted from 0"
            )
        device = torch.device("cuda", number)
        torch.cuda.set_device(device)
        return device

    @property
    def writes(self) -> bool:
        """Whether this process writes files and messages."""
        return self.rank == 0

    def say(self, message: str) -> None:
        """Print a message to stderr, unless another process does."""
        if self.writes:
            _print(message)

    @contextmanager
    def connected(self, device: torch.device, advice: str) -> Iterator[None]:
        """Join the process group, by nccl on GPUs and gloo on CPUs, and leave it at the end.

        Communication that fails raises RuntimeError, which each caller reads in its own way.

        Args:
            device: device of this process.
            advice: how to go on, for the message with which this process ends if another one is
                not heard of any more.

        Raises:
            ProcessError: the environment does not say where the other processes are, or one of them
                cannot be reached.
        """
        try:
            self._join(device, advice)
            yield
        finally:
            self._leave()

    def _join(self, device: torch.device, advice: str) -> None:
        """Join the process group, and begin to give signs of life.

        Raises:
            ProcessError: the environment does not say where the other processes are, or one of them
                cannot be reached.
        """
        if self.count == 1 or dist.is_initialized():
            return
        # Optimisers import this. Its default arguments would keep the group beyond its end.
        import_module("torch.distributed.nn.functional")
        kind = "nccl" if device.type == "cuda" else "gloo"
        try:
            dist.init_process_group(kind, timeout=_TIMEOUT)
            self._contact = in_contact(self.rank, self.count, advice)
        except (ValueError, RuntimeError) as error:
            raise ProcessError(
                f"WORLD_SIZE says that there are {self.count} processes, but they cannot meet "
                f"({first_line(error)}); start them with torchrun, or unset it"
            ) from None

    def _leave(self) -> None:
        """Leave the process group, and wait for its threads to end.

        Python must not end before them: a thread that then frees a tensor aborts the process. So
        nothing may hold the group, such as a DistributedDataParallel.
        """
        if self._contact is not None:
            self._contact.leave()
            self._contact = None
        if self.count > 1 and dist.is_initialized():
            dist.destroy_process_group()

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
        """Return the JSON value of the first process; those of the others are ignored.

        It is sent as JSON, because PyTorch's broadcast of objects unpickles data from the network:
        first its size, int64 of shape (1,), then its bytes, uint8.
        """
        if self.count == 1:
            return value
        where = self._where()
        text = bytearray(json.dumps(value).encode())
        content = torch.frombuffer(text, dtype=torch.uint8).to(where)
        size = torch.tensor([len(content)], device=where)
        dist.broadcast(size, src=0)
        if self.rank != 0:  # room for what comes
            content = content.new_empty(int(size))
        dist.broadcast(content, src=0)
        return json.loads(bytes(content.tolist()))

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Return the tensors of all processes, in order of rank; all have the same shape."""
        if self.count == 1:
            return [tensor]
        where = self._where()
        gathered = [torch.empty_like(tensor, device=where) for _ in range(self.count)]
        dist.all_gather(gathered, tensor.to(where))
        return [of_process.cpu() for of_process in gathered]

    def _where(self) -> str:
        """Return the type of device whose tensors the processes can exchange."""
        return "cuda" if dist.get_backend() == "nccl" else "cpu"


def _print(message: str) -> None:
    """Print a message to stderr at once."""
    print(message, file=sys.stderr, flush=True)
