"""Decoding, for `gpu.py`: its speed on a GPU, and whether it finds what the CPU finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from onmt_entmax.report.answers import Answer
from onmt_entmax.train.contexts import frozen_heap
from onmt_entmax.translator import Translator
from tools.bench import batches as text
from tools.bench.gpu_device import Device
from tools.bench.gpu_steps import Result

MODEL = Path(__file__).resolve().parent.parent.parent / "data" / "models" / "inflection-86"
TOGETHER = 1024  # words decoded in a batch


def time_decoding(device: Device, quick: bool) -> Iterator[Result]:
    """Decode words with a beam of 5, and compare outputs and certificates with the CPU's."""
    lines = [" ".join(source) for source, _ in text.inflection(None)]
    lines = lines if device.is_gpu else lines[::100]
    sample = lines[:: 4 if quick else 1]
    here = Translator.from_folders(MODEL, device=device.device)
    list(here.answers(lines, TOGETHER))  # compiles the kernels of all numbers of rows and lengths
    with frozen_heap():  # as the command line does when it starts
        start = device.clock()
        answers = list(here.answers(lines, TOGETHER))
        seconds = device.clock() - start
    by_source = {answer.source: answer for answer in answers}
    cases = []  # of different answers
    furthest = 0.0  # largest difference of log-probabilities
    for expected in Translator.from_folders(MODEL).answers(sample, TOGETHER // 4):
        answer = by_source[expected.source]
        here_proven, cpu_proven = _proven(answer), _proven(expected)
        if here_proven != cpu_proven:
            cases.append({"source": expected.source, "here": here_proven, "cpu": cpu_proven})
        elif expected.hypotheses:
            log_prob = answer.hypotheses[0].hypothesis.log_prob
            distance = abs(log_prob - expected.hypotheses[0].hypothesis.log_prob)
            furthest = max(furthest, distance)
    yield {
        "words": len(lines),
        "words_a_second": round(len(lines) / seconds),
        "compared": len(sample),
        "differ": len(cases),
        "log_prob_within": f"{furthest:.1e}",
        "cases": cases,
        # Rounding decides a few words, whose best outputs are about as probable.
        "ok": 1000 * len(cases) <= len(sample) and furthest < 1e-4,
    }


def _proven(answer: Answer) -> tuple[str | None, list[str]]:
    """Return the level of an answer's certificate, and its outputs."""
    level = answer.result.certificate.level if answer.result else None
    return level, [decoded.text for decoded in answer.hypotheses]
