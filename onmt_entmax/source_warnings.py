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
    warnings = [_other_normal_form(query, sources, strange, task.source, nouns[0])]
    if task.source.kind == "characters":
        warnings.append(mixture(query.source))
    if task.has_tags and task.source == task.target == CHARACTERS:
        texts = [text for text in dict.fromkeys(outputs) if text != query.source]
        mixed = list(filter(None, (mixture(text, query.source) for text in texts)))
        if len(mixed) > 1:
            warnings.append(f"{mixed[0]} (and {counted(len(mixed) - 1, f'other {nouns[1]}')})")
        else:
            warnings += mixed
    return [warning for warning in warnings if warning]


def _other_normal_form(
    query: Query, sources: Sequence[Vocabulary], strange: bool, unit: Unit, noun: str
) -> str:
    """Return a warning if training saw the source's characters in another normal form.

    Nothing is normalised here: the data of some models is in no normal form. A composed source
    whose tokens training saw is as in training; the marks of a decomposed one may be from others.
    """
    if unit.kind == "text":  # transforms divide it
        return ""
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
    """Return ` (did you mean ...?)` of a tag that is not known; else an empty string.

    The tag may be misspelt, in lower case, or several tags without semicolons between them.

    Args:
        token: of a source.
        known: tags.
    """
    if not is_tag(token):
        return ""
    by_upper_case = {tag.upper(): tag for tag in known}
    nearest = []
    for part in re.split(r"[,;\s]+", decode_tag(token).upper()):
        matches = difflib.get_close_matches(part, by_upper_case, n=1, cutoff=0.7)
        if not matches:
            return ""
        nearest.append(by_upper_case[matches[0]])
    return f" (did you mean {';'.join(nearest)}?)"


def described_token(token: str, unit: Unit = CHARACTERS) -> str:
    """Return a source token for people, such as `tag PST` or `character ö`.

    Args:
        token: of a source.
        unit: of the source.
    """
    if is_tag(token):
        return f"tag {readable(decode_tag(token))}"
    return f"{_UNITS[unit.kind]} {readable(unit.decode([token]))}"
