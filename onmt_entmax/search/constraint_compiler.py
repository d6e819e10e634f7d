"""Compile what outputs must satisfy into automata over the tokens of a model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from onmt_entmax.data.vocabulary import STRUCTURAL, Vocabulary
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
from onmt_entmax.search.line_constraints import LineConstraints
from onmt_entmax.strings.copying import NO_COPIES, Copies

Tokenise = Callable[[str], Sequence[str]]
"""Maps a phrase to its tokens, in the order in which the model writes."""


class ConstraintCompiler:
    """Compiles constraints into automata; equal constraints share one automaton.

    Args:
        vocabulary: the target vocabulary.
        right_to_left: whether the model writes the last token first.
        regex: what every output must match, if anything; see `parse_expression`.
        copies: whether the model copies source symbols that its vocabulary lacks: a placeholder of
            the vocabulary stands for such a symbol, and each source has its own.

    Raises:
        ExpressionError: if `regex` is no expression, names a symbol of the model's own, or needs
            too large an automaton.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        right_to_left: bool,
        regex: str | None,
        copies: bool = False,
    ) -> None:
        self._vocabulary, self._right_to_left = vocabulary, right_to_left
        self._compile = lru_cache(maxsize=256)(self._compile_expression)
        self._regex: Regular | None = None
        self._regex_automaton: Automaton | None = None
        if regex is not None:
            try:
                self._regex = self._parsed(regex)
                if not copies:  # with copies, each source decides which symbols outputs have
                    self._name_unknown("constraint_regex", self._regex)
                self._regex_automaton = self._compile(self._regex)
            except ExpressionError as error:
                raise ExpressionError(f"constraint_regex: {error}") from None

    def automaton(
        self,
        constraints: LineConstraints,
        tokenise: Tokenise,
        number: int,
        copies: Copies = NO_COPIES,
    ) -> Automaton | None:
        """Return the automaton that the output of a line must satisfy; None if there is none.

        Args:
            constraints: the constraints of the line, besides the `regex` of all lines.
            tokenise: returns the tokens of a phrase, in the order in which the model writes them.
            number: the number of the line, from 1, for messages.
            copies: the placeholders of the line's source, and the symbols that they stand for.

        Raises:
            ExpressionError: if a phrase has no token or a symbol of the model's own, or the
                automaton would be too large.
        """
        placeholders = {symbol: placeholder for placeholder, symbol in copies.symbols.items()}
        regex = None if self._regex is None else renamed(self._regex, placeholders)
        if not constraints:
            # Most sources have no placeholders, and so share one automaton.
            return self._compile(regex) if regex and placeholders else self._regex_automaton
        where = f"constraints of line {number}"
        try:
            parts = self._parts(constraints, tokenise, placeholders)
            self._name_unknown(where, Intersection(parts))
            return self._compile(Intersection((*parts, regex) if regex else parts))
        except ExpressionError as error:
            raise ExpressionError(f"{where}: {error}") from None

    def _parts(
        self, constraints: LineConstraints, tokenise: Tokenise, placeholders: Mapping[str, str]
    ) -> tuple[Expression, ...]:
        """Return the expressions of a line's constraints; an output must match all of them.

        Raises:
            ExpressionError: if a phrase has no token.
        """
        parts: list[Expression] = [
            _containing_one(group, tokenise) for group in constraints.required
        ]
        if constraints.avoid:
            parts.append(Complement(_containing_one(constraints.avoid, tokenise)))
        if constraints.regex is not None:
            parts.append(renamed(self._parsed(constraints.regex), placeholders))
        return tuple(parts)

    def _parsed(self, regex: str) -> Regular:
        """Return a regular expression in the order in which the model writes."""
        expression = parse_expression(regex)
        return reverse(expression) if self._right_to_left else expression

    def _name_unknown(self, where: str, expression: Expression) -> None:
        """Warn of tokens in an expression that no output can have.

        Args:
            where: where the expression was written, for the warning.
            expression: the expression.

        Raises:
            ExpressionError: if one of them is a symbol of the model's own, such as `</s>`.
        """
        can_write = self._vocabulary.can_write
        unknown = sorted({token for token in named_tokens(expression) if not can_write(token)})
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


def _containing_one(phrases: Sequence[str], tokenise: Tokenise) -> Regular:
    """Return the outputs that contain one of some phrases.

    Raises:
        ExpressionError: if a phrase has no token.
    """
    tokens_of = {phrase: tokenise(phrase) for phrase in phrases}
    for phrase, tokens in tokens_of.items():
        if not tokens:
            raise ExpressionError(f"the transforms leave nothing of {phrase!r}")
    return containing(*tokens_of.values())
