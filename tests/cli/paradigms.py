"""Calls of `onmt-entmax paradigm` for tests."""

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from onmt_entmax.cli import paradigm
from tests.in_process import exit_status

Record = dict[str, Any]

CELLS = {"german": {("V",): 3, ("V", "PST"): 2}, "english": {("V", "PST"): 1, ("N", "PL"): 1}}


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


@dataclass(frozen=True)
class Writer:
    """Writes paradigms of German lemmas in one format or another.

    Attributes:
        model: its folder.
        cells: the file of cells.
        output: where the paradigms are written.
        lemmas: the arguments that name them.
    """

    model: Path
    cells: Path
    output: Path
    lemmas: tuple[object, ...]

    def write(self, kind: str, *options: object) -> Written:
        """Write them as `--format KIND` does, with further options."""
        words = ("german", *self.lemmas, "--format", kind, "--output", self.output)
        with redirect_stdout(io.StringIO()) as printed, redirect_stderr(io.StringIO()) as errors:
            # So many steps find every form of the small models.
            assert run_paradigm(self.model, self.cells, *words, "--budget", 2000, *options) == 0
        return Written(self.output, printed.getvalue(), errors.getvalue())


def cells_of(paradigm: Record) -> dict[str, Record]:
    """Return the records of the cells of a lemma's paradigm, by their tags."""
    (section,) = paradigm["sections"]
    return {cell["tags"]: cell for cell in section["cells"]}
