"""The numbers that a certificate is made of, counted while a search runs.

F are the finished hypotheses of a sentence, and D its prefixes of positive probability that nobody
will follow: dropped, or cut by the length limit (see `certificate.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from onmt_entmax.search.certificate import Certificate, Level
from onmt_entmax.search.expansion import Flags, Floats, Ints, largest_within, rank_within


class Statistics:
    """Search statistics of each active sentence: the columns of one table.

    Args:
        sentences: number of rows.
        ranks: how many of the best scores of F the column `top` keeps.
        beam: live prefixes that a sentence may have.
    """

    def __init__(self, sentences: int, ranks: int, beam: int = 1) -> None:
        dtype = [
            ("beam", "i8"),  # live prefixes that the sentence may have
            ("may_narrow", "?"),  # whether `beam` becomes 1 when there are more
            ("length", "i8"),  # tokens of the live prefixes
            ("finished", "i8"),  # size of F
            ("mass", "f8"),  # sum of the probabilities of F
            ("top", "f8", (ranks,)),  # the best scores of F, best first
            ("bound", "f8"),  # the largest log-probability in D
            ("dropped", "i8"),  # prefixes of D that were dropped
            ("truncated", "i8"),  # prefixes of D that the length limit cut
            ("excluded", "f8"),  # probability that the request excluded
            ("excluded_bound", "f8"),  # the largest log-probability of an excluded prefix
            # Of the model without any request; only of sentences with an automaton:
            ("satisfied", "f8"),  # probability of the prefixes that decide that it is satisfied
            ("violated", "f8"),  # and of those that decide that it is not
            ("missed", "?"),  # whether another request excluded a token, which may decide nothing
            ("strict", "?"),  # whether finished and live prefixes always fitted the beam
            ("rows", "i8"),  # prefixes that the decoder computed
            ("support", "i8"),  # next tokens of positive probability, summed over these
        ]
        self.table = np.zeros(sentences, dtype=dtype)
        for name in ("top", "bound", "excluded_bound"):
            self.table[name] = -np.inf
        self.table["strict"] = True
        self.table["beam"] = beam

    def __len__(self) -> int:
        return len(self.table)

    def select(self, wanted: Flags) -> None:
        """Keep only the sentences flagged in `wanted` `(sentences,)`."""
        self.table = self.table[wanted]

    def append(self, other: Statistics) -> None:
        """Add the sentences of another table at the end."""
        self.table = np.concatenate([self.table, other.table])

    # Below, `sentence` (n,) says for each of n items which row of the table it belongs to.

    def count(self, name: str, sentence: Ints, amount: NDArray[np.generic] | None = None) -> None:
        """Add an amount `(n,)`, by default 1, to a column."""
        added = np.bincount(sentence, weights=amount, minlength=len(self))
        self.table[name] += added.astype(self.table[name].dtype)

    def raise_bound(self, name: str, sentence: Ints, log_prob: Floats) -> None:
        """Raise a bound to the largest log-probability of each sentence's items."""
        largest = largest_within(sentence, log_prob, len(self))
        self.table[name] = np.maximum(self.table[name], largest)

    def drop(self, sentence: Ints, log_prob: Floats) -> None:
        """Add dropped prefixes `(n,)` to D."""
        self.count("dropped", sentence)
        self.raise_bound("bound", sentence, log_prob)

    def exclude(self, sentence: Ints, log_prob: Floats) -> None:
        """Count prefixes `(n,)` that the request rules out."""
        self.count("excluded", sentence, np.exp(log_prob))
        self.raise_bound("excluded_bound", sentence, log_prob)

    def finish(self, sentence: Ints, log_prob: Floats, score: Floats) -> None:
        """Add finished hypotheses `(n,)` to F."""
        self.count("finished", sentence)
        self.count("mass", sentence, np.exp(log_prob))
        top = self.table["top"]
        ranks = top.shape[1]
        if ranks == 1:  # the default, without the sort
            np.maximum.at(top[:, 0], sentence, score)
            return
        order, rank = rank_within(sentence, score)
        order, rank = order[rank < ranks], rank[rank < ranks]
        new = np.full_like(top, -np.inf)
        new[sentence[order], rank] = score[order]
        self.table["top"] = -np.sort(-np.concatenate([top, new], axis=1), axis=1)[:, :ranks]

    def certify(
        self,
        place: int,
        scores: list[float],
        attainable: Callable[[float], float],
        constrained: bool,
    ) -> Certificate:
        """Return the certificate of one sentence.

        Args:
            place: row of the sentence.
            scores: of the returned hypotheses, best first.
            attainable: maps the log-probability of a prefix to the best score that a hypothesis
                starting with it can have; the identity without penalties.
            constrained: whether the sentence has an automaton.
        """
        row = self.table[place]
        bound, truncated = float(row["bound"]), int(row["truncated"])
        complete = int(row["dropped"]) + truncated == 0
        best_unseen = -np.inf if complete else attainable(bound)
        proven = sum(score >= best_unseen for score in scores)
        level: Level = "exhaustive" if complete else "optimal" if proven > 0 else "none"
        best = scores[0] if scores else -np.inf
        satisfied = None
        if constrained:
            least = min(float(row["satisfied"]), 1.0)  # a sum of floats may exceed 1
            all_known = complete and not row["missed"]
            satisfied = least, least if all_known else max(least, 1.0 - float(row["violated"]))
        return Certificate(
            level=level,
            log_bound=bound,
            gap=np.inf if complete else float(best - best_unseen),
            proven=proven,
            mass=float(row["mass"]),
            dropped=int(row["dropped"]),
            truncated=truncated,
            excluded=float(row["excluded"]),
            log_excluded_bound=float(row["excluded_bound"]),
            strict=complete and bool(row["strict"]),
            satisfied=satisfied,
        )
