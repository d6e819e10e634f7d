"""The log of a run: what people read, without clock and speed, and what a resumed run keeps."""

import json
import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from onmt_entmax.cli.train import main as train
from onmt_entmax.cli.translate import main as translate
from onmt_entmax.config import OptimizerConfig, TrainingConfig
from onmt_entmax.data.training import CorpusConfig, DataConfig, TrainingData
from onmt_entmax.data.vocabulary import VocabularyConfig
from onmt_entmax.files import FileError
from onmt_entmax.train import log
from onmt_entmax.train import run as training_run
from onmt_entmax.train.evaluation import ValidationConfig
from onmt_entmax.train.log import Log, Standing, duration, measure
from onmt_entmax.train.run import next_command
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
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_lines_have_position_and_averages(tmp_path, clock, said):
    with closing(Log(tmp_path, 0, CONFIG, 1.5, None)) as written:
        written.advance(Standing(50, 0.2, 3.0))
        for loss, tokens, correct, support in ((60.0, 400, 350, 1500), (27.126, 200, 192.8, 700.2)):
            written.add(loss, tokens, correct, support)
        written.waited(1.3)
        clock[0] += 65
        written.training(Standing(250, 1.96, 30.0), RATE)
        written.validation(Standing(250, 1.96, 31.0), MEASURES, best_step=250)
        written.validation(Standing(4000, 31.4, 32.0), MEASURES, best_step=250)
        clock[0] += 1
        written.training(Standing(4000, 31.4, 32.0), {**RATE, "skipped": 2, "gpu_gb": 2.6437})
    assert said() == [
        "epoch 2     step  250/4000    20:19 left  loss 0.1452  token accuracy  90.5 %  "
        "support    3.7  lr 0.00195         9 tokens/s",
        "validation  step  250/4000    20:19 left  loss 0.0828  token accuracy  94.5 %  "
        "support    2.0  exact match 61.96 %  best so far",
        "validation  step 4000/4000     0:00 left  loss 0.0828  token accuracy  94.5 %  "
        "support    2.0  exact match 61.96 %  best was step 250",
        "epoch 32    step 4000/4000     0:00 left  loss 0.0000  token accuracy   0.0 %  "
        "support    0.0  lr 0.00195         0 tokens/s  2 updates skipped  GPU memory 2.6 GB",
    ]
    train_row, valid_row, *_ = rows(tmp_path)
    expected = {
        "loss": 87.126 / 600, "token_accuracy": 100 * 542.8 / 600, "support": 2200.2 / 600,
        "tokens_per_second": 600 / 65, "input_percent": 2.0,
    }  # fmt: skip
    assert train_row == {"kind": "train", "step": 250, **RATE, **expected}
    assert valid_row == {"kind": "valid", "step": 250, **MEASURES}


@pytest.mark.parametrize(
    ("selection", "alpha", "values", "expected"),
    [
        ("loss", 1.0, {"loss": 2.0}, "perplexity 7.39"),
        ("loss", 1.0, {"loss": 1e4}, "perplexity inf"),
        ("loss", 1.5, {}, "support    2.0"),
        ("bleu", 2.0, {"bleu": 31.216}, "support    2.0  BLEU 31.22"),
        (
            "macro_accuracy",
            1.0,
            {"exact_match": 61.957, "macro_accuracy": 62.25},
            "perplexity 1.09  exact match 61.96 %  macro accuracy 62.25 %",
        ),
    ],
)
def test_only_measures_that_mean_something(tmp_path, said, selection, alpha, values, expected):
    with closing(Log(tmp_path, 0, replace(CONFIG, selection=selection), alpha, None)) as written:
        measures = {"loss": 0.0828, "token_accuracy": 94.46, "support": 2.038, **values}
        written.validation(Standing(9, 0.1, 1.0), measures, best_step=9)
    assert said()[0].split("  94.5 %  ")[1] == f"{expected}  best so far"


@pytest.mark.parametrize(
    ("limits", "at", "text"),
    [
        ({}, (1000, 0.0, 0.0), ""),
        ({}, (2000, 0.5, 200.0), "   0:20 left"),  # by steps
        ({"train_epochs": 2}, (2000, 1.5, 200.0), "   0:03 left"),
        ({"max_seconds": 1000.0}, (2000, 0.5, 900.0), "   0:01 left"),
        ({"train_steps": None}, (2000, 0.5, 900.0), ""),
    ],
)
def test_the_nearest_limit_decides_the_time_left(tmp_path, clock, said, limits, at, text):
    """Of a resumed run, whose first 1,000 updates were not done here."""
    with closing(Log(tmp_path, 1000, replace(CONFIG, **limits), 1.5, None)) as written:
        written.advance(Standing(1000, 0.0, 0.0))
        clock[0] += 10
        written.validation(Standing(*at), MEASURES, best_step=0)
    (line,) = said()
    assert text in line
    assert (" left" in line) == bool(text)


