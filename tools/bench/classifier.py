"""Time and memory of a sparsemax regression, against `F.cross_entropy` in the same loop.

    python -m tools.bench.classifier
    python -m tools.bench.classifier --rows 20000 --alpha 1.5 2 --epochs 1

Adam, batches of 256 rows, float32, one thread. The losses take turns, an epoch each; processor
seconds, so that other load matters little. Memory is what a training adds to the peak of a process
of its own, which holds the data.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Iterator

import torch
from torch.nn import functional

from onmt_entmax import entmax_loss

BATCH = 256
REFERENCE = "cross_entropy"


def epochs(options: argparse.Namespace, name: str) -> Iterator[tuple[float, float]]:
    """Train a linear classifier of random data without end.

    Args:
        options: sizes.
        name: of the loss: an alpha, or the reference.

    Yields:
        Processor seconds of an epoch, and the accuracy in it.
    """
    torch.manual_seed(1)
    table = torch.randn(options.rows, options.features)
    true = torch.randn(options.features, options.classes)
    target = torch.cat([(part @ true).argmax(1) for part in table.split(BATCH)])
    model = torch.nn.Linear(options.features, options.classes)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    while True:
        begin, right = time.process_time(), 0
        for index in torch.randperm(options.rows).split(BATCH):
            optimiser.zero_grad()
            scores = model(table[index])
            if name == REFERENCE:
                loss = functional.cross_entropy(scores, target[index])
            else:
                loss = entmax_loss(scores, target[index], float(name))
            loss.backward()
            optimiser.step()
            right += int((scores.argmax(1) == target[index]).sum())
        yield time.process_time() - begin, right / options.rows


def peak() -> float:
    """Return the largest memory of this process so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def memory(options: argparse.Namespace, name: str) -> float:
    """Return the MiB that ten steps add to the peak of a new process."""
    sizes = [f"--{key}={getattr(options, key)}" for key in ("rows", "features", "classes")]
    command = [sys.executable, "-m", "tools.bench.classifier", *sizes, "--memory-of", name]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--alpha", type=float, nargs="+", default=[2.0])
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.memory_of:
        data = torch.randn(options.rows, options.features)  # the process holds it twice for a while
        before = peak()
        options.rows = min(options.rows, 10 * BATCH)
        next(epochs(options, options.memory_of))
        print(peak() - before if len(data) else 0)
        return
    names = [REFERENCE, *map(str, options.alpha)]
    trainings = {name: epochs(options, name) for name in names}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for _ in range(options.epochs):
        for name, training in trainings.items():
            taken[name].append(next(training))
    print(f"{options.rows:,} rows, {options.features} features, {options.classes:,} classes\n")
    print("| loss | fastest epoch, processor s | memory, MiB | accuracy in the last epoch, % |")
    print("|---|---|---|---|")
    for name in names:
        label = name if name == REFERENCE else f"entmax_loss, alpha {float(name):g}"
        seconds = min(seconds for seconds, _ in taken[name])
        accuracy = 100 * taken[name][-1][1]
        print(f"| {label} | {seconds:.2f} | {memory(options, name):.0f} | {accuracy:.1f} |")


if __name__ == "__main__":
    main()
