"""Decoding, for `gpu.py`: its speed on a GPU, and whether it finds what the CPU finds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from onmt_entmax.report.answers import Answer
from onmt_entmax.train.contexts import frozen_heap
from onmt_entmax.translator import Translator
from tools.bench import texts
from tools.bench.gpu_device import Device, Result

MODEL = Path(__file__).resolve().parent.parent.parent / "data" / "models" / "inflection-86"
TOGETHER = 1024  # words decoded in a batch
TOGETHER_ON_CPU = 256
ONE_IN = 100  # words that are decoded to try the benchmark on a CPU
QUICK_ONE_IN = 4  # of those, words that are compared if it is quick
# Differences that are no faults. Rounding decides a few words, whose best outputs are about as
# probable.
LARGEST_SHARE_THAT_DIFFERS = 1e-3
LARGEST_LOG_PROB_ERROR = 1e-4


def time_decoding(device: Device, quick: bool) -> Iterator[Result]:
    """Decode words with a beam of 5, and compare outputs and certificates with the CPU's."""
    lines = [" ".join(source) for source, _ in texts.INFLECTION.read(None)]
    if not device.is_gpu:
        lines = lines[::ONE_IN]
    compared = lines[::QUICK_ONE_IN] if quick else lines
    translator = Translator.from_folders(MODEL, device=device.device)
    list(translator.answers(lines, TOGETHER))  # compiles kernels of all numbers of rows, lengths
    with frozen_heap():  # as the command line does when it starts
        start = device.clock()
        answers = list(translator.answers(lines, TOGETHER))
        seconds = device.clock() - start
    by_source = {answer.source: answer for answer in answers}
    on_cpu = Translator.from_folders(MODEL).answers(compared, TOGETHER_ON_CPU)
    differences = _differences(by_source, on_cpu)
    few_differ = len(differences.cases) <= LARGEST_SHARE_THAT_DIFFERS * len(compared)
    yield {
        "words": len(lines),
        "words_a_second": round(len(lines) / seconds),
        "compared": len(compared),
        "differ": len(differences.cases),
        "log_prob_within": f"{differences.of_log_probs:.1e}",
        "cases": differences.cases,
        "ok": few_differ and differences.of_log_probs < LARGEST_LOG_PROB_ERROR,
    }


@dataclass
class _Differences:
    """Differences of answers to those of the CPU.

    Attributes:
        cases: answers with other outputs or another certificate.
        of_log_probs: the largest one of best outputs, in the other answers.
    """

    cases: list[Result] = field(default_factory=list)
    of_log_probs: float = 0.0


def _differences(here: Mapping[str, Answer], on_cpu: Iterable[Answer]) -> _Differences:
    """Compare answers, by source, with those of the CPU."""
    differences = _Differences()
    for expected in on_cpu:
        answer = here[expected.source]
        proven, expected_proven = _proven(answer), _proven(expected)
        if proven != expected_proven:
            differences.cases.append(
                {"source": expected.source, "here": proven, "cpu": expected_proven}
            )
        elif expected.hypotheses:
            difference = abs(_best_log_prob(answer) - _best_log_prob(expected))
            differences.of_log_probs = max(differences.of_log_probs, difference)
    return differences


def _proven(answer: Answer) -> tuple[str | None, list[str]]:
    """Return the level of an answer's certificate, and its outputs."""
    level = answer.result.certificate.level if answer.result else None
    return level, [decoded.text for decoded in answer.hypotheses]


def _best_log_prob(answer: Answer) -> float:
    """Return the log-probability of the best output."""
    return answer.hypotheses[0].hypothesis.log_prob