def test_epochs_count_from_1_and_have_a_last_one_if_they_end_the_run(tmp_path, said):
    config = replace(CONFIG, train_steps=None, train_epochs=12)
    with closing(Log(tmp_path, 0, config, 1.5, None)) as written:
        for epochs in (0.1, 1.0, 1.1, 12.0):
            written._since -= 1
            written.training(Standing(7, epochs, 0.0), RATE)
    lines = said()
    assert [line.split("  ")[0] for line in lines] == [
        "epoch 1/12", "epoch 1/12", "epoch 2/12", "epoch 12/12",
    ]  # fmt: skip
    assert len({line.index("step") for line in lines}) == 1


def test_texts_of_numbers():
    durations = {0.2: "0:00", 185: "3:05", 7385: "2:03:05", 273_000: "3 d 3 h"}
    assert {seconds: duration(seconds) for seconds in durations} == durations
    names = ("loss", "bleu", "token_accuracy")
    assert [measure(n, 12.3456) for n in names] == [
        "loss 12.3456", "BLEU 12.35", "token accuracy 12.35 %",
    ]  # fmt: skip
    assert ValidationConfig().conditions("loss") == ""
    assert ValidationConfig().conditions("bleu") == "at most 1,000 pairs, greedy"
    every = ValidationConfig(valid_decode_size=0, valid_loss_size=20, valid_beam_size=5)
    assert every.conditions("token_accuracy") == "at most 20 pairs"
    assert every.conditions("exact_match") == "beam 5"


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


def test_a_disk_that_fails_is_one_line(tmp_path):
    """/dev/full stands for a disk that is full, or gone."""
    with open("/dev/full", "wb") as full, closing(Log(tmp_path, 0, CONFIG, 1.5, None)) as written:
        os.dup2(full.fileno(), written._metrics.fileno())
        with pytest.raises(FileError, match=r"metrics.jsonl: cannot be written \(No space left"):
            written.validation(Standing(1, 0.1, 1.0), MEASURES, 1)


# --- the last lines --------------------------------------------------------------------------


def following(run: str, folder: Path, source: str, target: str, name: str = "dev.tgt") -> str:
    (folder / "dev.src").write_text(source)
    (folder / name).write_text(target)
    corpus = CorpusConfig("valid", str(folder / "dev.src"), str(folder / name))
    data = TrainingData(DataConfig((corpus,), corpus), VocabularyConfig())
    return next_command(Path(run), data)


def test_an_inflection_model_inflects_a_word_of_the_development_set(tmp_path):
    source = "lang=english +V +PST g i v e ▁ u p\nlang=english +V +PST w a l k\n"
    for target, option in (
        ("g a v e ▁ u p\nw a l k e d\n", "--model"),
        ("p u ▁ e v a g\nd e k l a w\n", "--reversed"),
    ):
        command = following("my run", tmp_path, source, target)
        assert command == f"onmt-entmax inflect {option} 'my run' english 'give up' 'V;PST'"


def test_any_other_model_translates_the_development_set(tmp_path):
    command = following("run/mine", tmp_path, "a b\n", "a\n")
    files = f"-src {tmp_path}/dev.src -output run/dev.out"
    assert command == f"onmt-entmax translate -model run/mine {files}"
    command = following(f"{tmp_path}/model", tmp_path, "a b\n", "a\n", "dev.out")
    assert command.endswith(f"-output {tmp_path}/model/dev.out")  # not over the reference


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


def test_without_a_development_set_the_last_checkpoint_is_named(tmp_path, capsys, monkeypatch):
    config = yaml.safe_load(write_config(tmp_path, train_steps=2, report_every=1).read_text())
    del config["data"]["valid"]
    monkeypatch.setattr("torch.cuda.max_memory_reserved", lambda: 2_643_700_000)
    monkeypatch.setattr(log.time, "monotonic", log.time.time)
    assert train(["-config", str(write_config(tmp_path, **config))]) == 0
    *_, last, command = capsys.readouterr().err.splitlines()
    assert last == f"last checkpoint: {tmp_path}/run/step_2"
    assert f"-src {tmp_path}/train.src" in command
    assert [row["gpu_gb"] for row in rows(tmp_path / "run")] == [2.6437] * 2


@pytest.mark.parametrize(("native", "told"), [("1", True), ("0", False)])
def test_kernels_that_were_not_compiled_are_told(tmp_path, capsys, monkeypatch, native, told):
    monkeypatch.setenv("ONMT_ENTMAX_NATIVE", native)
    monkeypatch.setattr(training_run, "find_spec", lambda name: None)
    assert train(["-config", str(write_config(tmp_path, train_steps=1, valid_steps=1))]) == 0
    assert ("warning: the C++ kernels" in capsys.readouterr().err) == told
