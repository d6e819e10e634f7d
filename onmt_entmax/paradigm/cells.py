"""The cells of a language and part of speech."""

from collections import Counter
from collections.abc import Sequence

from onmt_entmax.errors import UserError, counted, nearest
from onmt_entmax.strings.cells import Cells


def parts_of_speech(cells: Cells, language: str) -> dict[str, int]:
    """Return how many cells each part of speech of a language has."""
    return Counter(_part_of_speech(tags) for tags in cells.get(language, ()))


def _part_of_speech(tags: Sequence[str]) -> str:
    """Return the part of speech of a cell, by its first tag, as in UniMorph.

    The part of speech of `V.PTCP`, a participle, is `V`.
    """
    return tags[0].split(".")[0]


def cells_of(
    cells: Cells, language: str, pos: str | None, argument: str = "--pos"
) -> list[tuple[str, ...]]:
    """Return the tags of the cells of a language and part of speech, in the order of `cells`.

    The most frequent cell comes first. Cells of this part of speech with the same tags in another
    order are one; the order of the first of them is kept.

    Args:
        cells: the cells of all languages.
        language: name of the language, as in `cells`.
        pos: the part of speech; may be None if the language has only one.
        argument: name of the user's argument for the part of speech, for errors.

    Raises:
        UserError: if the language has no cells or not this part of speech, or has several parts of
            speech and `pos` is None.
    """
    sizes = parts_of_speech(cells, language)
    if not sizes:
        hint = nearest(language, cells)
        raise UserError(f"no cells of the language {language!r} are known{hint}")
    if pos is None and len(sizes) == 1:
        (pos,) = sizes
    if pos not in sizes:
        known = ", ".join(f"{name} ({counted(size, 'cell')})" for name, size in sizes.items())
        raise UserError(f"{argument}: {language} has {known}; choose one")
    by_sorted_tags: dict[tuple[str, ...], tuple[str, ...]] = {}
    for tags in cells[language]:
        if _part_of_speech(tags) == pos:
            by_sorted_tags.setdefault(tuple(sorted(tags)), tags)
    return list(by_sorted_tags.values())
