"""Time decoding on a GPU, and compare its outputs with the CPU's, for `gpu.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.data.garbage_collection import frozen_heap
from onmt_entmax.report.answers import Answer
from onmt_entmax.translator import Translator
from tools.bench import texts
from tools.bench.gpu_device import Device, Result

MODEL = Path(__file__).resolve().parent.parent.parent / "data" / "models" / "inflection-86"
BATCH_SIZE = 1024  # words decoded together
CPU_BATCH_SIZE = 256
SMOKE_TEST_STRIDE = 100  # on a CPU, only every 100th word is decoded
QUICK_STRIDE = 4  # with --quick, only every fourth decoded word is compared
# Largest differences that rounding explains. It decides a few words, whose two best outputs are
# about equally probable.
LARGEST_SHARE_THAT_DIFFERS = 1e-3
LARGEST_LOG_PROB_ERROR = 1e-4


def time_decoding(device: Device, quick: bool) -> Iterator[Result]:
    """Decode words with a beam of 5, and compare outputs and certificates with the CPU's.

    Args:
        device: decodes all words.
        quick: whether to compare fewer words.
    """
    lines = [" ".join(source) for source, _ in texts.INFLECTION.read(None)]
    if not device.is_gpu:
        lines = lines[::SMOKE_TEST_STRIDE]
    answers, seconds = _decode(device, lines)
    compared = slice(None, None, QUICK_STRIDE if quick else 1)
    expected = Translator.from_folders(MODEL).answers(lines[compared], CPU_BATCH_SIZE)
    differences = compare_answers(answers[compared], expected)
    yield {
        "words": len(lines),
        "words_a_second": round(len(lines) / seconds),
        "compared": differences.compared,
        "differ": len(differences.cases),
        "log_prob_within": f"{differences.log_prob_error:.1e}",
        "cases": differences.cases,
        "ok": differences.are_rounding,
    }


class _Decoded(NamedTuple):
    """Answers to source lines, and the seconds in which they were decoded."""

    answers: list[Answer]
    seconds: float


def _decode(device: Device, lines: Sequence[str]) -> _Decoded:
    """Decode source lines twice; return the answers and the time of the second run."""
    translator = Translator.from_folders(MODEL, device=device.device)
    list(translator.answers(lines, BATCH_SIZE))  # compiles a kernel for each shape of batches
    with frozen_heap():  # as the command line does when it starts
        start = device.clock()
        answers = list(translator.answers(lines, BATCH_SIZE))
        return _Decoded(answers, device.clock() - start)


@dataclass
class Differences:
    """Differences of answers to those of the CPU.

    Attributes:
        compared: number of compared answers.
        cases: answers with other outputs or another certificate.
        log_prob_error: largest difference of the best output's log-probability in all other
            answers.
    """

    compared: int = 0
    cases: list[Result] = field(default_factory=list)
    log_prob_error: float = 0.0

    @property
    def are_rounding(self) -> bool:
        """Whether rounding explains the differences."""
        return (
            len(self.cases) <= LARGEST_SHARE_THAT_DIFFERS * self.compared
            and self.log_prob_error < LARGEST_LOG_PROB_ERROR
        )


def compare_answers(answers: Iterable[Answer], on_cpu: Iterable[Answer]) -> Differences:
    """Compare answers with those of the CPU to the same lines."""
    differences = Differences()
    for answer, expected in zip(answers, on_cpu, strict=True):
        differences.compared += 1
        here, cpu = _level_and_texts(answer), _level_and_texts(expected)
        if here != cpu:
            differences.cases.append({"source": expected.source, "here": here, "cpu": cpu})
        elif expected.hypotheses:
            error = abs(_best_log_prob(answer) - _best_log_prob(expected))
            differences.log_prob_error = max(differences.log_prob_error, error)
    return differences


def _level_and_texts(answer: Answer) -> tuple[str | None, list[str]]:
    """Return the level of the certificate, None without a search, and the outputs."""
    level = answer.result.certificate.level if answer.result else None
    return level, [decoded.text for decoded in answer.hypotheses]


def _best_log_prob(answer: Answer) -> float:
    """Return the log-probability of the best output."""
    return answer.hypotheses[0].hypothesis.log_prob
