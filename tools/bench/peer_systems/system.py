"""The interface of a system that `tools.bench.peers` compares: its commands and their logs."""

from __future__ import annotations

import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from onmt_entmax.files import read_lines
from tools.bench.peer_systems.data import Data

LOG = "train.log"  # of a system's folder
BEAM = 5
# Settings of all peers; `__init__.py` says where they come from.
VALIDATE_EVERY = 2_000  # training examples
SIZE = 256  # of states
EMBEDDING = 64
ENDLESS = 1_000_000  # updates or epochs: the time ends a training


class PeerError(Exception):
    """A system that cannot be measured; the message says why in one line."""


@dataclass(frozen=True)
class Command:
    """A command, with files for its standard input and output."""

    words: Sequence[str]
    stdin: Path | None = None
    stdout: Path | None = None


class System(ABC):
    """A system in a folder of its own.

    `peer_measures.measure` runs the commands of `prepare`, then that of `train`. When the training
    has ended or was stopped, the other methods can be called in any order; `decode` is called for
    one sentence and for the development set.

    Args:
        data: tokens to train on and to decode.
        folder: folder for all files of the system.
        peers: folder of the virtual environments; None: there are none.
        minutes: processor time of a training.

    Attributes:
        name: name in the table.
        distribution: the Python package whose version is printed.
        environment: the name of its virtual environment; empty for the one of this process.
        packages: what `pip install` installs there.
        unwanted: what `pip uninstall` removes afterwards.
        settings: one line that describes network and training, below the table.
        batch: training pairs of an update.
    """

    name: ClassVar[str]
    distribution: ClassVar[str]
    environment: ClassVar[str] = ""
    packages: ClassVar[Sequence[str]] = ()
    unwanted: ClassVar[Sequence[str]] = ()
    settings: str = ""
    batch: int = 0

    def __init__(self, data: Data, folder: Path, peers: Path | None, minutes: float) -> None:
        self.data = data
        self.folder = folder
        self.minutes = minutes
        self._bin = None if peers is None else peers / self.environment / "bin"

    @classmethod
    def install_command(cls) -> str:
        """Return the command line that installs the system in a folder PEERS."""
        environment = f"PEERS/{cls.environment}"
        pip = f"{environment}/bin/pip"
        commands = [f"python3 -m venv {environment}", f"{pip} install {' '.join(cls.packages)}"]
        if cls.unwanted:
            commands.append(f"{pip} uninstall -y {' '.join(cls.unwanted)}")
        return " && ".join(commands)

    @property
    def python(self) -> str:
        """The Python of its environment.

        Raises:
            PeerError: there is none.
        """
        if not self.environment:
            return sys.executable
        if self._bin is None or not (self._bin / "python").exists():
            raise PeerError(f"not installed: {self.install_command()}")
        return str(self._bin / "python")

    @property
    def log(self) -> str:
        """What the training printed."""
        return text_of(self.folder / LOG)

    def script(self, name: str) -> str:
        """Return the path of a command of its environment."""
        return str(Path(self.python).parent / name)

    def write_configuration(self, name: str, content: Mapping[str, Any]) -> Path:
        """Write a configuration as JSON, which every reader of YAML accepts; return its path."""
        path = self.folder / name
        path.write_text(json.dumps(content, indent=2), encoding="utf-8")
        return path

    @abstractmethod
    def prepare(self) -> list[Command]:
        """Write its files; return the commands that must run before the training, untimed."""

    @abstractmethod
    def train(self) -> Command:
        """Return the command that trains until its time is over."""

    @abstractmethod
    def updates(self) -> int:
        """Return the number of updates of the training; its log may miss the last few."""

    @abstractmethod
    def parameters(self) -> int:
        """Return the number of weights."""

    @abstractmethod
    def decode(self, source: Path, output: Path) -> Command:
        """Return the command that writes a line of tokens for each line of a source.

        Raises:
            PeerError: there is no checkpoint.
        """

    def predictions(self, output: Path) -> list[str]:
        """Return the tokens, between spaces, that `decode` wrote for each line."""
        return [" ".join(line.split()) for line in read_lines(output)]


def text_of(log: Path) -> str:
    """Return what a command printed to a file, whatever its encoding."""
    return log.read_text(encoding="utf-8", errors="replace")


def last_number(pattern: str, text: str) -> int:
    """Return the number that a pattern captures at its last match in a log; 0 without a match."""
    numbers = re.findall(pattern, text)
    return int(numbers[-1].replace(",", "")) if numbers else 0
