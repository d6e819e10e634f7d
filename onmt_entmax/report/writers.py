"""Write translations, the exactness report and its summary."""

import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from onmt_entmax.errors import counted
from onmt_entmax.files import is_stream
from onmt_entmax.report.alignment import Alignment
from onmt_entmax.report.counts import CertificateCounts, rate_lines
from onmt_entmax.report.mbr import MbrCounts, as_dict
from onmt_entmax.report.records import chosen_output
from onmt_entmax.search.certificate import ROUNDING, Hypothesis, SearchResult
from onmt_entmax.search.config import Penalties
from onmt_entmax.search.mbr import Decision
from onmt_entmax.search.sampling import Sample
from onmt_entmax.search.verify import Verification


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
        """Return the hypothesis as a report writes it; `scored`: with its score under penalties."""
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
        drawn = self.sample
        return {
            "text": self.text,
            "log_prob": drawn.log_prob,
            "prob": drawn.prob,
            "complete": drawn.complete,
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
        of_text = {decoded.text: decoded for decoded in self.hypotheses[::-1]}
        return [of_text[text] for text in self.mbr.texts[:n_best]]

    def lines(self, n_best: int) -> list[str]:
        """Return `n_best` lines of the output file, blank where there is no hypothesis."""
        texts = [decoded.text for decoded in self._chosen(n_best)]
        texts += [drawn.text for drawn in self.samples or ()]
        if not texts and self.unfinished is not None and not self.abstained:
            texts = [self.unfinished]
        return texts + [""] * (n_best - len(texts))

    def scores(self, n_best: int) -> list[float | None]:
        """Return the scores of `lines`, or log-probabilities without penalties; None: no output."""
        scores: list[float | None] = [each.hypothesis.score for each in self._chosen(n_best)]
        scores += [drawn.sample.log_prob for drawn in self.samples or ()]
        return scores + [None] * (n_best - len(scores))

    def alignments(self, n_best: int) -> list[str]:
        """Return the alignments of `lines`, blank where there is none."""
        links = [each.alignment for each in self._chosen(n_best)]
        found = ["" if each is None else each.pharaoh() for each in links]
        return found + [""] * (n_best - len(found))

    def _read(self) -> dict[str, Any]:
        """Return the source as a report writes it, with the tokens that training never saw."""
        lacks = {"unknown": self.unknown, "unseen": [token for _, token in self.unseen]}
        return {
            "id": self.id,
            "source": self.source,
            "source_tokens": self.source_tokens,
            **{name: Counter(tokens) for name, tokens in lacks.items() if tokens},
        }

    def record(self) -> dict[str, Any]:
        """Return the line's record in the exactness report.

        A blank line has no hypotheses and no mass, and its bound is 1: nothing is proven. Of
        samples nothing is either, and the record says only what was drawn.
        """
        if self.samples is not None:
            return {**self._read(), "samples": [drawn.record() for drawn in self.samples]}
        if self.result is None:
            empty = {"certificate": "none", "bound": 1.0, "gap": None, "proven": 0, "mass": 0.0}
            counts = {"dropped": 0, "truncated": 0, "excluded": 0.0, "finished": 0}
            return {"id": self.id, "source": self.source, **empty, **counts, "hypotheses": []}
        certificate = self.result.certificate
        record: dict[str, Any] = {
            **self._read(),
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
        if slack := self._slack():
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


@dataclass
class Summary(CertificateCounts):
    """Counts over the answers of one report, and the cost of their searches."""

    strict: int = 0  # exhaustive in the stricter reading, see `Certificate.strict`
    rows: int = 0
    support: int = 0
    steps: int = 0
    attended: int = 0
    verified: int = 0  # recomputed sentences
    disagreements: int = 0
    undecided: int = 0  # the budget ended before the recomputation was decided
    scored: bool = False  # whether hypotheses are ranked by scores with penalties
    constrained: int = 0  # sentences whose outputs must satisfy something
    satisfied: list[float] = field(default_factory=lambda: [0.0, 0.0])  # sums of both limits
    mbr: MbrCounts = field(default_factory=MbrCounts)
    sampled: bool = False  # whether there are samples and not hypotheses
    samples: int = 0
    distinct: int = 0  # different samples of a sentence
    cut: int = 0  # samples that are not complete
    ruled_out: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """Sentences without a possible output, by what the user asked of them."""

    def add(self, answer: Answer) -> None:
        """Count one answer."""
        self.sampled |= answer.samples is not None
        if answer.samples is not None and answer.source.strip():
            drawn = [each.sample for each in answer.samples]
            self.sentences += 1
            self.impossible += not drawn
            self.samples += len(drawn)
            self.distinct += len({(each.tokens, each.complete) for each in drawn})
            self.cut += sum(not each.complete for each in drawn)
            self.source.add(answer.source_tokens, answer.unknown, answer.unseen)
            return
        result = answer.result
        if result is None:
            self.blank += 1
            return
        self.scored |= answer.penalties.any
        level = result.certificate.level
        best = answer.hypotheses[0].text if answer.hypotheses else None
        self.count(level, result.finished, best, result.only)
        if level == "exhaustive" and best is None:
            self.ruled_out[answer.restricted_by] += 1
        self.abstained += answer.abstained
        self.source.add(answer.source_tokens, answer.unknown, answer.unseen)
        self.strict += level == "exhaustive" and result.certificate.strict
        self.rows += result.rows
        self.support += result.support
        if (interval := result.certificate.satisfied) is not None:
            self.constrained += 1
            self.satisfied = [a + b for a, b in zip(self.satisfied, interval, strict=True)]
        if answer.mbr is not None:
            self.mbr.add(answer.mbr, answer.hypotheses[0].text)
        self.steps += len(answer.attended)
        self.attended += sum(answer.attended)
        if answer.verification is not None:
            self.verified += 1
            self.disagreements += answer.verification.agrees is False
            self.undecided += answer.verification.agrees is None

    def as_dict(self) -> dict[str, Any]:
        """Return counts, and rates in percent of the sentences that are not blank."""
        if self.sampled:
            counts = {"sentences": self.sentences, "blank_lines": self.blank}
            drawn = {"samples": self.samples, "distinct": self.distinct, "cut": self.cut}
            return counts | drawn | self.source.as_dict()
        summary = super().as_dict() | {
            "strict_exhaustive_percent": self.percent(self.strict),
            "mean_output_support": round(self.support / max(self.rows, 1), 3),
            "decoder_rows_per_sentence": round(self.rows / max(self.sentences, 1), 2),
        }
        if self.steps:
            summary["mean_attention_support"] = round(self.attended / self.steps, 3)
        if self.constrained:
            least, most = (round(100 * each / self.constrained, 2) for each in self.satisfied)
            summary |= {"constrained": self.constrained, "satisfied_percent": [least, most]}
        if self.mbr.levels:
            summary |= self.mbr.as_dict()
        if self.verified:
            summary |= {"verified": self.verified, "disagreements": self.disagreements}
        if self.undecided:
            summary["undecided"] = self.undecided
        return summary

    def text(self) -> str:
        """Return the summary as lines of text."""
        if self.sampled:
            number = counted(self.sentences, "sentence")
            if self.impossible:
                number += f", {self.impossible} whose prefix is excluded"
            return (
                f"{number}, {counted(self.samples, 'sample')} "
                f"({self.distinct} different in their sentence), {self.cut} cut by the length limit"
            )
        rates, best = self.as_dict(), "highest scored" if self.scored else "most probable"
        rare = [
            (self.unfinished, "without a finished output"),
            *((number, _no_output(asked)) for asked, number in self.ruled_out.items()),
            (self.empty, "whose best output is empty"),
            (self.abstained, "abstained (an empty line)"),
            (self.verified, f"recomputed in float64, {self.disagreements} not as certified"),
            (self.undecided, "of these undecided"),
        ]
        numbers = [counted(self.sentences, "sentence")]
        numbers += [counted(self.blank, "blank line")] if self.blank else []
        numbers += [f"{n} {what}" for n, what in rare if n]
        satisfied = []
        if limits := rates.get("satisfied_percent"):
            least, most = (f"{each:6.2f}" for each in limits)
            until = f" to {most.strip()} %" if most != least else ""
            label = "mean probability that the constraints hold"
            satisfied = [f"  {label:43} {least} %{until}"]
        return "\n".join(
            [", ".join(numbers), *rate_lines(rates, best), *satisfied]
            + [f"{fact}: {advice}" for fact, advice in self.advice().items()]
        )


def _no_output(asked: tuple[str, ...]) -> str:
    """Return the reason why sentences have no possible output, given what was asked of them."""
    if asked:
        return f"without a possible output under {' and '.join(asked)}"
    return (
        "without a possible output (the model gives all probability to start and padding symbols)"
    )


def one_line(text: str) -> str:
    """Return a text as one line of a file, with spaces for line ends.

    Tokens have no white space, but a transform that is undone, or a stranger's report, may.
    """
    return re.sub(r"[\r\n]", " ", text)


def with_summary(report: Path | None) -> list[Path]:
    """Return the files of a report: itself and, unless it goes to a stream, its summary."""
    if report is None:
        return []
    if is_stream(report) or report.is_dir():
        return [report]
    return [report, report.with_name(report.name + ".summary.json")]


class AnswerWriter:
    """Writes answers to the output file and the exactness report.

    Args:
        output: file of `n_best` lines for each sentence.
        report: file of JSON lines, or None.
        n_best: hypotheses written for each sentence.
        alignments: file of their alignments, a line each, or None.
        abstain: outputs of less probability are replaced by empty lines; the report keeps them.
        scored: each output is followed by a tab and its score.
    """

    def __init__(
        self,
        output: IO[str],
        report: IO[str] | None,
        n_best: int,
        alignments: IO[str] | None = None,
        abstain: float = 0.0,
        scored: bool = False,
    ) -> None:
        self._output, self._report, self._n_best = output, report, n_best
        self._alignments, self._abstain, self._scored = alignments, abstain, scored
        self.summary = Summary()

    def write(self, answer: Answer) -> None:
        """Write one answer, in the order of the input."""
        if self._abstain and answer.result is not None and answer.prob < self._abstain:
            answer = replace(answer, abstained=True)
        lines = [one_line(line) for line in answer.lines(self._n_best)]
        if self._scored:
            scores = answer.scores(self._n_best)
            lines = [
                line if score is None else f"{line}\t{score}"
                for line, score in zip(lines, scores, strict=True)
            ]
        self._output.writelines(f"{line}\n" for line in lines)
        if self._alignments is not None:
            self._alignments.writelines(f"{each}\n" for each in answer.alignments(self._n_best))
        if self._report is not None:
            line = json.dumps(answer.record(), ensure_ascii=False, allow_nan=False)
            self._report.write(f"{line}\n")
        self.summary.add(answer)
