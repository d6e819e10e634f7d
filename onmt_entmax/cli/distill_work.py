"""The folder OUT.work of `distill`, from which a later run continues an interrupted one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import count_lines, followed, read_object


@dataclass(frozen=True)
class WorkFolder:
    """The paths of the files in OUT.work.

    Attributes:
        queries: queries for all models.
        record: settings on which the predictions depend.
        reports: exactness reports, one for each model.
        outputs: predictions, one file for each model.
        combined_report: exactness report of the average.
        combined_output: predictions of the average.
    """

    queries: Path
    record: Path
    reports: Sequence[Path]
    outputs: Sequence[Path]
    combined_report: Path
    combined_output: Path

    @classmethod
    def of(cls, out: Path, models: int) -> WorkFolder:
        """Return the paths for the pairs OUT.src and OUT.tgt.

        Args:
            out: OUT.
            models: number of models.
        """
        folder = out.with_name(f"{out.name}.work")
        reports = [folder / f"{number}.jsonl" for number in range(1, models + 1)]
        return cls(
            queries=folder / "queries.src",
            record=folder / "distill.json",
            reports=reports,
            outputs=[report.with_suffix(".pred") for report in reports],
            combined_report=folder / "combined.jsonl",
            combined_output=folder / "combined.pred",
        )

    def files(self) -> list[Path]:
        """Return the paths of all files of the folder."""
        combined = [self.combined_output, self.combined_report]
        return [self.queries, self.record, *self.reports, *self.outputs, *combined]

    def is_begun(self, settings: Mapping[str, Any]) -> bool:
        """Return whether an earlier run has written the queries.

        Args:
            settings: settings of this run, as `settings_of` returns them.

        Raises:
            UserError: the folder has queries or predictions of other settings.
        """
        if not self.record.exists():
            return False
        recorded = read_object(self.record)
        if recorded != settings:
            other = sorted(name for name in settings if settings[name] != recorded.get(name))
            raise UserError(
                f"{self.record.parent}: its predictions are for other values of "
                f"{', '.join(other)}; delete it or give another --out"
            )
        return True

    def is_predicted(self, report: Path) -> bool:
        """Return whether an earlier run has predicted the queries with a model.

        Args:
            report: the report of the model, one of `reports`.

        Raises:
            UserError: the report is cut or damaged.
        """
        if not report.exists():
            return False
        lines, needed = count_lines(report), count_lines(self.queries)
        if lines != needed:
            raise UserError(
                f"{report}: cut or damaged, {counted(lines, 'line')}, not {needed:,}; delete it, "
                "and run again"
            )
        return True


def settings_of(
    models: Sequence[Path], train: Path, *, each: int, seed: int, beam: int
) -> dict[str, Any]:
    """Return everything on which the predictions depend, as an object for JSON.

    Args:
        models: folders of the models.
        train: the training sources.
        each: number of queries for each training source.
        seed: seed of the random queries.
        beam: beam size of the searches.
    """
    return {
        "train": _digest(train),
        "models": [
            [str(followed(model)), _digest(model / "model.safetensors")] for model in models
        ],
        "each": each,
        "seed": seed,
        "beam": beam,
    }


def _digest(path: Path) -> str:
    """Return a digest of a file; an empty text if there is no such file."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
