"""Exclude the tokens that requests rule out at one step, and count their probability.

Certificates are about the sequences that are allowed. So what a token excludes is not dropped, and
does not join D (see certificate.py); each sentence's proof counts its probability apart, for
`Certificate.excluded`, `log_excluded_bound` and `satisfied`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from onmt_entmax.nn.support import Distribution
from onmt_entmax.search.arrays import Ints, largest_within
from onmt_entmax.search.automaton import RowAutomata
from onmt_entmax.search.constraints import Constraints
from onmt_entmax.search.log_probs import look_up, remove
from onmt_entmax.search.prefixes import Rows
from onmt_entmax.search.sentences import Sentence


class _Pairs(NamedTuple):
    """Pairs of a row and a token that may not follow it."""

    row: Ints
    """`(pairs,)`"""
    token: Ints
    """`(pairs,)`"""


@dataclass(frozen=True)
class Exclusion:
    """What the requests of the active sentences exclude after their live prefixes."""

    rows: Rows
    """The live prefixes."""
    sentences: Sequence[Sentence]
    """The active sentences; their proofs count what is excluded."""
    automata: RowAutomata
    """The automata of these sentences."""
    constraints: Constraints
    """The constraints on all outputs."""
    eos: int
    vocabulary_size: int

    def apply(self, distribution: Distribution) -> tuple[Distribution, Ints]:
        """Remove the tokens that the requests rule out.

        Args:
            distribution: the distributions after the live prefixes; may be changed in place.

        Returns:
            The distribution without these tokens, and for each row `(rows,)` how many tokens of
            positive probability it lost.
        """
        forbidden = self._forbidden()
        # Before anything is removed, since this also counts the tokens that decide for `SATISFIED`.
        violating = self._violating(distribution) if self.automata else None
        # Which of the forbidden outputs would satisfy their automaton is not computed.
        distribution, lost = self._remove(distribution, forbidden, decided=False)
        if violating is not None:
            distribution, also_lost = self._remove(distribution, violating, decided=True)
            lost = lost + also_lost
        return distribution, lost

    def _forbidden(self) -> _Pairs:
        """Return the tokens that bans, lengths, repeated n-grams and forced prefixes rule out."""
        rows, constraints = self.rows, self.constraints
        tokens = []
        for index, length, prefix in zip(
            rows.sentence_index.tolist(), rows.lengths.tolist(), rows.prefixes, strict=True
        ):
            request = self.sentences[index].request
            forbidden = request.excluded
            if length < len(request.forced):
                every = np.arange(self.vocabulary_size)
                forbidden = np.delete(every, request.forced[length])
            elif length < constraints.min_length or constraints.block_ngram_repeat:
                more = constraints.forbidden(prefix.tokens(), self.eos)
                forbidden = np.array(sorted({*forbidden.tolist(), *more}), dtype=np.int64)
            tokens.append(forbidden)
        numbers = list(map(len, tokens))
        return _Pairs(np.repeat(np.arange(len(tokens)), numbers), np.concatenate(tokens))

    def _violating(self, distribution: Distribution) -> _Pairs:
        """Return the tokens after which a row's automaton can no longer be satisfied.

        Adds their probability, and that of the tokens after which it must be, to the proofs.
        """
        rows = self.rows
        row, token, satisfied = self.automata.deciding(
            rows.sentence_index, rows.automaton_states, distribution
        )
        prob = np.exp(rows.log_probs[row] + look_up(distribution, row, token))
        for index, is_satisfied, value in zip(
            rows.sentence_index[row].tolist(), satisfied.tolist(), prob.tolist(), strict=True
        ):
            proof = self.sentences[index].proof
            if is_satisfied:
                proof.satisfied += value
            else:
                proof.violated += value
        return _Pairs(row[~satisfied], token[~satisfied])

    def _remove(
        self, distribution: Distribution, pairs: _Pairs, *, decided: bool
    ) -> tuple[Distribution, Ints]:
        """Remove tokens, and add their probability to the proofs of their sentences.

        Args:
            distribution: the distributions after the live prefixes; may be changed in place.
            pairs: what to remove.
            decided: whether these tokens violate the automata of their rows. If not, outputs that
                begin with them may satisfy the automata or not.

        Returns:
            As `apply`.
        """
        rows, sentences = self.rows, self.sentences
        distribution, row, log_prob = remove(distribution, pairs.row, pairs.token)
        if len(row):
            sentence, log_prob = rows.sentence_index[row], rows.log_probs[row] + log_prob
            mass = np.bincount(sentence, np.exp(log_prob), len(sentences))
            largest = largest_within(sentence, log_prob, len(sentences))
            for index in np.unique(sentence).tolist():
                proof = sentences[index].proof
                proof.exclude(float(mass[index]), float(largest[index]))
                if not decided:
                    proof.undecided = True
        return distribution, np.bincount(row, minlength=len(rows.prefixes))
