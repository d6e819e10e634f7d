"""What a training run reads before it writes anything: checkpoint, data, network."""

from pathlib import Path
from typing import NamedTuple

import torch

from onmt_entmax.config import TrainingSetup
from onmt_entmax.data.training import TrainingData
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.evaluation import make_evaluate
from onmt_entmax.train.next_command import next_command
from onmt_entmax.train.resumed import Resumed
from onmt_entmax.train.resuming import resume
from onmt_entmax.train.run_data import read_data
from onmt_entmax.train.run_network import starting_network
from onmt_entmax.train.validation import Evaluate

# Between the seeds of two processes: far, since the seeds that people choose are often neighbours.
_SEEDS_APART = 1_000_003


class RunInputs(NamedTuple):
    """What a run reads before it writes anything."""

    resumed: Resumed | None
    """The checkpoint to continue from; None for a new run"""
    corpora: TrainingData
    network: SparseNMTModel
    evaluate: Evaluate | None
    """Measures the network on the development set; None without one"""
    next_command: str
    """How to use the model, with an example of the data"""


def read_inputs(setup: TrainingSetup, processes: Processes, device: torch.device) -> RunInputs:
    """Read checkpoint, data and network, each of which needs those before it.

    Seeds torch's random generators: weights are drawn from the same seed in all processes, dropout
    masks are not.

    Args:
        setup: the configurations of the run.
        processes: the processes of the run.
        device: the device to train on.

    Raises:
        UserError: one of them cannot be read, or they do not fit together.
    """
    tell = processes.say
    resumed = resume(setup, tell)
    corpora = read_data(setup, resumed, tell)
    network = starting_network(setup, corpora, resumed, device, tell)
    if processes.rank > 0:
        torch.manual_seed(setup.run.seed + _SEEDS_APART * processes.rank)
    evaluate = None
    if setup.data.valid is not None:
        evaluate = make_evaluate(corpora, setup.validation, tell)
    # When training ends, the files of the data may be gone.
    command = next_command(Path(setup.run.save_model), corpora)
    return RunInputs(resumed, corpora, network, evaluate, command)
