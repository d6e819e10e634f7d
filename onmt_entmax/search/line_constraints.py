"""What the output of one line must satisfy: phrases, phrases to avoid, an expression.

`constraint_compiler.py` makes automata of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onmt_entmax.errors import UserError
from onmt_entmax.files.parsing import parse_json
from onmt_entmax.rules import shown
from onmt_entmax.search.expression import ExpressionError
from onmt_entmax.search.expression_parser import parse_expression

_KEYS = ("constraints", "avoid", "regex", "text")


@dataclass(frozen=True)
class LineConstraints:
    """What the output of one line must satisfy; phrases are written like training targets.

    Raises:
        ValueError: if a phrase has no word.
    """

    required: tuple[tuple[str, ...], ...] = ()
    """Groups of phrases: the output contains at least one phrase of each group."""
    avoid: tuple[str, ...] = ()
    """The output contains none of these phrases."""
    regex: str | None = None
    """The whole output matches this; see `parse_expression`."""

    def __post_init__(self) -> None:
        required = (phrase for group in self.required for phrase in group)
        for phrase in (*self.avoid, *required):
            if not phrase.strip():
                raise ValueError("a phrase has no word")

    @classmethod
    def parse(cls, line: str, source: str) -> LineConstraints:
        """Read a line of a file of constraints.

        A line is either a list of phrases that the output must contain, with tabs between them, or
        a JSON object with any of these keys:

            constraints    a list; the output must contain each phrase in it, and of each list of
                           phrases in it at least one
            avoid          a list of phrases that the output must not contain
            regex          a regular expression that the output must match
            text           the source, as a check that constraints and sources are aligned

        Args:
            line: the line of the constraints.
            source: the line of the source, which `text` must repeat.

        Raises:
            UserError: says what is wrong with the line.
        """
        if line.strip().startswith("{"):
            values: dict[str, Any] = parse_json(line)
        else:
            values = {"constraints": line.split("\t") if line.strip() else []}
        for key in values:
            if key not in _KEYS:
                raise UserError(f"unknown key {shown(key)}; known are {', '.join(_KEYS)}")
        if str(values.get("text", source)).split() != source.split():
            raise UserError("text is not the line of the source")
        regex = _checked_regex(values.get("regex"))
        return cls(
            required=_checked_groups(values.get("constraints", [])),
            avoid=_checked_phrases("avoid", values.get("avoid", [])),
            regex=regex,
        )

    def __bool__(self) -> bool:
        return bool(self.required or self.avoid) or self.regex is not None


def _checked_regex(regex: Any) -> str | None:
    """Return the regular expression of a line, if it is one or missing.

    Raises:
        UserError: says what is wrong.
    """
    if regex is None:
        return None
    if not isinstance(regex, str):
        raise UserError(f"regex must be a text, not {shown(regex)}")
    try:
        parse_expression(regex)
    except ExpressionError as error:
        raise UserError(f"regex: {error}") from None
    return regex


def _checked_groups(groups: Any) -> tuple[tuple[str, ...], ...]:
    """Return the groups of phrases of `constraints`; a phrase alone is a group of one.

    Raises:
        UserError: says what is wrong.
    """
    if not isinstance(groups, list):
        raise _no_list("constraints", groups)
    checked = tuple(
        _checked_phrases("constraints", [group] if isinstance(group, str) else group)
        for group in groups
    )
    if not all(checked):
        raise UserError("constraints has an empty list")
    return checked


def _checked_phrases(key: str, phrases: Any) -> tuple[str, ...]:
    """Return the phrases of a key, if they are a list of phrases.

    Raises:
        UserError: says what is wrong.
    """
    if not isinstance(phrases, list):
        raise _no_list(key, phrases)
    for phrase in phrases:
        if not isinstance(phrase, str) or not phrase.strip():
            raise UserError(f"{key} has {shown(phrase)}, which is no phrase")
    return tuple(phrases)


def _no_list(key: str, value: Any) -> UserError:
    """Return the error for a value that should be a list of phrases."""
    return UserError(f"{key} must be a list of phrases, not {shown(value)}")
