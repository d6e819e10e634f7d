"""Unfinished samples, each a path through the tree of prefixes, and how their tokens are drawn.

After each step of the decoder, `draw_independent` or `draw_distinct` takes the paths of a sentence
one token further, and `number_rows` says which rows the decoder computes next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from onmt_entmax.search.arrays import Floats
from onmt_entmax.search.next_tokens import CUT, NextTokens


class Path(NamedTuple):
    """A sample that is being drawn, or that has ended."""

    tokens: tuple[int, ...]
    """Without end symbol; the last one is `CUT` if that ended the path."""
    log_prob: float
    row: int
    """The decoder's row, which paths of equal prefixes share; not read once the path has ended."""
    ended: bool = False
    noisy: float = 0.0
    """Without replacement: the largest noisy log-probability of any output that starts with these
    tokens, see `draw_distinct`."""

    def longer(self, options: NextTokens, position: int, eos: int, noisy: float = 0.0) -> Path:
        """Return the path with the option at a position as its next token."""
        token, log_prob = options.token[position], options.log_prob[position]
        return Path(
            tokens=self.tokens if token == eos else (*self.tokens, int(token)),
            log_prob=self.log_prob + min(float(log_prob), 0.0),
            row=self.row,
            ended=token in (eos, CUT),
            noisy=noisy,
        )


class NextRow(NamedTuple):
    """A row that the decoder computes next."""

    before: int
    """The row that it continues."""
    token: int
    """The token that it appends."""


def draw_independent(
    paths: Sequence[Path], options: Sequence[NextTokens], eos: int, uniform: Floats
) -> list[Path]:
    """Draw a token for each path that has not ended; no path is left if one cannot go on.

    Args:
        paths: the paths of one sentence.
        options: what may follow each row of the decoder.
        eos: id of the end symbol.
        uniform: `(paths, steps)` random numbers from 0 to 1.
    """
    # Only a forced token can be impossible, and it is the same for all paths of a sentence.
    if any(not path.ended and not len(options[path.row].token) for path in paths):
        return []
    cumulative_of: dict[int, Floats] = {}  # sums of the probabilities of each row's options
    longer = list(paths)
    for index, path in enumerate(paths):
        if path.ended:
            continue
        if path.row not in cumulative_of:
            cumulative_of[path.row] = np.cumsum(np.exp(options[path.row].log_prob))
        cumulative = cumulative_of[path.row]
        value = uniform[index, len(path.tokens)] * cumulative[-1]
        # Rounding may lift the value to the last sum.
        position = min(int(np.searchsorted(cumulative, value, "right")), len(cumulative) - 1)
        longer[index] = path.longer(options[path.row], position, eos)
    return longer


def draw_distinct(
    paths: Sequence[Path],
    options: Sequence[NextTokens],
    eos: int,
    generator: np.random.Generator,
    count: int,
) -> list[Path]:
    """Continue the paths that have not ended, and keep the best `count` of all.

    This is a step of stochastic beam search. Give each output a noisy log-probability, its own plus
    Gumbel noise: the `count` outputs for which it is largest are a sample without replacement. The
    noisy log-probability of a prefix is the largest of its outputs'. It can be drawn before these:
    the prefix's continuations get fresh noise, and are then shifted so that the largest of them has
    the value of the prefix.

    Args:
        paths: the paths of one sentence, ended ones too.
        options: what may follow each row of the decoder.
        eos: id of the end symbol.
        generator: the random generator of the noise.
        count: how many samples to draw for the sentence.
    """
    longer = [path for path in paths if path.ended]
    for path in paths:
        if path.ended or not len(options[path.row].token):
            continue
        following = options[path.row]
        fresh = path.log_prob + following.log_prob
        noisy = _with_maximum(fresh + generator.gumbel(size=len(fresh)), path.noisy)
        for position in np.argsort(-noisy, kind="stable")[:count].tolist():
            longer.append(path.longer(following, position, eos, float(noisy[position])))
    return sorted(longer, key=lambda path: -path.noisy)[:count]


def _with_maximum(noisy: Floats, maximum: float) -> Floats:
    """Return Gumbel variables `(n,)` as they are distributed if their largest is `maximum`.

    With Z the largest of the values G, and T the maximum that it should be, each becomes

        -log(exp(-T) - exp(-Z) + exp(-G)),

    computed as Kool, van Hoof and Welling (2019) do, stable where the numbers are far apart.
    """
    with np.errstate(divide="ignore"):  # the largest one has log 0
        shift = maximum - noisy + np.log1p(-np.exp(noisy - noisy.max()))
    return maximum - np.maximum(shift, 0) - np.log1p(np.exp(-np.abs(shift)))


def number_rows(paths: Sequence[Sequence[Path]]) -> tuple[list[list[Path]], list[NextRow]]:
    """Number the decoder's rows of the next step; equal prefixes share one.

    Args:
        paths: the paths of each sentence.

    Returns:
        The paths with the numbers of their new rows, and these rows.
    """
    rows: dict[NextRow, int] = {}
    numbered = [
        [
            path
            if path.ended
            else path._replace(row=rows.setdefault(NextRow(path.row, path.tokens[-1]), len(rows)))
            for path in of_sentence
        ]
        for of_sentence in paths
    ]
    return numbered, list(rows)
