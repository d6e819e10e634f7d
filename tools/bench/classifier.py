"""Time and memory of a sparsemax regression, against `F.cross_entropy` in the same loop.

    python -m tools.bench.classifier
    python -m tools.bench.classifier --rows 20000 --alpha 1.5 2 --epochs 1

Adam, batches of 256 rows, float32, one thread. The losses take turns, an epoch each; processor
seconds, so that other load matters little. Memory is the peak that ten steps add, besides the data.
"""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from onmt_entmax import entmax_loss
from onmt_entmax.cli.ending import argument_parser, run_script
from tools.bench.cases import Case, Measured
from tools.bench.memory import peak_memory
from tools.bench.runner import ALPHA, COUNT

BATCH = 256
REFERENCE = "cross_entropy"


def epochs(table: Tensor, target: Tensor, classes: int, name: str) -> Iterator[tuple[float, float]]:
    """Train a linear classifier without end.

    Args:
        table: `(rows, features)`.
        target: the class of each row.
        classes: their number.
        name: of the loss: an alpha, or the reference.

    Yields:
        Processor seconds of an epoch, and the accuracy in it.
    """
    torch.manual_seed(1)
    model = torch.nn.Linear(table.shape[1], classes)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    while True:
        begin = time.process_time()
        right = 0
        for index in torch.randperm(len(table)).split(BATCH):
            optimiser.zero_grad()
            scores = model(table[index])
            if name == REFERENCE:
                loss = functional.cross_entropy(scores, target[index])
            else:
                loss = entmax_loss(scores, target[index], float(name))
            loss.backward()
            optimiser.step()
            right += int((scores.argmax(1) == target[index]).sum())
        yield time.process_time() - begin, right / len(table)


def main(arguments: Sequence[str]) -> int:
    """Print the table; return the exit status."""
    parser = argument_parser(__doc__)
    parser.add_argument("--rows", type=COUNT, default=100_000)
    parser.add_argument("--features", type=COUNT, default=100)
    parser.add_argument("--classes", type=COUNT, default=1000)
    parser.add_argument("--epochs", type=COUNT, default=3)
    parser.add_argument("--alpha", type=ALPHA, nargs="+", default=[2.0])
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    table, target = data_of(options)
    names = [REFERENCE, *map(str, options.alpha)]
    # Before a training leaves memory that can be used again.
    few, their = table[: 10 * BATCH], target[: 10 * BATCH]
    steps = {name: epochs(few, their, options.classes, name).__next__ for name in names}
    memory = peak_memory(Case({}, steps), options)
    trainings = {name: epochs(table, target, options.classes, name) for name in names}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for _ in range(options.epochs):
        for name, training in trainings.items():
            taken[name].append(next(training))
    print_table(options, taken, memory)
    return 0


def data_of(options: argparse.Namespace) -> tuple[Tensor, Tensor]:
    """Return random features `(rows, features)`, and classes by a random linear function."""
    table = torch.randn(options.rows, options.features)
    true = torch.randn(options.features, options.classes)
    return table, torch.cat([(part @ true).argmax(1) for part in table.split(BATCH)])


def print_table(
    options: argparse.Namespace,
    taken: Mapping[str, Sequence[tuple[float, float]]],
    memory: Mapping[str, Measured],
) -> None:
    """Print a row for each loss.

    Args:
        options: of the command line.
        taken: by loss, seconds and accuracy of each epoch.
        memory: by loss, its peak.
    """
    print(f"{options.rows:,} rows, {options.features} features, {options.classes:,} classes\n")
    print("| loss | fastest epoch, processor s | memory, MiB | accuracy in the last epoch, % |")
    print("|---|---|---|---|")
    for name, its_epochs in taken.items():
        label = name if name == REFERENCE else f"entmax_loss, alpha {float(name):g}"
        seconds = min(seconds for seconds, _ in its_epochs)
        _, accuracy = its_epochs[-1]
        megabytes = memory[name].values["MB"]
        print(f"| {label} | {seconds:.2f} | {megabytes:.0f} | {100 * accuracy:.1f} |")


if __name__ == "__main__":
    run_script(main)
