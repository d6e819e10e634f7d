"""A training pair in units, for `hallucination` and `analogies`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pair:
    """Source and target of a row, in units.

    Attributes:
        marks: language and tags of the source; each is one token.
        source: units of the source.
        target: units of the target.
    """

    marks: tuple[str, ...]
    source: tuple[str, ...]
    target: tuple[str, ...]
