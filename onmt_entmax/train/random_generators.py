"""The states of the random generators of a run, which its checkpoints keep."""

import torch

from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.saved_state import SavedGenerators


class RandomGenerators:
    """PyTorch's random generators in all processes of a run, which all call each method.

    Args:
        processes: the processes of the run.
        device: the device of this process's model. On a CPU, the state of `cuda` is empty.
    """

    def __init__(self, processes: Processes, device: torch.device) -> None:
        self._processes = processes
        self._device = device

    def state_dict(self) -> SavedGenerators:
        """Return what a checkpoint saves."""
        on_gpu = torch.empty(0)
        if self._device.type == "cuda":
            on_gpu = torch.cuda.get_rng_state(self._device)
        return {
            "cpu": self._processes.gather(torch.random.get_rng_state()),
            "cuda": self._processes.gather(on_gpu),
        }

    def load_state_dict(self, saved: SavedGenerators) -> None:
        """Restore what `state_dict` returned, if the run has as many processes as then.

        Otherwise nothing is restored, on purpose: the processes share the batches out in another
        way, and each keeps the random numbers of its own seed.
        """
        if len(saved["cpu"]) != self._processes.count:
            return
        rank = self._processes.rank
        torch.random.set_rng_state(saved["cpu"][rank])
        if len(saved["cuda"][rank]) and self._device.type == "cuda":
            torch.cuda.set_rng_state(saved["cuda"][rank], self._device)
