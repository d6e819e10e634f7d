"""The answer of one line: its outputs, and what is proven about them."""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from onmt_entmax.report.alignment import Alignment
from onmt_entmax.report.mbr import as_dict
from onmt_entmax.report.records import chosen_output
from onmt_entmax.search.certificate import ROUNDING, Hypothesis, SearchResult
from onmt_entmax.search.config import Penalties
from onmt_entmax.search.mbr import Decision
from onmt_entmax.search.sampling import Sample
from onmt_entmax.search.verify import Verification

# What the record of a blank line says: nothing is proven.
_BLANK = {
    "certificate": "none",
    "bound": 1.0,
    "gap": None,
    "proven": 0,
    "mass": 0.0,
    "dropped": 0,
    "truncated": 0,
    "excluded": 0.0,
    "finished": 0,
}


@dataclass(frozen=True)
class Decoded:
    """A hypothesis and its text."""

    text: str
    hypothesis: Hypothesis
    alignment: Alignment | None = None
    """If that was asked for."""
    tokens: str | None = None
    """The model's tokens in the order of the text, between spaces, where the text differs."""

    def record(self, scored: bool) -> dict[str, Any]:
        """Return the hypothesis as a report writes it.

        Args:
            scored: whether to add its score under penalties.
        """
        hypothesis = self.hypothesis
        record: dict[str, Any] = {
            "text": self.text,
            "log_prob": hypothesis.log_prob,
            "prob": hypothesis.prob,
        }
        if scored:  # null if a penalty is infinite
            record["score"] = hypothesis.score if math.isfinite(hypothesis.score) else None
        if self.tokens is not None:
            record["tokens"] = self.tokens
        if self.alignment is not None:
            record["alignment"] = self.alignment.as_dict()
        return record


@dataclass(frozen=True)
class Drawn:
    """A sample and its text."""

    text: str
    sample: Sample

    def record(self) -> dict[str, Any]:
        """Return the sample as a report writes it."""
        return {
            "text": self.text,
            "log_prob": self.sample.log_prob,
            "prob": self.sample.prob,
            "complete": self.sample.complete,
        }


