"""What `onmt-entmax experiment` measures, compares and says as it ends."""

import json
import logging
import signal
import time
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import remember_best
from onmt_entmax.cli import experiment
from onmt_entmax.experiment import measures
from onmt_entmax.experiment.matrix import Cell
from onmt_entmax.experiment.measures import last_measurement, measure
from onmt_entmax.experiment.runner import Processes, Runner, Stopped
from onmt_entmax.experiment.table import Row, differences, markdown, status
from tests.ended import ended
from tests.matrices import read, write_matrix


def test_figures_are_those_of_the_best_checkpoint_and_its_report(copied: Path) -> None:
    training = read(copied).trainings()[0]
    best = {"metric": "loss", "value": 0.125}
    remember_best(training.run, 2, **best)  # of 4
    assert training.models() == [training.run / "step_2"]
    references = training.matrix.reference.read_text().splitlines()
    wrong = ["x" if i % 4 == 0 else line for i, line in enumerate(references)]  # half of a's
    (training.folder / "dev.pred").write_text("".join(f"{line}\n" for line in wrong))
    names = {
        "exhaustive": "exhaustive_percent",
        "exhaustive_strict": "strict_exhaustive_percent",
        "optimal": "argmax_proven_percent",
        "one_string": "single_hypothesis_percent",
        "output_support": "mean_output_support",
        "attention_support": "mean_attention_support",
    }
    summary = {name: float(i) for i, name in enumerate(names.values())}
    (training.folder / "dev.report.jsonl.summary.json").write_text(json.dumps(summary))
    figures = measure(training)
    assert {name: figures[name] for name in names} == dict(zip(names, range(6), strict=True))
    assert (figures["accuracy"], figures["languages"]) == (75, {"a": 50, "b": 100})
    assert (figures["step"], figures["output_alpha"], figures["attention_alpha"]) == (2, 2, 1.5)
    assert figures["training_seconds"] == last_measurement(training.run, "valid")["seconds"]
    of_the_step = last_measurement(training.run, "valid", 2)["token_accuracy"]
    assert figures["token_accuracy"] == pytest.approx(of_the_step, abs=1e-4)
    row = status([training.matrix]).splitlines()[1].split()
    assert row[4:] == ["4", best["metric"], f"{best['value']:.4g}", "2", "75.00"]


def test_each_job_has_a_processor_of_its_own(copied: Path, monkeypatch) -> None:
    matrix, cores = read(copied), set()
    for training in matrix.trainings():
        (training.folder / "figures.json").unlink()

    def run(self: Processes, words: list[str], log: Path, core: int, *_: object) -> None:
        time.sleep(0.2)
        cores.add(core)

    monkeypatch.setattr(Processes, "run", run)
    assert Runner(matrix, matrix.trainings(), 2, [5, 7]).run() == 0
    assert cores == {5, 7}


def test_a_signal_is_the_status_of_the_command(copied: Path, monkeypatch, capfd) -> None:
    (read(copied).trainings()[0].folder / "figures.json").unlink()

    def run(self: Processes, *_: object) -> None:
        self.pass_on(signal.SIGTERM)
        raise Stopped

    monkeypatch.setattr(Processes, "run", run)
    assert ended(experiment.main, ["run", str(copied)]) == 128 + signal.SIGTERM
    assert "stopped; the same command continues" in capfd.readouterr().err


def test_a_lost_terminal_asks_trainings_to_save_and_end() -> None:
    sent = []

    class Process:
        def send_signal(self, number: int) -> None:
            sent.append(number)

    processes = Processes()
    processes._running.add(Process())  # type: ignore[arg-type]
    processes.pass_on(signal.SIGHUP)
    assert (sent, processes.received) == ([signal.SIGHUP], signal.SIGHUP)


@pytest.mark.parametrize(
    ("others", "apart"),
    [((73, 74), "yes"), ((60, 61), "yes"), ((72, 75), "no"), ((60, 70), "no"), ((71, 71), "no")],
)
def test_all_runs_are_apart_where_each_is_better_or_each_is_worse(others, apart) -> None:
    rows = [
        Row(Cell(name, {}, {}), [{"accuracy": value} for value in values], None)
        for name, values in (("first", (70, 72)), ("other", others))
    ]
    ((_, difference, _, found),) = differences(rows, "accuracy")
    assert (float(difference), found) == (sum(others) / 2 - 71, apart)


@pytest.mark.parametrize(
    ("paper", "told"), [("high", ("87 %", "81 %", "96.00")), ("medium", ("79 %", "66 %", "86.64"))]
)
def test_the_papers_figures_are_of_the_same_setting(tmp_path: Path, paper, told) -> None:
    line = markdown([read(write_matrix(tmp_path, paper=paper))]).splitlines()[-1]
    assert f"{told[0]} of the words, one form for {told[1]}. UZH (2018): {told[2]}." in line


def test_nothing_is_said_about_tokenised_translations(monkeypatch, caplog) -> None:
    """sacrebleu warns of a hundred lines that end in a tokenised period."""
    caplog.set_level(logging.WARNING, "sacrebleu")
    lines = ["a b c d ."] * 100
    monkeypatch.setattr(measures, "_texts", lambda work: (lines, lines, lines))
    monkeypatch.setattr(measures, "_tokenizer", lambda work: "none")
    assert measures.bleu(None)["bleu"] == pytest.approx(100)
    assert measures.compared_bleu([None, None]) == [(0.0, 1.0)]
    assert not caplog.records
