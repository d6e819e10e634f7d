"""Time and memory of a linear classifier with `entmax_loss`, against `F.cross_entropy`.

    python -m tools.bench.classifier
    python -m tools.bench.classifier --rows 20000 --alpha 1.5 2 --epochs 1

A linear classifier learns random rows with Adam, in batches of 256, in float32 and one thread. The
losses take turns, an epoch each. Times are processor seconds, so that other load matters little.
Memory is the peak that ten steps add, besides the data.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from onmt_entmax import entmax_loss
from onmt_entmax.cli.ending import argument_parser, run_script
from tools.bench.arguments import ALPHA, COUNT
from tools.bench.cases import Case, Measurement
from tools.bench.memory import peak_memory

BATCH = 256
STEPS_FOR_MEMORY = 10
LEARNING_RATE = 0.01
CROSS_ENTROPY = "cross_entropy"  # name of the reference

Loss = Callable[[Tensor, Tensor], Tensor]  # of scores and classes


class Data(NamedTuple):
    """Rows to classify.

    Attributes:
        features: `(rows, features)`.
        target: `(rows,)`, the class of each row.
        classes: their number.
    """

    features: Tensor
    target: Tensor
    classes: int

    def first(self, rows: int) -> Data:
        """Return the first rows."""
        return Data(self.features[:rows], self.target[:rows], self.classes)


class Epoch(NamedTuple):
    """An epoch of a training.

    Attributes:
        seconds: processor time.
        accuracy: share of the rows whose class had the largest score.
    """

    seconds: float
    accuracy: float


def losses_of(alphas: Sequence[float]) -> dict[str, Loss]:
    """Return the losses by their names in the table, the reference first."""
    losses: dict[str, Loss] = {CROSS_ENTROPY: functional.cross_entropy}
    for alpha in alphas:
        losses[f"entmax_loss, alpha {alpha:g}"] = partial(entmax_loss, alpha=alpha)
    return losses


def epochs(data: Data, loss_of: Loss) -> Iterator[Epoch]:
    """Train a linear classifier for as long as the caller takes epochs; yield each.

    Args:
        data: rows to learn.
        loss_of: returns the loss to minimise.
    """
    torch.manual_seed(1)
    model = torch.nn.Linear(data.features.shape[1], data.classes)
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    while True:
        begin = time.process_time()
        right = 0
        for rows in torch.randperm(len(data.target)).split(BATCH):
            target = data.target[rows]
            optimiser.zero_grad()
            scores = model(data.features[rows])  # (batch, classes)
            loss_of(scores, target).backward()
            optimiser.step()
            right += int((scores.argmax(1) == target).sum())
        yield Epoch(time.process_time() - begin, right / len(data.target))


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--rows", type=COUNT, default=100_000, help="default 100000")
    parser.add_argument("--features", type=COUNT, default=100, help="default 100")
    parser.add_argument("--classes", type=COUNT, default=1000, help="default 1000")
    parser.add_argument("--epochs", type=COUNT, default=3, help="default 3")
    parser.add_argument("--alpha", type=ALPHA, nargs="+", default=[2.0], help="default 2")
    return parser.parse_args(arguments)


def random_data(rows: int, features: int, classes: int) -> Data:
    """Return random features, and classes by a random linear function of them."""
    table = torch.randn(rows, features)
    weights = torch.randn(features, classes)
    target = torch.cat([(part @ weights).argmax(1) for part in table.split(BATCH)])
    return Data(table, target, classes)


def memory_of(losses: Mapping[str, Loss], data: Data) -> dict[str, Measurement]:
    """Return the peak memory of a few steps with each loss."""
    few = data.first(STEPS_FOR_MEMORY * BATCH)

    def train(loss: Loss) -> Epoch:
        return next(epochs(few, loss))

    steps = {name: partial(train, loss) for name, loss in losses.items()}
    return peak_memory(Case({}, steps))


def print_table(measured: Mapping[str, Sequence[Epoch]], memory: Mapping[str, Measurement]) -> None:
    """Print a row for each loss, from its epochs and its peak memory."""
    print("| loss | fastest epoch, processor s | memory, MiB | accuracy in the last epoch, % |")
    print("|---|---|---|---|")
    for name, loss_epochs in measured.items():
        seconds = min(epoch.seconds for epoch in loss_epochs)
        accuracy = 100 * loss_epochs[-1].accuracy
        print(f"| {name} | {seconds:.2f} | {memory[name].values['MiB']:.0f} | {accuracy:.1f} |")


def main(arguments: Sequence[str]) -> int:
    """Print the table; return the exit status."""
    options = parse_arguments(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = random_data(options.rows, options.features, options.classes)
    losses = losses_of(options.alpha)
    # First, since a training leaves memory that could be used again and would not be counted.
    memory = memory_of(losses, data)
    trainings = {name: epochs(data, loss) for name, loss in losses.items()}
    measured: dict[str, list[Epoch]] = {name: [] for name in trainings}
    for _ in range(options.epochs):
        for name, training in trainings.items():
            measured[name].append(next(training))
    print(f"{options.rows:,} rows, {options.features} features, {options.classes:,} classes\n")
    print_table(measured, memory)
    return 0


if __name__ == "__main__":
    run_script(main)
