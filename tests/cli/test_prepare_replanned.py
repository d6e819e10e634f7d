"""`prepare` again, into a folder whose training was planned for `--minutes`.

It may replace a configuration that nobody has edited, but warns if the plan is lost.
"""

from collections.abc import Callable

import pytest

from onmt_entmax.train import timing
from tests.cli.planning import INFLECTION, TRANSLATION, ConstantSpeeds, prepared, write_pairs

LOST = "train.yaml: was planned for a time; without --minutes"  # in the warning
PLAN = ("--minutes", 15)
NO_PLAN = ()

Prepare = Callable[..., str]
"""Prepares the same folder with further options; returns what is printed on the standard error."""


@pytest.fixture(params=[INFLECTION, TRANSLATION], ids=["inflection", "translation"])
def prepare(
    request: pytest.FixtureRequest,
    working_folder: object,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Prepare:
    monkeypatch.setattr(timing, "Stopwatch", ConstantSpeeds)
    write_pairs()

    def prepare_again(*options: object) -> str:
        prepared(request.param, *options)
        return capsys.readouterr().err

    return prepare_again


def test_a_first_plan_gives_no_warning(prepare: Prepare) -> None:
    assert LOST not in prepare(*PLAN)


def test_a_plan_may_replace_another_without_a_warning(prepare: Prepare) -> None:
    prepare(*PLAN)
    assert LOST not in prepare(*PLAN)


def test_losing_a_plan_gives_a_warning(prepare: Prepare) -> None:
    prepare(*PLAN)
    assert LOST in prepare(*NO_PLAN)


def test_the_loss_of_a_plan_gives_only_one_warning(prepare: Prepare) -> None:
    prepare(*PLAN)
    prepare(*NO_PLAN)
    assert LOST not in prepare(*NO_PLAN)
