"""Make the hallucinated training pairs that `prepare` adds for languages with few words."""

from collections.abc import Iterable, Sequence

from onmt_entmax.errors import UserError
from onmt_entmax.strings.hallucination import SHORTEST, hallucinated, stem_share
from onmt_entmax.strings.marks import is_language
from onmt_entmax.strings.pairs import Pair
from onmt_entmax.strings.task import StringTask

# A language profits from hallucinated pairs if a source word has at least this many rows, and a
# stem is at least this share of its word, both on average (docs/results-table-options.md).
_ROWS_OF_A_WORD = 4.0
_SHARE_IN_STEM = 0.75


def hallucinated_pairs(
    pairs: Iterable[tuple[str, str]], task: StringTask, seed: int, copies: int | None = None
) -> list[tuple[str, str]]:
    """Return hallucinated lines of source and target.

    Args:
        pairs: lines of the training data.
        task: task of the rows.
        seed: seed of the random stems.
        copies: number of hallucinated pairs for each pair, if the user names it. None: one for each
            pair of the languages that profit; there may be no such language.

    Raises:
        UserError: the user names a number, but no pair has a stem.
    """
    by_language = _by_language(pairs, task)
    if copies is None:
        by_language = {
            language: language_pairs
            for language, language_pairs in by_language.items()
            if _profits_from_hallucination(language_pairs)
        }
    random_pairs = hallucinated(by_language, copies or 1, seed)
    if copies and not random_pairs:
        raise UserError(
            f"--hallucinate: no source has {SHORTEST} symbols in a row that its target has too; "
            "leave it out"
        )
    return [(" ".join([*pair.marks, *pair.source]), " ".join(pair.target)) for pair in random_pairs]


def _profits_from_hallucination(pairs: Sequence[Pair]) -> bool:
    """Return whether a language has many rows of each word, and changes words at their ends.

    Args:
        pairs: the training pairs of the language.
    """
    words = {pair.source for pair in pairs}
    return len(pairs) >= _ROWS_OF_A_WORD * len(words) and stem_share(pairs) >= _SHARE_IN_STEM


def _by_language(pairs: Iterable[tuple[str, str]], task: StringTask) -> dict[str, list[Pair]]:
    """Return pairs of lines by language, divided into marks, source units and target units."""
    by_language: dict[str, list[Pair]] = {}
    for source, target in pairs:
        marks, units = task.marks_and_units(source.split())
        language = next(filter(is_language, marks), "")
        pair = Pair(tuple(marks), tuple(units), tuple(target.split()))
        by_language.setdefault(language, []).append(pair)
    return by_language
