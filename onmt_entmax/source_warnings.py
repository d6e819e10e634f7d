"""Reasons why the outputs for a source may be wrong, for people."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Literal
from unicodedata import normalize

from onmt_entmax.data.unknown import readable
from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.errors import counted
from onmt_entmax.strings.scripts import mixture
from onmt_entmax.strings.task import LANGUAGE, Query, StringTask, decode_tag, is_tag
from onmt_entmax.strings.units import CHARACTERS, Unit

# Least similarity of a tag that a hint names, by `difflib`.
_SIMILAR = 0.7
# What people call one unit of a source.
_UNITS = {"characters": "character", "symbols": "symbol", "text": "word"}


def letter_warnings(
    query: Query,
    outputs: Iterable[str],
    sources: Sequence[Vocabulary],
    strange: bool,
    task: StringTask,
    nouns: tuple[str, str] = ("source", "output"),
) -> list[str]:
    """Return warnings of a source in another normal form than training's, and of mixed scripts.

    Outputs are in the script of their source in inflection alone, which has tags.

    Args:
        query: has the source.
        outputs: predicted for it.
        sources: source vocabularies of the models.
        strange: whether training did not see some tokens of the query.
        task: of the models.
        nouns: what people call a source and an output.
    """
    source_noun, output_noun = nouns
    warnings = [_other_normal_form(query, sources, strange, task.source, source_noun)]
    if task.source.kind == "characters":
        warnings.append(mixture(query.source))
    inflects = task.has_tags and task.source == CHARACTERS and task.target == CHARACTERS
    if inflects:
        texts = [text for text in dict.fromkeys(outputs) if text != query.source]
        mixed = list(filter(None, (mixture(text, query.source) for text in texts)))
        if len(mixed) > 1:
            others = counted(len(mixed) - 1, f"other {output_noun}")
            warnings.append(f"{mixed[0]} (and {others})")
        else:
            warnings += mixed
    return [warning for warning in warnings if warning]


def _other_normal_form(
    query: Query, sources: Sequence[Vocabulary], strange: bool, unit: Unit, noun: str
) -> str:
    """Return a warning if training saw the source's characters in another normal form, else "".

    Nothing is normalised here: the data of some models is in no normal form.

    Args:
        query: has the source.
        sources: source vocabularies of the models.
        strange: whether training did not see some tokens of the query.
        unit: of the source.
        noun: what people call a source.
    """
    if unit.kind == "text":  # transforms divide it
        return ""
    # A composed source (NFC) whose tokens training saw is as in training. A decomposed one (NFD)
    # may not be, even then: its letters and marks may be those of other characters of training.
    forms: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD") if strange else ("NFC",)
    language = LANGUAGE + query.language
    for form in forms:
        normalised = normalize(form, query.source)
        new = set(unit.encode(normalised)) - set(unit.encode(query.source))
        if new and all(new <= set(source.seen.get(language, source.tokens)) for source in sources):
            named = ", ".join(sorted(map(readable, new)))
            return (
                f"the {noun} is not in Unicode's normal form {form}, in which training has "
                f"{named}: normalise it"
            )
    return ""


def tag_hint(token: str, known: Iterable[str]) -> str:
    """Return ` (did you mean ...?)` for an unknown tag that is like known ones, else nothing.

    Args:
        token: of a source, a tag or not.
        known: tags.
    """
    nearest = nearest_tags(token, known)
    return f" (did you mean {nearest}?)" if nearest else ""


def nearest_tags(token: str, known: Iterable[str]) -> str:
    """Return the known tags that a tag is most like, between semicolons; else an empty string.

    The tag may be misspelt, in lower case, or several tags without semicolons between them.

    Args:
        token: of a source, a tag or not.
        known: tags.
    """
    if not is_tag(token):
        return ""
    by_upper_case = {tag.upper(): tag for tag in known}
    nearest = []
    for part in filter(None, re.split(r"[,;\s]+", decode_tag(token).upper())):
        matches = difflib.get_close_matches(part, by_upper_case, n=1, cutoff=_SIMILAR)
        if not matches:
            return ""
        nearest.append(by_upper_case[matches[0]])
    return ";".join(nearest)


def described_token(token: str, unit: Unit = CHARACTERS) -> str:
    """Return a source token for people, such as `tag PST` or `character ö`.

    Args:
        token: of a source.
        unit: of the source.
    """
    if is_tag(token):
        return f"tag {readable(decode_tag(token))}"
    return f"{_UNITS[unit.kind]} {readable(unit.decode([token]))}"
