"""The books of a search: for each sentence what was finished, dropped, cut and excluded."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from onmt_entmax.search.certificate import Certificate, Level
from onmt_entmax.search.expansion import Floats, Ints, largest_within, rank_within


class Ledger:
    """One line of books per sentence in flight, as arrays over the sentences.

    Args:
        sentences: how many lines.
        ranks: of how many finished hypotheses the scores are kept in `top`.
        beam: how many live prefixes a sentence may have.
    """

    def __init__(self, sentences: int, ranks: int, beam: int = 1) -> None:
        dtype = [
            ("beam", "i8"),  # how many live prefixes the sentence may have
            ("may_narrow", "?"),  # whether that becomes one when there are more
            ("length", "i8"),  # tokens of the live prefixes
            ("finished", "i8"),  # size of F
            ("mass", "f8"),  # sum of the probabilities of F
            ("top", "f8", (ranks,)),  # the best scores of F, best first
            ("bound", "f8"),  # the largest log-probability in D
            ("dropped", "i8"),
            ("truncated", "i8"),
            ("excluded", "f8"),
            ("excluded_bound", "f8"),
            ("strict", "?"),
            ("rows", "i8"),
            ("support", "i8"),
        ]
        self.lines = np.zeros(sentences, dtype=dtype)
        for name in ("top", "bound", "excluded_bound"):
            self.lines[name] = -np.inf
        self.lines["strict"] = True
        self.lines["beam"] = beam

    def __len__(self) -> int:
        return len(self.lines)

    def select(self, wanted: NDArray[np.bool_]) -> None:
        """Keep the wanted lines only."""
        self.lines = self.lines[wanted]

    def append(self, other: Ledger) -> None:
        """Add the lines of another ledger at the end."""
        self.lines = np.concatenate([self.lines, other.lines])

    def count(self, name: str, sentence: Ints, amount: NDArray[np.generic] | None = None) -> None:
        """Add an amount (default 1) to a column, for each entry of `sentence`."""
        added = np.bincount(sentence, weights=amount, minlength=len(self))
        self.lines[name] += added.astype(self.lines[name].dtype)

    def raise_bound(self, name: str, sentence: Ints, log_prob: Floats) -> None:
        """Raise a bound to the largest of the log-probabilities given for a sentence."""
        largest = largest_within(sentence, log_prob, len(self))
        self.lines[name] = np.maximum(self.lines[name], largest)

    def finish(self, sentence: Ints, log_prob: Floats, score: Floats) -> None:
        """Add finished hypotheses (n,) to F."""
        self.count("finished", sentence)
        self.count("mass", sentence, np.exp(log_prob))
        top = self.lines["top"]
        ranks = top.shape[1]
        if ranks == 1:
            np.maximum.at(top[:, 0], sentence, score)
            return
        order, rank = rank_within(sentence, score)
        order, rank = order[rank < ranks], rank[rank < ranks]
        new = np.full_like(top, -np.inf)
        new[sentence[order], rank] = score[order]
        self.lines["top"] = -np.sort(-np.concatenate([top, new], axis=1), axis=1)[:, :ranks]

    def certify(
        self, line: int, scores: list[float], limit: Callable[[float], float]
    ) -> Certificate:
        """The certificate of one sentence.

        Args:
            line: the sentence's.
            scores: of the returned hypotheses, best first.
            limit: maps a prefix's log-probability to the best score that a string starting with it
                can have; the identity where strings are ranked by probability.
        """
        books = self.lines[line]
        bound, cut = float(books["bound"]), int(books["truncated"])
        complete = int(books["dropped"]) + cut == 0
        best_unseen = -np.inf if complete else limit(bound)
        proven = sum(score >= best_unseen for score in scores)
        level: Level = "exhaustive" if complete else "optimal" if proven > 0 else "none"
        best = scores[0] if scores else -np.inf
        return Certificate(
            level=level,
            log_bound=bound,
            gap=np.inf if complete else float(best - best_unseen),
            proven=proven,
            mass=float(books["mass"]),
            dropped=int(books["dropped"]),
            truncated=cut,
            excluded=float(books["excluded"]),
            log_excluded_bound=float(books["excluded_bound"]),
            strict=complete and bool(books["strict"]),
        )
