"""Small programs in the place of the peers that `tools.bench.peers` compares, and a table for them.

The development set has two sources, and `DECODER` predicts one of them right: the first has two
gold forms, of which it gives one, and in the second it leaves a symbol unknown.
"""

import sys
from pathlib import Path

from tools.bench.peer_systems.system import Command, System, last_number

TRAIN = "walk\tV;PST\twalked\nsing\tV;PST\tsang\n"
DEV = "dream\tV;PST\tdreamt\ndream\tV;PST\tdreamed\nplay\tV;PST\tplayed\n"

# Its standard input has a line for each source, such as `+V +PST d r e a m`.
DECODER = """
import sys
predictions = {"d r e a m": "d r e a m e d", "p l a y": "p l a y <unk> d"}
for line in sys.stdin:
    _verb, _past, lemma = line.strip().split(" ", maxsplit=2)
    print(predictions[lemma])
"""


class Working(System):
    """A peer that trains for no time, and decodes with `DECODER`."""

    name = "working"
    distribution = "torch"
    settings = "no settings"
    batch = 10
    training = "print('Step 3 of 4'); print('Step 1,200, weights: 70')"
    """The program that trains it."""

    def prepare(self) -> list[Command]:
        return []

    def train(self) -> Command:
        return Command([sys.executable, "-c", self.training])

    def updates(self) -> int:
        return last_number(r"Step ([\d,]+)", self.log)

    def parameters(self) -> int:
        return last_number(r"weights: (\d+)", self.log)

    def decode(self, source: Path, output: Path) -> Command:
        return Command([sys.executable, "-c", DECODER], stdin=source, stdout=output)


class Failing(Working):
    """A peer whose training fails."""

    name = "failing"
    training = "raise ValueError('no such option: epochs')"


class Missing(Working):
    """A peer that is not installed."""

    name = "missing"
    environment = "nowhere"
    packages = ("missing==1.0", "helper")
    unwanted = ("extra",)


def write_tables(folder: Path) -> None:
    """Write the training table `a.trn` and the development table `a.dev`."""
    (folder / "a.trn").write_text(TRAIN, encoding="utf-8")
    (folder / "a.dev").write_text(DEV, encoding="utf-8")


def arguments_in(folder: Path) -> list[str]:
    """Return the arguments of a comparison on these tables.

    Its files go into the new folder `out`, and its figures into `figures.json`.
    """
    paths = {"train": "a.trn", "dev": "a.dev", "out": "out", "peers": "", "json": "figures.json"}
    return [word for name, path in paths.items() for word in (f"--{name}", str(folder / path))]
