"""The folder of a run, to which a training writes its checkpoints.

A reader finds a checkpoint whole or not at all: it gets its name when it is complete, and loses it
before it is deleted. A killed run may leave temporary names; see `run_lock.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import Best, save
from onmt_entmax.config import ModelConfig
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.train.kept_checkpoints import prune, remember_best
from onmt_entmax.train.saved_state import SavedState


def check_nothing() -> None:
    """Pass: the check of a process that has no lock on the folder."""


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, and what each of its checkpoints records.

    Attributes:
        path: the path of the folder.
        config: the network.
        vocabularies: the vocabularies of source and target.
        options: all options of the run, by name.
        keep: number of newest checkpoints to keep, besides the best one; negative keeps all, 0 is
            refused.
        others: the content of further files of each checkpoint, by name.
        check_unchanged: raises FileError if the folder was deleted or replaced since the run began,
            see :func:`run_lock.alone`; called before each writing. By default it checks nothing.
    """

    path: Path
    config: ModelConfig
    vocabularies: Vocabularies
    options: Mapping[str, Any]
    keep: int = -1
    others: Mapping[str, bytes] | None = None
    check_unchanged: Callable[[], None] = check_nothing

    def __post_init__(self) -> None:
        if self.keep == 0:
            raise ValueError("keep=0 deletes each new checkpoint: use 1 or more, or -1 to keep all")

    def save(self, step: int, model: SparseNMTModel, state: SavedState) -> None:
        """Write checkpoint `step` and delete old ones.

        Args:
            step: number of updates before it.
            model: has the weights to save.
            state: the state of the training.

        Raises:
            FileError: it cannot be written, an old one cannot be deleted, or the folder was
                deleted or replaced.
        """
        self.check_unchanged()
        save(
            self.path / f"step_{step}",
            model,
            self.config,
            self.vocabularies,
            options=self.options,
            training_state=state,
            others=self.others,
        )
        prune(self.path, self.keep, newest=step)

    def name_best(self, best: Best, newest: int) -> None:
        """Write `best.json`, and delete the checkpoint that was the best if it is an old one.

        Args:
            best: the best checkpoint, of those that are there.
            newest: current step of the run.

        Raises:
            FileError: as for `save`.
        """
        self.check_unchanged()
        remember_best(self.path, best.step, best.metric, best.value)
        prune(self.path, self.keep, newest)
