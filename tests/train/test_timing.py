"""Measuring the speed of networks: their turns, and what is counted.

No test depends on the speed of the machine: training is measured by a fake clock.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest
import torch

from onmt_entmax.config import TrainingSetup
from onmt_entmax.data.batch import Batch
from onmt_entmax.train.timed_updates import round_robin
from onmt_entmax.train.timing import Stopwatch, Timed
from onmt_entmax.train.update import Update
from tests.train.clocks import FakeClock, replace_clock
from tests.train.trainers import setup_of


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    return replace_clock(monkeypatch, now=0.0)


def updates_of(clock: FakeClock, name: str, seconds: float, turns: list[str]) -> Iterator[float]:
    """Make updates of a network, each of which moves the clock; yield the seconds of each.

    Args:
        clock: moved by `seconds` at each update.
        name: of the network.
        seconds: that an update takes.
        turns: receives the name at each update.
    """
    while True:
        clock.now += seconds
        turns.append(name)
        yield seconds


def test_networks_take_turns_until_the_deadline(clock: FakeClock) -> None:
    turns: list[str] = []
    updates = [updates_of(clock, "a", 1.0, turns), updates_of(clock, "b", 2.0, turns)]
    assert round_robin(updates, deadline=8.0) == [(3, 3.0), (3, 6.0)]
    assert turns == [*"ababab"]


@pytest.mark.parametrize(
    ("deadline", "expected"),
    [
        pytest.param(-1.0, ["a"], id="passed before the start"),
        pytest.param(0.5, ["a"], id="passes in the first turn"),
        pytest.param(1.0, ["a", "b"], id="passes in the second turn"),
    ],
)
def test_only_the_first_network_has_a_turn_in_any_case(
    clock: FakeClock, deadline: float, expected: list[str]
) -> None:
    turns: list[str] = []
    updates = [updates_of(clock, name, 1.0, turns) for name in "abc"]
    assert round_robin(updates, deadline) == [(1, 1.0)] * len(expected)
    assert turns == expected


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> TrainingSetup:
    return setup_of(tmp_path_factory.mktemp("timing"), rnn_size=8, selection="exact_match")


@pytest.fixture
def watch(setup: TrainingSetup) -> Stopwatch:
    return Stopwatch(setup.data, setup.vocabulary, torch.device("cpu"))


@pytest.fixture
def networks(setup: TrainingSetup) -> list[Timed]:
    """Two networks, with batches of sixteen and of three."""
    return [
        Timed(replace(setup.data, batch_size=size), setup.model, setup.training) for size in (16, 3)
    ]


def lengths_of(path: str) -> list[int]:
    """Return the numbers of tokens of a file's lines."""
    return [len(line.split()) for line in Path(path).read_text().splitlines()]


def test_training_pairs_are_counted(setup: TrainingSetup, watch: Stopwatch) -> None:
    (corpus,) = setup.data.corpora
    assert watch.examples == len(lengths_of(corpus.path_tgt))


def test_the_mean_length_of_targets_is_measured(setup: TrainingSetup, watch: Stopwatch) -> None:
    (corpus,) = setup.data.corpora
    assert watch.mean_target_length == mean(lengths_of(corpus.path_tgt))


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch, clock: FakeClock) -> list[int]:
    """The sizes of the batches of all updates; by the clock, each update takes a second."""
    sizes: list[int] = []
    add = Update.add

    def add_slowly(update: Update, batch: Batch, size: int) -> None:
        sizes.append(size)
        clock.now += 1
        add(update, batch, size)

    monkeypatch.setattr(Update, "add", add_slowly)
    return sizes


def test_each_network_has_its_own_batches(
    watch: Stopwatch, networks: list[Timed], sizes: list[int]
) -> None:
    """The first update of each network is not timed; then they take turns for 4.5 seconds."""
    watch.training_speeds(networks, 4.5)
    assert sizes == [16, 3] + [16, 3] * 2


@pytest.mark.usefixtures("sizes")
def test_the_speed_of_training_is_examples_a_second(
    watch: Stopwatch, networks: list[Timed]
) -> None:
    assert watch.training_speeds(networks, 4.5) == [16.0, 3.0]


@pytest.mark.usefixtures("sizes")
def test_a_network_without_a_turn_has_no_speed(watch: Stopwatch, networks: list[Timed]) -> None:
    """The time is over after the second network's first update, which is not timed."""
    assert watch.training_speeds(networks, 0.5) == [16.0]


def test_losses_and_decoding_have_speeds(
    setup: TrainingSetup, watch: Stopwatch, networks: list[Timed]
) -> None:
    loss, decoding = watch.validation_speeds(networks[0], setup.validation)
    assert 0 < loss < math.inf
    assert 0 < decoding < math.inf


def test_the_pairs_of_the_development_set_are_counted(
    setup: TrainingSetup, watch: Stopwatch
) -> None:
    assert watch.development_pairs == len(lengths_of(setup.data.valid.path_tgt))
