"""The cell of a paradigm: one lemma, one set of tags, and the forms that are correct there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """One cell of one lemma's paradigm.

    Attributes:
        lemma: the dictionary form.
        forms: the correct forms; more than one where usage is divided.
        tags: UniMorph tags joined by semicolons, as in the shared task's files.
        predictable: whether someone who knows other cells of this lemma, and other lemmas, can
            work the form out. Cells that are not must be in the training data.
        productive: whether the lemma's whole paradigm follows from its spelling.
    """

    lemma: str
    forms: tuple[str, ...]
    tags: str
    predictable: bool = True
    productive: bool = True
