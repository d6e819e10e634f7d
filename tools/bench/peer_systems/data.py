"""The data on which `tools.bench.peers` compares systems: files of tokens."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onmt_entmax.files import read_lines

VALIDATION_PAIRS = 200  # of the development set, on which the peers validate


@dataclass(frozen=True)
class Data:
    """Files of tokens that `prepare table` wrote, and a sample of the development set.

    Attributes:
        folder: has `train`, `dev`, `valid` and `one`, each as `.src` and `.tgt`.
        tables: the options of `prepare table` that name the user's tables.
    """

    folder: Path
    tables: Sequence[str] = ()

    def path(self, split: str, side: str) -> Path:
        """Return the path of a file."""
        return self.folder / f"{split}.{side}"

    def lines(self, split: str, side: str) -> list[str]:
        """Return the lines of a file, tokens between spaces."""
        return [line.rstrip("\n") for line in read_lines(self.path(split, side))]

    def write_samples(self) -> None:
        """Write `valid`, on which the peers validate, and `one`, the first pair of `dev`."""
        pairs = list(zip(self.lines("dev", "src"), self.lines("dev", "tgt"), strict=True))
        sample = random.Random(1).sample(pairs, min(VALIDATION_PAIRS, len(pairs)))
        for split, split_pairs in (("valid", sample), ("one", pairs[:1])):
            sources, targets = zip(*split_pairs, strict=True)
            for side, lines in (("src", sources), ("tgt", targets)):
                text = "".join(f"{line}\n" for line in lines)
                self.path(split, side).write_text(text, encoding="utf-8")
