"""The results of `score`: a record of each target, and sums over all targets."""

import math
from collections import Counter
from dataclasses import dataclass, field

from onmt_entmax.data.reader import EncodedSource
from onmt_entmax.data.unknown import UnknownTokens
from onmt_entmax.search import TargetScore

_END = "</s>"


@dataclass(frozen=True)
class Scored:
    """A target with its source, its score, and the tokens that the model cannot write.

    Attributes:
        source: the source.
        target: tokens of the target.
        score: score of the target and its end symbol.
        unknown_target: target tokens that the model cannot write.
    """

    source: EncodedSource
    target: tuple[str, ...]
    score: TargetScore
    unknown_target: tuple[str, ...]


@dataclass
class Totals:
    """Sums over all targets.

    Attributes:
        targets: number of targets.
        possible: number of targets that the model can produce.
        log_prob: sum of their log-probabilities, in nats.
        tokens: number of tokens of all targets, end symbols included.
        first: number of tokens that are the most probable ones of their steps.
        unknown: unknown tokens of the sources.
        unknown_target: unknown tokens of the targets.
    """

    targets: int = 0
    possible: int = 0
    log_prob: float = 0.0
    tokens: int = 0
    first: int = 0
    unknown: UnknownTokens = field(default_factory=UnknownTokens)
    unknown_target: UnknownTokens = field(default_factory=UnknownTokens)

    def add(self, scored: Scored) -> None:
        """Count one target."""
        score, source = scored.score, scored.source
        self.unknown.add(len(source.words), source.unknown, source.unseen)
        self.unknown_target.add(len(scored.target), scored.unknown_target)
        self.targets += 1
        self.tokens += len(score.steps)
        self.first += sum(step.rank == 1 for step in score.steps)
        if score.excluded_at is None:
            self.possible += 1
            self.log_prob += score.log_prob

    def text(self) -> str:
        """Return the summary to print."""
        if not self.targets:
            return "no targets"
        mean = f"{self.log_prob / self.possible:.4f}" if self.possible else "-"
        lines = [
            f"targets {self.targets}",
            f"possible {self.possible} ({self.possible / self.targets:.2%})",
            f"mean log-probability of the possible ones {mean}",
            f"tokens that are the most probable {self.first / self.tokens:.2%}",
        ]
        for side, tokens in (("source", self.unknown), ("target", self.unknown_target)):
            if tokens.unknown:
                lines.append(f"{side} tokens not in the vocabulary {tokens.percent:.2f}%")
        return "\n".join(lines)


def record(number: int, scored: Scored) -> dict[str, object]:
    """Return a score as an object for JSON, in which null stands for a log-probability of -inf."""
    score = scored.score
    tokens_by_name = {
        "unknown": scored.source.unknown,
        "unseen": [token for _, token in scored.source.unseen],
        "unknown_target": scored.unknown_target,
    }
    return {
        "id": number,
        **{name: Counter(tokens) for name, tokens in tokens_by_name.items() if tokens},
        "log_prob": score.log_prob if score.excluded_at is None else None,
        "excluded_at": score.excluded_at,
        "steps": [
            {
                "token": token,
                "log_prob": step.log_prob if step.log_prob > -math.inf else None,
                "rank": step.rank,
                "support": step.support,
            }
            for token, step in zip([*scored.target, _END], score.steps, strict=True)
        ],
    }
