"""Calls of `onmt-entmax paradigm` for tests."""

import io
from collections import defaultdict
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from onmt_entmax.cli import paradigm
from tests.cli.automata import Key
from tests.in_process import exit_status

Record = dict[str, Any]

# How often training had each combination of tags, by language.
CELLS = {"german": {("V",): 3, ("V", "PST"): 2}, "english": {("V", "PST"): 1, ("N", "PL"): 1}}
LEMMAS = ("ab", "b a")  # German verbs, of which the second has a space


def run_paradigm(model: Path, cells: Path, *arguments: object) -> int:
    """Run the command with a model and a file of cells; return the exit status."""
    words = [*map(str, arguments), "--model", str(model), "--cells", str(cells)]
    return exit_status(paradigm.main, words)


class Written(NamedTuple):
    """What the command wrote to its output, and what it printed."""

    output: Path
    printed: str
    errors: str

    @property
    def text(self) -> str:
        """The content of the output."""
        return self.output.read_text("utf-8")

    def lines(self, ending: str = "") -> list[str]:
        """Return the lines of the output, or of the file whose name has another ending."""
        return Path(f"{self.output}{ending}").read_text("utf-8").splitlines()


class Writer:
    """Writes paradigms of German lemmas in one format or another; it makes equal calls once.

    Args:
        model: its folder.
        cells: the file of cells.
        folder: receives the files.
        lemmas: the arguments that name the lemmas.
    """

    def __init__(self, model: Path, cells: Path, folder: Path, *lemmas: object) -> None:
        self._model = model
        self._cells = cells
        self._folder = folder
        self._lemmas = lemmas
        self._written: dict[tuple[object, ...], Written] = {}

    def write(self, kind: str, *options: object) -> Written:
        """Write them as `--format KIND` does, with further options."""
        call = (kind, *options)
        if call not in self._written:
            output = self._folder / str(len(self._written))
            self._written[call] = self._write(kind, *options, output=output)
        return self._written[call]

    def _write(self, kind: str, *options: object, output: Path) -> Written:
        """Make a call of the command."""
        words = ("german", *self._lemmas, "--format", kind, "--output", output)
        enough = 2000  # steps of an enumeration, with which it finds every form of the small models
        with redirect_stdout(io.StringIO()) as printed, redirect_stderr(io.StringIO()) as errors:
            arguments = (*words, "--budget", enough, *options)
            assert run_paradigm(self._model, self._cells, *arguments) == 0
        return Written(output, printed.getvalue(), errors.getvalue())


def cells_of(paradigm: Record) -> dict[str, Record]:
    """Return the records of the cells of a lemma's paradigm, by their tags."""
    (section,) = paradigm["sections"]
    return {cell["tags"]: cell for cell in section["cells"]}


def form_weights(cell_probs: Mapping[Key, float]) -> dict[str, float]:
    """Return the weight of each form in a list: the sum of its probabilities in all cells."""
    weights: dict[str, float] = defaultdict(float)
    for (_lemma, _tags, form), prob in cell_probs.items():
        weights[form] += prob
    return dict(weights)
