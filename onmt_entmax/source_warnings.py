"""Reasons why the outputs for a source may be wrong, for people."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal
from unicodedata import normalize

from onmt_entmax.data.unknown import readable, unseen_text
from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.errors import counted
from onmt_entmax.strings.scripts import mixture
from onmt_entmax.strings.task import LANGUAGE, Query, StringTask, decode_tag, is_tag
from onmt_entmax.strings.units import CHARACTERS, Unit

# Least similarity of a tag that a hint names, by `difflib`.
_SIMILAR = 0.7
# What people call one unit of a source.
_UNITS = {"characters": "character", "symbols": "symbol", "text": "word"}


def token_warnings(
    *,
    unknown: Iterable[str],
    copied: Iterable[str],
    unseen: Iterable[Sequence[tuple[str, str]]],
    unit: Unit,
    known_tags: Sequence[str],
) -> list[str]:
    """Return warnings of source tokens that training had rarely or never, each once.

    Args:
        unknown: tokens that some model has not in its vocabulary.
        copied: tokens that some model reads as placeholders.
        unseen: for each group of models the pairs of the token of a language and a token that
            training did not see in it.
        unit: of the source.
        known_tags: tags that training saw in the source's language, for hints.
    """
    warnings = [
        f"unknown {described_token(token, unit)}{tag_hint(token, known_tags)}"
        for token in dict.fromkeys(unknown)
    ]
    warnings += [
        f"a placeholder stands for the {described_token(token, unit)}, which training had "
        "rarely or never"
        for token in dict.fromkeys(copied)
    ]
    # Several groups that did not see the same tokens give the same warning.
    warnings += dict.fromkeys(_unseen_warning(pairs, known_tags) for pairs in unseen if pairs)
    return warnings


def _unseen_warning(unseen: Sequence[tuple[str, str]], known_tags: Sequence[str]) -> str:
    """Return a warning of tokens that training did not see in a language, with tags like them.

    Args:
        unseen: pairs of the token of a language and a token; not empty.
        known_tags: tags that training saw in the source's language.
    """
    hints = [tag_hint(token, known_tags) for _language, token in unseen]
    return unseen_text(Counter(unseen)) + "".join(hints)


def letter_warnings(
    query: Query,
    outputs: Iterable[str],
    sources: Sequence[Vocabulary],
    has_unseen: bool,
    task: StringTask,
    nouns: tuple[str, str] = ("source", "output"),
) -> list[str]:
    """Return warnings of a source in another normal form than training's, and of mixed scripts.

    Args:
        query: has the source.
        outputs: predicted for it.
        sources: source vocabularies of the models.
        has_unseen: whether training did not see some tokens of the query.
        task: of the models.
        nouns: what people call a source and an output.
    """
    source_noun, output_noun = nouns
    warnings = []
    if warning := _other_normal_form(query, sources, has_unseen, task.source, source_noun):
        warnings.append(warning)
    if task.source.kind == "characters" and (warning := mixture(query.source)):
        warnings.append(warning)
    # Inflection alone, which has tags, keeps the script of its source.
    inflects = task.has_tags and task.source == CHARACTERS and task.target == CHARACTERS
    if inflects and (warning := _mixed_outputs(query.source, outputs, output_noun)):
        warnings.append(warning)
    return warnings


def _mixed_outputs(source: str, outputs: Iterable[str], noun: str) -> str:
    """Return how the first output that mixes scripts does so, and the number of others, or "".

    Args:
        source: whose script outputs should have.
        outputs: predicted for it. One that equals the source is passed over: a source that mixes
            scripts has its own warning.
        noun: what people call an output.
    """
    texts = [text for text in dict.fromkeys(outputs) if text != source]
    mixtures = [described for text in texts if (described := mixture(text, source))]
    if len(mixtures) > 1:
        return f"{mixtures[0]} (and {counted(len(mixtures) - 1, f'other {noun}')})"
    return mixtures[0] if mixtures else ""


def _other_normal_form(
    query: Query, sources: Sequence[Vocabulary], has_unseen: bool, unit: Unit, noun: str
) -> str:
    """Return a warning if training saw the source's characters in another normal form, else "".

    Nothing is normalised here: the data of some models is in no normal form.

    Args:
        query: has the source.
        sources: source vocabularies of the models.
        has_unseen: whether training did not see some tokens of the query.
        unit: of the source.
        noun: what people call a source.
    """
    if unit.kind == "text":  # transforms divide it
        return ""
    # Training may have `ä` in one character, where the source has `a` and U+0308. This is tried
    # always: training may have seen both, too, the mark on a letter that it cannot be composed
    # with. Or training has `a` and U+0308, and the source `ä`, which then is an unseen token.
    forms: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD") if has_unseen else ("NFC",)
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
