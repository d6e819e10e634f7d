"""What people read about a run: the text of lines, without clock and speed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from onmt_entmax.cli.train import main as train
from onmt_entmax.cli.translate import main as translate
from onmt_entmax.data.corpus import CorpusConfig, DataConfig
from onmt_entmax.train import OptimizerConfig, TrainingConfig, progress
from onmt_entmax.train.evaluation import ValidationConfig
from onmt_entmax.train.progress import Progress, Standing, duration, measure
from onmt_entmax.train.records import Records
from onmt_entmax.train.run import next_command
from tests.toy import write_config

CONFIG = TrainingConfig(OptimizerConfig(), train_steps=4000, selection="exact_match")
VALUES = {
    "loss": 0.14521,
    "token_accuracy": 90.47,
    "support": 3.667,
    "tokens_per_second": 12345.6,
    "input_percent": 2.1,
    "learning_rate": 0.001949,
    "epoch": 1,
}
MEASURES = {
    "loss": 0.0828,
    "token_accuracy": 94.46,
    "support": 2.038,
    "exact_match": 61.957,
    "macro_accuracy": 62.25,
    "seconds": 9.0,
}


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A clock that stands still until a test moves it."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_line_has_position_and_measures(tmp_path, clock, capsys):
    shown = Progress(CONFIG, alpha=1.5)
    with Records(tmp_path, 0, shown, None) as records:
        records.advance(Standing(50, 0.2, 3.0))
        clock[0] += 65
        records.training(Standing(250, 1.96, 30.0), VALUES)
        records.validation(Standing(250, 1.96, 31.0), MEASURES, best_step=250)
        records.validation(Standing(4000, 31.4, 32.0), MEASURES, best_step=250)
    lines = [line.split("  ", 1)[1] for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "epoch 2     step  250/4000    20:19 left  loss 0.1452  token accuracy  90.5 %  "
        "support    3.7  lr 0.00195    12,346 tokens/s",
        "validation  step  250/4000    20:19 left  loss 0.0828  token accuracy  94.5 %  "
        "support    2.0  exact match 61.96 %  best so far",
        "validation  step 4000/4000     0:00 left  loss 0.0828  token accuracy  94.5 %  "
        "support    2.0  exact match 61.96 %  best was step 250",
    ]
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert rows[:2] == [
        {"kind": "train", "step": 250, **VALUES},
        {"kind": "valid", "step": 250, **MEASURES},
    ]


@pytest.mark.parametrize(
    ("changes", "alpha", "values", "expected"),
    [
        ({"selection": "loss"}, 1.0, {"loss": 2.0}, ["perplexity 7.39"]),
        ({"selection": "loss"}, 1.0, {"loss": 1e4}, ["perplexity inf"]),
        ({"selection": "loss"}, 1.5, {}, ["support    2.0"]),
        ({"selection": "bleu"}, 2.0, {"bleu": 31.216}, ["support    2.0", "BLEU 31.22"]),
        (
            {"selection": "macro_accuracy"},
            1.0,
            {"exact_match": 61.957, "macro_accuracy": 62.25},
            ["perplexity 1.09", "exact match 61.96 %", "macro accuracy 62.25 %"],
        ),
    ],
)
def test_only_measures_that_mean_something(changes, alpha, values, expected):
    shown = Progress(replace(CONFIG, **changes), alpha)
    measures = {"loss": 0.0828, "token_accuracy": 94.46, "support": 2.038, **values}
    facts = shown.validation(measures, 9, best_step=9)
    assert facts[2:] == [*expected, "best so far"]


def test_epochs_count_from_1_and_have_a_last_one_if_they_end_the_run():
    shown = Progress(replace(CONFIG, train_steps=None, train_epochs=12), 1.5)
    places = [shown.place(Standing(7, epochs, 0.0)) for epochs in (0.1, 1.0, 1.1, 12.0)]
    assert [place.split("  ")[0] for place in places] == [
        "epoch 1/12", "epoch 1/12", "epoch 2/12", "epoch 12/12",
    ]  # fmt: skip
    assert len({len(place) for place in (*places, shown.place(Standing(99999, 1, 0), True))}) == 1
    assert shown.advance(Standing(7, 3.0, 0.0)) == 0.25


def test_the_nearest_limit_decides_the_time_left(clock):
    shown = Progress(replace(CONFIG, train_epochs=2, max_seconds=1000.0), 1.5)
    assert shown.left(Standing(0, 0.0, 0.0)) == []  # before the first update
    shown.advance(Standing(1000, 0.0, 0.0))  # a resumed run: these were not done here
    clock[0] += 10
    assert shown.left(Standing(1000, 0.0, 0.0)) == []
    assert shown.left(Standing(2000, 0.5, 200.0)) == ["   0:20 left"]  # by steps
    assert shown.left(Standing(2000, 1.5, 200.0)) == ["   0:03 left"]  # by epochs
    assert shown.left(Standing(2000, 0.5, 900.0)) == ["   0:01 left"]  # by seconds
    without = Progress(replace(CONFIG, train_steps=None), 1.5)
    without.advance(Standing(1, 0.1, 1.0))
    assert without.left(Standing(2, 0.2, 2.0)) == []


def test_skipped_updates_are_told_and_softmax_has_no_support():
    facts = Progress(CONFIG, 1.0).training(VALUES | {"skipped": 2})
    assert facts[2:] == ["lr 0.00195 ", " 12,346 tokens/s", "2 updates skipped"]


def test_the_memory_of_a_gpu_is_told():
    facts = Progress(CONFIG, 1.5).training(VALUES | {"gpu_gb": 2.6437})
    assert facts[-1] == "GPU memory 2.6 GB"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0:00"), (185, "3:05"), (7385, "2:03:05"), (273_000, "3 d 3 h")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_measures_have_units():
    names = ("loss", "bleu", "token_accuracy")
    assert [measure(n, 12.3456) for n in names] == [
        "loss 12.3456", "BLEU 12.35", "token accuracy 12.35 %",
    ]  # fmt: skip


def test_the_conditions_of_a_measure():
    assert ValidationConfig().conditions("loss") == ""
    assert ValidationConfig().conditions("bleu") == "at most 1,000 pairs, greedy"
    every = ValidationConfig(valid_decode_size=0, valid_loss_size=20, valid_beam_size=5)
    assert every.conditions("token_accuracy") == "at most 20 pairs"
    assert every.conditions("exact_match") == "beam 5"


class TestEnd:
    def data(
        self, folder: Path, source: str, target: str | None = None, **changes: object
    ) -> DataConfig:
        (folder / "dev.src").write_text(source)
        (folder / "dev.tgt").write_text(target or "a\n" * source.count("\n"))
        paths = (str(folder / "dev.src"), str(folder / "dev.tgt"))
        corpus = CorpusConfig("valid", *paths, **changes)
        return DataConfig(corpora=(corpus,), valid=corpus)

    def test_an_inflection_model_inflects_a_word_of_the_development_set(self, tmp_path):
        source = "lang=english +V +PST g i v e ▁ u p\nlang=english +V +PST d o\n"
        command = next_command(Path("my run"), self.data(tmp_path, source))
        assert command == "onmt-entmax inflect --model 'my run' english 'give up' 'V;PST'"

    def test_a_model_of_reversed_forms_is_given_to_inflect_as_one(self, tmp_path):
        source = "lang=english +V +PST b e\nlang=english +V +PST w a l k\n"
        for target, option in (
            ("w a s\nw a l k e d\n", "--model"),
            ("s a w\nd e k l a w\n", "--reversed"),
        ):
            command = next_command(Path("run"), self.data(tmp_path, source, target))
            assert command == f"onmt-entmax inflect {option} run english be 'V;PST'"

    def test_any_other_model_translates_the_development_set(self, tmp_path):
        data = self.data(tmp_path, "a b\n", transforms=("filtertoolong", "onmt_tokenize"))
        assert next_command(Path("run/mine"), data) == (
            f"onmt-entmax translate -model run/mine -src {tmp_path}/dev.src -output run/dev.out"
        )

    def test_the_proposed_output_is_not_the_reference(self, tmp_path):
        data = self.data(tmp_path, "a b\n")
        (tmp_path / "dev.tgt").rename(tmp_path / "dev.out")
        valid = replace(data.valid, path_tgt=str(tmp_path / "dev.out"))
        command = next_command(tmp_path / "model", replace(data, valid=valid))
        assert command.endswith(f"-output {tmp_path}/model/dev.out")

    def test_the_last_lines_can_be_pasted(self, tmp_path, capsys):
        config = write_config(tmp_path, train_steps=4, valid_steps=4)
        assert train(["-config", str(config), "-valid_loss_size", "20"]) == 0
        *_, finished, best, following = capsys.readouterr().err.splitlines()
        run = tmp_path / "run"
        assert finished == "finished at step 4 (train_steps)"
        assert best.startswith(f"best checkpoint: {run}/step_4, loss ")
        assert best.endswith(" on the development set (at most 20 pairs)")
        words = following.split()
        assert words[:3] == ["next:", "onmt-entmax", "translate"]
        assert translate(words[3:]) == 0
        assert len((tmp_path / "valid.out").read_text().splitlines()) == 40

    def test_without_a_development_set_the_last_checkpoint_is_named(self, tmp_path, capsys):
        config = yaml.safe_load(write_config(tmp_path, train_steps=2).read_text())
        del config["data"]["valid"]
        assert train(["-config", str(write_config(tmp_path, **config))]) == 0
        *_, last, following = capsys.readouterr().err.splitlines()
        assert last == f"last checkpoint: {tmp_path}/run/step_2"
        assert f"-src {tmp_path}/train.src" in following