@dataclass(frozen=True)
class Answer:
    """Result of one input line; a blank line has no result and no texts."""

    id: int
    """Number of the line, from 0."""
    source: str
    result: SearchResult | None = None
    hypotheses: tuple[Decoded, ...] = ()
    unfinished: str | None = None
    """Text of the best truncated hypothesis, if none finished."""
    attended: tuple[int, ...] = ()
    """Number of source positions of nonzero weight at each step of the best hypothesis."""
    verification: Verification | None = None
    merged: bool = False
    """Whether several token sequences can become the same text."""
    penalties: Penalties = field(default_factory=Penalties)
    """What the scores are that hypotheses are ranked by."""
    source_tokens: int = 0
    """Number of tokens of the source, after the transforms."""
    unknown: tuple[str, ...] = ()
    """Those that are not in the vocabulary: the certificate holds for `<unk>` in their place."""
    unseen: tuple[tuple[str, str], ...] = ()
    """Those that training did not see in the source's language, see `Vocabulary.unseen`."""
    copied: tuple[str, ...] = ()
    """Those that the model reads as placeholders, each once."""
    mbr: Decision | None = None
    """The texts by expected utility, if that was asked for and there are any."""
    samples: tuple[Drawn, ...] | None = None
    """What was drawn; None if the line was searched."""
    restricted_by: tuple[str, ...] = ()
    """What the user asked of the outputs, which may leave none: `prefix`, or an option's name."""
    abstained: bool = False
    """Whether the output file has empty lines in place of the texts."""

    @property
    def level(self) -> str:
        """What is proven, as `Inflection.level`; `none` for a blank line and for samples."""
        if self.result is None:
            return "none"
        return "only" if self.result.only else self.result.certificate.level

    @property
    def prob(self) -> float:
        """Probability of the best output, see `chosen_output`; 0 if none finished."""
        listed = [(decoded.text, decoded.hypothesis.prob) for decoded in self.hypotheses]
        return chosen_output(listed, () if self.mbr is None else self.mbr.texts)[1]

    def _chosen(self, n_best: int) -> list[Decoded]:
        """Return the hypotheses whose texts are written."""
        if self.abstained:
            return []
        if self.mbr is None:
            return list(self.hypotheses[:n_best])
        # Of several hypotheses with one text, the most probable: it comes last here.
        by_text = {decoded.text: decoded for decoded in reversed(self.hypotheses)}
        return [by_text[text] for text in self.mbr.texts[:n_best]]

    def lines(self, n_best: int) -> list[str]:
        """Return `n_best` lines of the output file, blank where there is no hypothesis."""
        texts = [decoded.text for decoded in self._chosen(n_best)]
        texts += [drawn.text for drawn in self.samples or ()]
        if not texts and self.unfinished is not None and not self.abstained:
            texts = [self.unfinished]
        return texts + [""] * (n_best - len(texts))

    def scores(self, n_best: int) -> list[float | None]:
        """Return the scores of `lines`, or log-probabilities without penalties; None: no output."""
        scores: list[float | None] = [decoded.hypothesis.score for decoded in self._chosen(n_best)]
        scores += [drawn.sample.log_prob for drawn in self.samples or ()]
        return scores + [None] * (n_best - len(scores))

    def alignments(self, n_best: int) -> list[str]:
        """Return the alignments of `lines`, blank where there is none."""
        lines = [
            "" if decoded.alignment is None else decoded.alignment.pharaoh()
            for decoded in self._chosen(n_best)
        ]
        return lines + [""] * (n_best - len(lines))

    def _source_record(self) -> dict[str, Any]:
        """Return the source as a report writes it, with the tokens that training never saw."""
        record: dict[str, Any] = {
            "id": self.id,
            "source": self.source,
            "source_tokens": self.source_tokens,
        }
        if self.unknown:
            record["unknown"] = Counter(self.unknown)
        if self.unseen:
            record["unseen"] = Counter(token for _, token in self.unseen)
        return record

    def record(self) -> dict[str, Any]:
        """Return the line's record in the exactness report.

        A blank line has no hypotheses and no mass, and its bound is 1: nothing is proven. Of
        samples nothing is either, and the record says only what was drawn.
        """
        if self.samples is not None:
            return {**self._source_record(), "samples": [drawn.record() for drawn in self.samples]}
        if self.result is None:
            return {"id": self.id, "source": self.source, **_BLANK, "hypotheses": []}
        certificate = self.result.certificate
        record: dict[str, Any] = {
            **self._source_record(),
            "certificate": certificate.level,
            "bound": certificate.bound,
            # JSON has no infinity: null if nothing was dropped, nothing finished, or a penalty is
            # infinite.
            "gap": certificate.gap if math.isfinite(certificate.gap) else None,
            "proven": certificate.proven,
            "mass": min(certificate.mass, 1.0),  # a sum of floats may exceed 1
            "dropped": certificate.dropped,
            "truncated": certificate.truncated,
            "excluded": min(certificate.excluded, 1.0),
            "finished": self.result.finished,
            "hypotheses": [decoded.record(self.penalties.any) for decoded in self.hypotheses],
        }
        if self.penalties.any:
            record["penalties"] = vars(self.penalties)
        if certificate.satisfied is not None:
            record["satisfied"] = list(certificate.satisfied)
        slack = self._slack()
        if slack:
            record["slack"] = slack
        if self.unfinished is not None:
            record["unfinished"] = self.unfinished
        if self.abstained:
            record["abstained"] = True
        if self.mbr is not None:
            record["mbr"] = as_dict(self.mbr)
        if self.verification is not None:
            record["verified"] = self.verification.agrees
        return record

    def _slack(self) -> float:
        """Return how much the probability of a text may exceed that of its hypotheses together.

        Certificates are about token sequences. If sequences that are not listed can become the same
        text, it may have all the probability that is not listed.
        """
        if self.result is None or not self.merged:
            return 0.0
        level, listed = self.result.certificate.level, self.hypotheses
        if level == "exhaustive" and self.result.finished == len(listed):
            return 0.0
        return max(0.0, 1.0 - sum(decoded.hypothesis.prob for decoded in listed)) + ROUNDING
