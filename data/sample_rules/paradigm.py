"""The cell of a paradigm: a lemma, its tags, and the correct forms."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """One cell of one lemma's paradigm.

    Attributes:
        lemma: the dictionary form.
        forms: the correct forms, usually one.
        tags: UniMorph tags joined by semicolons, as in the shared task's files.
        predictable: whether the form follows from other cells of the lemma, and other lemmas. If
            not, the cell must be in the training data.
        productive: whether the whole paradigm follows from the lemma's spelling.
    """

    lemma: str
    forms: tuple[str, ...]
    tags: str
    predictable: bool = True
    productive: bool = True
