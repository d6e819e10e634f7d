"""Tags of UniMorph: their dimensions, their order, and their names in English."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from onmt_entmax.strings.marks import split_tags

PART_OF_SPEECH = "part of speech"
_LAYERED = re.compile(r"([^()]+)\((.*)\)")  # such as PSS(1,PL)


class Tag(NamedTuple):
    """A tag of UniMorph.

    Attributes:
        dimension: what it is a value of, such as `case`.
        position: its position in UniMorph's order, by which tables are sorted.
        name: its name in English, such as `nominative`.
    """

    dimension: str
    position: int
    name: str


@cache
def known_tags() -> Mapping[str, Tag]:
    """Return the tags of UniMorph, by the tags themselves, such as `NOM`."""
    text = files("onmt_entmax.data").joinpath("unimorph.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")][1:]
    return {
        tag: Tag(dimension, position, name) for position, (dimension, tag, name) in enumerate(rows)
    }


def dimension_of(tag: str) -> str:
    """Return the dimension of a tag, such as `case`; `other` if the tag is unknown."""
    known = known_tags().get(tag)
    return "other" if known is None else known.dimension


def order_of(tag: str) -> tuple[int, str]:
    """Return a key that sorts tags as UniMorph lists them, unknown ones last."""
    known = known_tags().get(tag)
    return (len(known_tags()) if known is None else known.position, tag)


def without_layers(tags: Sequence[str]) -> list[str]:
    """Return tags with those of a layer behind the outer tag; they decide where a cell stands.

    `N;NOM(PL)` becomes N, NOM, PL. Of a verb, only the layers of its subject are taken apart:
    `V;PST;NOM(2,PL)` becomes V, PST, 2, PL. Its other arguments stay one tag, such as `ACC(3,SG)`,
    and so do possessors, such as `PSS(1,PL)` (UniMorph 4.0: Batsuren et al. 2022, section 3).
    """
    is_verb = bool(tags) and tags[0] in ("V", "AUX")
    subject = _position_of_subject(tags) if is_verb else None
    flattened: list[str] = []
    for position, tag in enumerate(tags):
        case = _layered_case(tag)
        if case is None:
            flattened.append(tag)
        elif not is_verb:
            flattened += [case, *_inner(tag)]
        elif position == subject:
            flattened += _inner(tag)
        else:
            flattened.append(tag)
    return flattened


def _position_of_subject(tags: Sequence[str]) -> int | None:
    """Return the position of the tag of the subject with which a verb agrees; None without one.

    The subject is the first argument in the nominative or, as in ergative languages, the first
    argument of a verb that has none in the nominative.
    """
    cases = list(map(_layered_case, tags))
    if "NOM" in cases:
        return cases.index("NOM")
    return next((position for position, case in enumerate(cases) if case is not None), None)


def _layered_case(tag: str) -> str | None:
    """Return the case of a tag such as `NOM(PL)`; None for other tags."""
    match = _LAYERED.fullmatch(tag)
    return match[1] if match and dimension_of(match[1]) == "case" else None


def _inner(tag: str) -> list[str]:
    """Return the tags of a layer: 2 and PL of `NOM(2,PL)`."""
    match = _LAYERED.fullmatch(tag)
    if match is None:
        return []
    return [inner for part in split_tags(match[2]) for inner in split_tags(part, ",")]


def title_of(tags: Sequence[str], separator: str = " ") -> str:
    """Return the names of tags; if there are several parts of speech, without the first of them.

    For example, V;V.PTCP is a participle, not a verb and a participle.
    """
    names = list(map(name_of, tags))
    parts = [tag for tag in tags if dimension_of(tag) == PART_OF_SPEECH]
    if len(parts) > 1:
        names.remove(name_of(parts[0]))
    return separator.join(names)


def name_of(tag: str) -> str:
    """Return the name of a tag; a layered one has the names of its layers in brackets."""
    known = known_tags().get(tag)
    if known is not None:
        return known.name
    match = _LAYERED.fullmatch(tag)
    if match is None:
        return tag
    head = "possessor" if match[1] == "PSS" else name_of(match[1])
    return f"{head} ({' '.join(map(name_of, _inner(tag)))})"
