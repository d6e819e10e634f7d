"""`prepare ... --minutes --models N`: several trainings that share the time, and their average."""

import io
import shlex
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from onmt_entmax.cli import (
    evaluate,
    inflect,
    predict,
    prepare_sigmorphon,
    report,
    train,
    translate,
)
from onmt_entmax.options.train import training_setup
from onmt_entmax.train import timing
from tests.cli.planning import INFLECTION, ConstantSpeeds, prepared
from tests.cli.preparing import FORMS, next_commands, prepare, write_tables
from tests.in_process import exit_status, refusal

TABLES = {"eng.trn": FORMS, "eng.dev": FORMS, "eng.covered.tst": ["draw\tV;PST"]}
ARGUMENTS = ("--train", "eng.trn", "--dev", "eng.dev", "--language", "eng")

MAINS = {
    "train": train.main,
    "inflect": inflect.main,
    "predict": predict.main,
    "evaluate": evaluate.main,
    "translate": translate.main,
    "report": report.main,
}
TINY = "-train_steps 2 -valid_steps 1 -rnn_size 8 -word_vec_size 8".split()

pytestmark = pytest.mark.usefixtures("working_folder")


@pytest.fixture(autouse=True)
def constant_speeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan from constant speeds, without a measurement."""
    monkeypatch.setattr(timing, "Stopwatch", ConstantSpeeds)


def commands_for(models: int, *arguments: object) -> list[str]:
    """Return the proposed commands that begin with `onmt-entmax`, without this word."""
    write_tables(TABLES)
    printed = prepare(*arguments, "--minutes", 1, "--models", models)
    return [command.removeprefix("onmt-entmax ") for command in next_commands(printed.out)]


# --- the plan ---


@pytest.mark.parametrize(("models", "seconds"), [(1, 900), (2, 450), (3, 300)])
def test_each_training_has_its_share_of_the_time(models: int, seconds: float) -> None:
    setup = prepared(INFLECTION, "--minutes", 15, "--models", models)
    assert setup.training.max_seconds == seconds


def test_the_dropout_suits_the_passes_of_one_training() -> None:
    """At `ConstantSpeeds`, 0.45 minutes are 17 passes for one model, or 9 for each of two."""
    alone = prepared(INFLECTION, "--minutes", 0.45, "--hallucinate", 0)
    shared = prepared(INFLECTION, "--minutes", 0.45, "--hallucinate", 0, "--models", 2)
    assert (alone.training.dropout, shared.training.dropout) == ((0.3,), (0.1,))


def test_the_plan_says_how_many_models_share_the_time() -> None:
    with redirect_stderr(io.StringIO()) as errors:
        prepared(INFLECTION, "--minutes", 15, "--models", 2)
    line = "Planned for 2 models, 7.5 minutes each, of this machine's CPU"
    assert line in errors.getvalue()
    assert f"# {line}" in Path("out/train.yaml").read_text("utf-8")


# --- the next commands ---


def test_each_training_has_a_seed_and_a_folder_of_its_own() -> None:
    commands = commands_for(3, *ARGUMENTS)
    trainings = [command for command in commands if command.startswith("train ")]
    assert trainings == [
        "train -config out/train.yaml",
        "train -config out/train.yaml -seed 2 -save_model out/model.2",
        "train -config out/train.yaml -seed 3 -save_model out/model.3",
    ]


def test_the_proposed_inflect_command_names_all_models() -> None:
    commands = commands_for(2, *ARGUMENTS)
    assert "inflect --model out/model --model out/model.2 eng draw 'V;PST'" in commands


def test_the_proposed_predict_command_names_all_models() -> None:
    tables = "predict out/model eng.dev --output out/dev.predicted.tsv"
    others = "--ensemble out/model.2 --ensemble out/model.3"
    assert f"{tables} {others} --language eng --analogies eng.trn" in commands_for(3, *ARGUMENTS)


def test_the_proposed_predict_command_of_a_covered_table_names_all_models() -> None:
    tables = "predict out/model eng.covered.tst --output out/test.predicted.tsv"
    options = "--ensemble out/model.2 --language eng --analogies eng.trn"
    assert f"{tables} {options}" in commands_for(2, *ARGUMENTS, "--test", "eng.covered.tst")


@pytest.mark.parametrize("models", [2, 3])
def test_the_proposed_commands_run(models: int) -> None:
    """The trainings take two updates of a tiny network here.

    `translate` and `report` would run with one model, too, so their models are compared.
    """
    write_tables(TABLES)
    arguments = [*ARGUMENTS, "--minutes", 1, "--models", models]
    commands = next_commands(prepare(*arguments, main=prepare_sigmorphon.main).out)
    folders = ["out/model", *(f"out/model.{number}" for number in range(2, models + 1))]
    names = []
    for command in commands:
        _, name, *words = shlex.split(command)
        tiny = TINY if name == "train" else []
        assert exit_status(MAINS[name], [*words, *tiny]) == 0
        names.append(name)
        if name in ("translate", "report"):
            assert " ".join(["-model", *folders]) in command
    assert names == ["train"] * models + ["inflect", "predict", "evaluate", "translate", "report"]
    assert Path("out/dev.html").exists()


def test_one_model_is_trained_as_without_the_option() -> None:
    assert commands_for(1, *ARGUMENTS)[0] == "train -config out/train.yaml"
    alone = training_setup(["-config", "out/train.yaml"])
    prepare(*ARGUMENTS, "--minutes", 1)
    assert training_setup(["-config", "out/train.yaml"]) == alone


# --- refused ---


def test_models_without_a_time_are_refused() -> None:
    main, arguments = INFLECTION
    message = refusal(main, [*arguments, "--out", "out", "--models", 2])
    assert "--models divides the time of --minutes, which is missing" in message
    assert not Path("out").exists()
