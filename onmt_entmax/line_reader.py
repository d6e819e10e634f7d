"""Turn lines of text, with their prefixes and constraints, into the tokens of a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

from onmt_entmax.data.reader import EncodedSource, Reader
from onmt_entmax.ensembles import TranslationError
from onmt_entmax.errors import counted
from onmt_entmax.search import Automaton, ConstraintCompiler, LineConstraints


class LineRequest(NamedTuple):
    """A line of text, and what its output must start with and satisfy.

    Attributes:
        text: the line.
        prefix: the text that the output must start with.
        constraints: what the output must contain, and what it must not.
    """

    text: str
    prefix: str
    constraints: LineConstraints


@dataclass(frozen=True)
class Line:
    """A `LineRequest` in the tokens of the model.

    Attributes:
        text: the line.
        source: tokens and ids of the line.
        prefix: ids of the tokens that the output must start with.
        automaton: accepts the outputs that the constraints allow; None: there are no constraints.
    """

    text: str
    source: EncodedSource
    prefix: list[int]
    automaton: Automaton | None


def line_requests(
    lines: Iterable[str],
    prefixes: Iterable[str] | None,
    constraints: Iterable[LineConstraints] | None,
) -> Iterator[LineRequest]:
    """Yield each line with its prefix and constraints.

    Args:
        lines: any number of them.
        prefixes: prefix of each line; None: no line has one.
        constraints: constraints of each line; None: no line has any.

    Raises:
        ValueError: there are not as many prefixes, or constraints, as lines.
    """
    # The defaults repeat without end. What the caller gives must have an entry for each line.
    line_prefixes = repeat("") if prefixes is None else prefixes
    line_constraints = repeat(LineConstraints()) if constraints is None else constraints
    prefixed = zip(lines, line_prefixes, strict=prefixes is not None)
    paired = zip(prefixed, line_constraints, strict=constraints is not None)
    for (text, prefix), its_constraints in paired:
        yield LineRequest(text, prefix, its_constraints)


@dataclass(frozen=True)
class LineReader:
    """Reads requests in the tokens of a model.

    Attributes:
        reader: the reader of the model.
        compiler: makes automata of constraints.
        max_length: longest output, in tokens.
    """

    reader: Reader
    compiler: ConstraintCompiler
    max_length: int

    def read(self, number: int, request: LineRequest) -> Line | None:
        """Return a line in the model's tokens; None if it is blank.

        Args:
            number: the number of the line, from 0.
            request: the line, its prefix and its constraints.

        Raises:
            TranslationError: if the transforms leave nothing of the line, its prefix is longer than
                `max_length` or has a token that no output has, or its constraints need too large
                an automaton.
            TypeError: if the line is not a str.
        """
        text, prefix, constraints = request
        if not isinstance(text, str):
            raise TypeError(f"line {number + 1} is {type(text).__name__}; decode it to str")
        if prefix and self.reader.right_to_left:
            raise TranslationError(
                f"prefix of line {number + 1}: a model that writes from right to left "
                "cannot begin with a prefix"
            )
        tokens, prefix_tokens = self.reader.preprocess(text, prefix)
        prefix_ids = self._prefix_ids(number, prefix_tokens)
        if not tokens:
            if text.split():
                raise emptied_line_error(number)
            return None
        source = self.reader.encode(tokens, number)
        automaton = self.compiler.automaton(
            constraints,
            lambda phrase: self.reader.preprocess(text, phrase).target,
            number + 1,
            source.copies,
        )
        return Line(text, source, prefix_ids, automaton)

    def _prefix_ids(self, number: int, tokens: Sequence[str]) -> list[int]:
        """Return the ids of a prefix.

        Args:
            number: the number of the line, from 0.
            tokens: the tokens of the prefix.

        Raises:
            TranslationError: if it is longer than an output may be, or has a token that no output
                has.
        """
        target = self.reader.vocabularies.target
        if len(tokens) > self.max_length:
            raise TranslationError(
                f"prefix of line {number + 1}: it has {counted(len(tokens), 'token')}, but "
                f"max_length is {self.max_length} and counts the whole output"
            )
        unknown = next((token for token in tokens if not target.can_write(token)), None)
        if unknown is not None:
            raise TranslationError(f"prefix of line {number + 1}: {target.not_written(unknown)}")
        return target.encode(tokens)


def emptied_line_error(number: int) -> TranslationError:
    """Return the error for a line that the transforms make empty; `number` is from 0."""
    return TranslationError(
        f"line {number + 1}: the transforms leave nothing of it; shorten or mend the line, or "
        "translate without that transform"
    )
