"""The log of a run: what people read, without clock and speed, and what a resumed run keeps."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax.cli.train import main as train
from onmt_entmax.cli.translate import main as translate
from onmt_entmax.config import OptimizerConfig, TrainingConfig
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.vocabulary import VocabularyConfig
from onmt_entmax.strings.task import INFLECTION, StringTask
from onmt_entmax.strings.units import Unit
from onmt_entmax.train import log
from onmt_entmax.train.log import Log, Standing
from onmt_entmax.train.run import next_command
from tests.commands import json_lines
from tests.data.corpora import data_config, write_corpus
from tests.toy import write_config

CONFIG = TrainingConfig(OptimizerConfig(), train_steps=4000, selection="exact_match")
RATE = {"learning_rate": 0.001949, "epoch": 1}
MEASURES = {"loss": 0.0828, "token_accuracy": 94.46, "support": 2.038, "exact_match": 61.957}


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A clock that stands still until a test moves it."""
    now = [100.0]
    monkeypatch.setattr(log.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def said(capsys):
    """Return the lines on stderr since the last call, without the clock."""
    return lambda: [line.split("  ", 1)[1] for line in capsys.readouterr().err.splitlines()]


def rows(folder: Path) -> list[dict]:
    return json_lines(folder / "metrics.jsonl")


def test_lines_have_position_and_averages(tmp_path, clock, said):
    with closing(Log(tmp_path, 0, CONFIG, 1.5, None)) as written:
        written.advance(Standing(50, 0.2, 3.0))
        for loss, tokens, correct, support in ((60.0, 400, 350, 1500), (27.126, 200, 192.8, 700.2)):
            written.add(loss, tokens, correct, support)
        written.waited(1.3)
        clock[0] += 75
        written.paused(10)
        written.training(Standing(250, 1.96, 30.0), RATE)
        written.validation(Standing(250, 1.96, 31.0), MEASURES, best_step=250)
        written.validation(Standing(4000, 31.4, 32.0), MEASURES, best_step=250)
        clock[0] += 1
        written.training(Standing(4000, 31.4, 32.0), {**RATE, "skipped": 2, "gpu_gb": 2.6437})
    assert len(said()) == 4
    train_row, valid_row, *_ = rows(tmp_path)
    expected = {
        "loss": 87.126 / 600, "token_accuracy": 100 * 542.8 / 600, "support": 2200.2 / 600,
        "tokens_per_second": 600 / 65, "input_percent": 2.0,
    }  # fmt: skip
    assert train_row == {"kind": "train", "step": 250, **RATE, **expected}
    assert valid_row == {"kind": "valid", "step": 250, **MEASURES}


def test_the_time_left_is_that_of_the_first_limit(tmp_path, clock, said):
    """A limit of time needs no speed."""
    config = replace(CONFIG, max_seconds=100.0)
    with closing(Log(tmp_path, 0, config, 1.5, None)) as written:
        written.validation(Standing(0, 0.0, 30.0), MEASURES, 0)
        written.advance(Standing(0, 0.0, 30.0))
        clock[0] += 10
        written.validation(Standing(2000, 0.1, 40.0), MEASURES, 0)
    by_time, by_updates = said()
    assert " 1:10 left " in by_time
    assert " 0:10 left " in by_updates


def test_history_is_on_disk_before_the_first_new_line(tmp_path):
    with closing(Log(tmp_path, 0, CONFIG, 1.5, None)) as written:
        for step in (10, 20):
            written.validation(Standing(step, 0.1, 1.0), MEASURES, step)
    with open(tmp_path / "metrics.jsonl", "ab") as file:  # killed in the middle of a line
        file.write(b'\0\0}\n\xff}\n[1]}\n{"step": null}\n{"kind": "train", "st')
    with closing(Log(tmp_path, 10, CONFIG, 1.5, None)) as written:
        assert [row["step"] for row in rows(tmp_path)] == [10]  # nothing is lost if killed now
        written.validation(Standing(15, 0.1, 1.0), MEASURES, 15)
    assert [row["step"] for row in rows(tmp_path)] == [10, 15]
    Log(tmp_path, 0, CONFIG, 1.5, None).close()
    assert rows(tmp_path) == []


def command_after(folder: Path, sources: list[str], task: StringTask) -> str:
    """Return the next command after a training on these sources."""
    corpus = write_corpus(folder, "x", sources, ["a b"] * len(sources))
    config = replace(data_config(corpus), task=task)
    return next_command(Path("my run"), TrainingData(config, VocabularyConfig()))


@pytest.mark.parametrize(
    ("sources", "query"),
    [
        (["lang=x +V +PST a b c"], "x abc 'V;PST'"),
        (["lang=x a b", "lang=x c"], "x ab ''"),
        (["lang=x a b", "lang=x +V", "lang=x +V c"], "x c V"),
    ],
)
def test_the_next_command_has_the_tags_of_its_language(tmp_path, sources, query):
    command = command_after(tmp_path, sources, INFLECTION)
    assert command == f"onmt-entmax inflect --model 'my run' {query}"


def test_the_next_command_predicts_one_string(tmp_path):
    command = command_after(tmp_path, ["a ▁ b"], StringTask())
    assert command == "echo 'a b' | onmt-entmax predict 'my run' -"


PHONES = StringTask(target=Unit.between(" "), languages=True)


@pytest.mark.parametrize(
    ("task", "command"),
    [
        (PHONES, "echo 'a b' | onmt-entmax predict 'my run' - --language x"),
        (
            replace(PHONES, columns=("language", "source", "-", "target")),
            r"printf '%s\t%s\n' x 'a b' | onmt-entmax predict 'my run' -",
        ),
        (
            StringTask(("source", "target", "tags")),
            r"printf '%s\t%s\n' 'a b' 'V;PST' | onmt-entmax predict 'my run' -",
        ),
        (
            replace(PHONES, columns=("tags", "source", "target")),
            r"printf '%s\t%s\n' 'V;PST' 'a b' | onmt-entmax predict 'my run' - --language x",
        ),
    ],
)
def test_the_next_command_writes_a_row_of_the_columns(tmp_path, task, command):
    marks = "lang=x " * task.languages + "+V +PST " * task.has_tags
    assert command_after(tmp_path, [f"{marks}a ▁ b"], task) == command


# --- the last lines --------------------------------------------------------------------------


def test_the_last_lines_can_be_pasted(tmp_path, capsys):
    config = write_config(tmp_path, train_steps=4, valid_steps=4, valid_loss_size=20)
    assert train(["-config", str(config)]) == 0
    *_, finished, best, command = capsys.readouterr().err.splitlines()
    assert finished == "finished at step 4 (train_steps)"
    assert best.startswith(f"best checkpoint: {tmp_path}/run/step_4, loss ")
    assert best.endswith(" on the development set (at most 20 pairs)")
    words = command.split()
    assert words[:3] == ["next:", "onmt-entmax", "translate"]
    assert translate(words[3:]) == 0
    assert len((tmp_path / "valid.out").read_text().splitlines()) == 40
