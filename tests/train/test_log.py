"""The log of a run: what people read, without clock and speed, and what a resumed run keeps."""

import io
from collections.abc import Callable
from contextlib import closing, redirect_stderr
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.cli.train import main as train
from onmt_entmax.cli.translate import main as translate
from onmt_entmax.config import OptimizerConfig, TrainingConfig, VocabularyConfig
from onmt_entmax.data.training import TrainingData
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


class Clock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 100.0


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of logs."""
    clock = Clock()
    monkeypatch.setattr(log.time, "monotonic", lambda: clock.now)
    return clock


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[str]]:
    """Return the lines on stderr since the last call, without the time of day."""
    return lambda: [line.split("  ", 1)[1] for line in capsys.readouterr().err.splitlines()]


def rows(folder: Path) -> list[dict[str, Any]]:
    return json_lines(folder / "metrics.jsonl")


class TestRows:
    """Two reports of updates and two validations; 75 seconds, of which 10 were a validation."""

    @pytest.fixture(autouse=True)
    def write_log(self, tmp_path: Path, clock: Clock, printed: object) -> None:
        with closing(Log(tmp_path, 0, CONFIG, 1.5, None)) as writer:
            writer.advance(Standing(50, 0.2, 3.0))
            # Loss, tokens, correct tokens and support.
            writer.add(60.0, 400, 350, 1500)
            writer.add(27.126, 200, 192.8, 700.2)
            writer.waited(1.3)
            clock.now += 75
            writer.paused(10)
            writer.training(Standing(250, 1.96, 30.0), RATE)
            writer.validation(Standing(250, 1.96, 31.0), MEASURES, best_step=250)
            writer.validation(Standing(4000, 31.4, 32.0), MEASURES, best_step=250)
            clock.now += 1
            writer.training(Standing(4000, 31.4, 32.0), {**RATE, "skipped": 2, "gpu_gb": 2.6437})

    def test_are_printed_as_lines(self, printed: Callable[[], list[str]]) -> None:
        assert len(printed()) == 4

    def test_of_training_are_averages_over_tokens(self, tmp_path: Path) -> None:
        row, *_ = rows(tmp_path)
        assert row == {
            "kind": "train",
            "step": 250,
            **RATE,
            "loss": 87.126 / 600,
            "token_accuracy": 100 * 542.8 / 600,
            "support": 2200.2 / 600,
            "tokens_per_second": 600 / 65,
            "input_percent": 2.0,
        }

    def test_of_validations_are_measures(self, tmp_path: Path) -> None:
        _, row, *_ = rows(tmp_path)
        assert row == {"kind": "valid", "step": 250, **MEASURES}


def test_the_time_left_is_that_of_the_first_limit(
    tmp_path: Path, clock: Clock, printed: Callable[[], list[str]]
) -> None:
    """A limit of time needs no speed."""
    config = replace(CONFIG, max_seconds=100.0)
    with closing(Log(tmp_path, 0, config, 1.5, None)) as writer:
        writer.validation(Standing(0, 0.0, 30.0), MEASURES, 0)
        writer.advance(Standing(0, 0.0, 30.0))
        clock.now += 10
        writer.validation(Standing(2000, 0.1, 40.0), MEASURES, 0)
    by_time, by_updates = printed()
    assert " 1:10 left " in by_time
    assert " 0:10 left " in by_updates


class TestTheHistoryOfARun:
    @pytest.fixture(autouse=True)
    def write_history(self, tmp_path: Path) -> None:
        """Two validations, then damage, and a line of which a kill left the half."""
        with closing(Log(tmp_path, 0, CONFIG, 1.5, None)) as writer:
            for step in (10, 20):
                writer.validation(Standing(step, 0.1, 1.0), MEASURES, step)
        with open(tmp_path / "metrics.jsonl", "ab") as file:
            file.write(b'\0\0}\n\xff}\n[1]}\n{"step": null}\n{"kind": "train", "st')

    def steps(self, folder: Path) -> list[int]:
        return [row["step"] for row in rows(folder)]

    def test_is_on_disk_before_the_first_new_line(self, tmp_path: Path) -> None:
        """Up to the step of resuming; nothing is lost by a kill then."""
        with closing(Log(tmp_path, 10, CONFIG, 1.5, None)):
            assert self.steps(tmp_path) == [10]

    def test_is_continued(self, tmp_path: Path) -> None:
        with closing(Log(tmp_path, 10, CONFIG, 1.5, None)) as writer:
            writer.validation(Standing(15, 0.1, 1.0), MEASURES, 15)
        assert self.steps(tmp_path) == [10, 15]

    def test_is_left_out_by_a_run_from_the_beginning(self, tmp_path: Path) -> None:
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
def test_the_next_command_has_the_tags_of_its_language(
    tmp_path: Path, sources: list[str], query: str
) -> None:
    command = command_after(tmp_path, sources, INFLECTION)
    assert command == f"onmt-entmax inflect --model 'my run' {query}"


def test_the_next_command_predicts_one_string(tmp_path: Path) -> None:
    command = command_after(tmp_path, ["a ▁ b"], StringTask())
    assert command == "echo 'a b' | onmt-entmax predict 'my run' -"


PHONES = StringTask(target=Unit.between(" "), languages=True)


TAGGED = StringTask(("source", "target", "tags"))


@pytest.mark.parametrize(
    ("task", "source", "command"),
    [
        (
            PHONES,
            "lang=x a ▁ b",
            "echo 'a b' | onmt-entmax predict 'my run' - --language x",
        ),
        (
            replace(PHONES, columns=("language", "source", "-", "target")),
            "lang=x a ▁ b",
            r"printf '%s\t%s\n' x 'a b' | onmt-entmax predict 'my run' -",
        ),
        (
            TAGGED,
            "+V +PST a ▁ b",
            r"printf '%s\t%s\n' 'a b' 'V;PST' | onmt-entmax predict 'my run' -",
        ),
        (
            replace(PHONES, columns=("tags", "source", "target")),
            "lang=x +V +PST a ▁ b",
            r"printf '%s\t%s\n' 'V;PST' 'a b' | onmt-entmax predict 'my run' - --language x",
        ),
    ],
    ids=["a language", "a column of languages", "tags", "a language and tags"],
)
def test_the_next_command_writes_a_row_of_the_columns(
    tmp_path: Path, task: StringTask, source: str, command: str
) -> None:
    assert command_after(tmp_path, [source], task) == command


# --- the last lines --------------------------------------------------------------------------


class TestTheLastLines:
    @pytest.fixture(scope="class")
    def folder(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return tmp_path_factory.mktemp("last-lines")

    @pytest.fixture(scope="class")
    def lines(self, folder: Path) -> list[str]:
        """What a training of four updates prints at its end."""
        config = write_config(folder, train_steps=4, valid_steps=4, valid_loss_size=20)
        with redirect_stderr(io.StringIO()) as printed:
            assert train(["-config", str(config)]) == 0
        return printed.getvalue().splitlines()[-3:]

    def test_say_how_the_run_ended(self, lines: list[str]) -> None:
        assert lines[0] == "finished at step 4 (train_steps)"

    def test_name_the_best_checkpoint(self, lines: list[str], folder: Path) -> None:
        assert lines[1].startswith(f"best checkpoint: {folder}/run/step_4, loss ")
        assert lines[1].endswith(" on the development set (at most 20 pairs)")

    def test_have_a_command_that_can_be_pasted(self, lines: list[str], folder: Path) -> None:
        next_, program, command, *arguments = lines[2].split()
        assert (next_, program, command) == ("next:", "onmt-entmax", "translate")
        assert translate(arguments) == 0
        assert len((folder / "valid.out").read_text().splitlines()) == 40
