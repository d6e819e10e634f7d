"""Lexical constraints: the phrases that the output of one line must contain, or must not.

Their texts become automata over a model's tokens.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from onmt_entmax.data.vocabulary import STRUCTURAL, Vocabulary
from onmt_entmax.errors import UserError
from onmt_entmax.files.parsing import parse_json
from onmt_entmax.rules import shown
from onmt_entmax.search.automaton import Automaton
from onmt_entmax.search.automaton_compiler import compile_expression
from onmt_entmax.search.expression import (
    Complement,
    Expression,
    ExpressionError,
    Intersection,
    Regular,
    containing,
    named_tokens,
    renamed,
    reverse,
)
from onmt_entmax.search.expression_parser import parse_expression
from onmt_entmax.strings.copying import NO_COPIES, Copies

Tokens = Callable[[str], Sequence[str]]
"""Maps a phrase to its tokens, in the order in which the model writes."""

_KEYS = ("constraints", "avoid", "regex", "text")


@dataclass(frozen=True)
class LineConstraints:
    """What the output of one line must satisfy; phrases are texts as targets of training are.

    Raises:
        ValueError: if a phrase has no word.
    """

    required: tuple[tuple[str, ...], ...] = ()
    """The output contains at least one phrase of each of these groups."""
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

        Args:
            line: a JSON object with any of `constraints`, a list of phrases that the output must
                contain or of lists of phrases of which it must contain one, `avoid`, a list of
                phrases, `regex`, and `text`, the source; or phrases with tabs between them.
            source: line of the source, which `text` must repeat.

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
        required = values.get("constraints", [])
        if not isinstance(required, list):
            raise _no_list("constraints", required)
        groups = [
            _checked_phrases("constraints", [group] if isinstance(group, str) else group)
            for group in required
        ]
        if not all(groups):
            raise UserError("constraints has an empty list")
        return cls(tuple(groups), _checked_phrases("avoid", values.get("avoid", [])), regex)

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


class ConstraintCompiler:
    """Makes automata of constraints; equal constraints share one.

    Args:
        vocabulary: of the target.
        backwards: whether the model writes from right to left.
        regex: what every output must match, if anything; see `parse_expression`.
        copies: whether sources may have placeholders.

    Raises:
        ExpressionError: if `regex` is no expression, names a symbol of the model's own, or needs
            too large an automaton.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        backwards: bool,
        regex: str | None,
        copies: bool = False,
    ) -> None:
        self._vocabulary, self._backwards = vocabulary, backwards
        self._compile = lru_cache(maxsize=256)(self._compile_expression)
        self._regex, self._of_all = None, None
        if regex is not None:
            try:
                self._regex = self._parsed(regex)
                if not copies:  # else each source decides what outputs have
                    self._name_unknown("constraint_regex", self._regex)
                self._of_all = self._compile(self._regex)
            except ExpressionError as error:
                raise ExpressionError(f"constraint_regex: {error}") from None

    def automaton(
        self, wish: LineConstraints, tokens: Tokens, number: int, copies: Copies = NO_COPIES
    ) -> Automaton | None:
        """Return the automaton of line `number`, from 1; None if it has no constraints.

        Args:
            wish: the constraints.
            tokens: of a phrase, as the network writes them.
            number: of the line.
            copies: the placeholders of its source, by which it writes some symbols.

        Raises:
            ExpressionError: if a phrase has no token or a symbol of the model's own, or the
                automaton would be too large.
        """
        placeholders = {symbol: each for each, symbol in copies.symbols.items()}
        of_all = self._regex and renamed(self._regex, placeholders)
        if not wish:
            return self._of_all if not placeholders or of_all is None else self._compile(of_all)
        where = f"constraints of line {number}"

        def containing_one(texts: Sequence[str]) -> Regular:
            phrases = {text: tokens(text) for text in texts}
            for text, phrase in phrases.items():
                if not phrase:
                    raise ExpressionError(f"the transforms leave nothing of {text!r}")
            return containing(*phrases.values())

        try:
            parts: list[Expression] = [containing_one(group) for group in wish.required]
            if wish.avoid:
                parts.append(Complement(containing_one(wish.avoid)))
            if wish.regex is not None:
                parts.append(renamed(self._parsed(wish.regex), placeholders))
            self._name_unknown(where, Intersection(tuple(parts)))
            if of_all is not None:
                parts.append(of_all)
            return self._compile(Intersection(tuple(parts)))
        except ExpressionError as error:
            raise ExpressionError(f"{where}: {error}") from None

    def _parsed(self, regex: str) -> Regular:
        """Return a regular expression in the order in which the model writes."""
        expression = parse_expression(regex)
        return reverse(expression) if self._backwards else expression

    def _name_unknown(self, where: str, expression: Expression) -> None:
        """Warn of tokens that no output has.

        Raises:
            ExpressionError: one is a symbol of the model's own.
        """
        named, known = named_tokens(expression), self._vocabulary.can_write
        unknown = sorted({token for token in named if not known(token)})
        if own := STRUCTURAL.intersection(unknown):
            raise ExpressionError(self._vocabulary.not_written(min(own)))
        if unknown:
            warnings.warn(
                f"{where}: no output has {', '.join(map(repr, unknown))}, which the target "
                f"vocabulary lacks",
                stacklevel=2,
            )

    def _compile_expression(self, expression: Expression) -> Automaton:
        """Return the automaton of an expression over the model's tokens."""
        vocabulary = self._vocabulary
        return compile_expression(
            expression,
            lambda token: vocabulary.encode([token])[0] if vocabulary.can_write(token) else None,
            vocabulary.eos,
        )
