"""Measuring the speed of networks: turns, and what is counted. No test depends on a speed."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from statistics import mean

import pytest
import torch

from onmt_entmax.config import TrainingSetup
from onmt_entmax.data.batch import Batch
from onmt_entmax.train import timing
from onmt_entmax.train.timing import Stopwatch, Timed, round_robin
from onmt_entmax.train.update import Update
from tests.train.trainers import setup_of

SECONDS = 0.05  # of measuring


class World:
    """A clock that updates of networks move, each by the network's own time.

    Attributes:
        now: seconds.
        turns: the names of the networks, in the order of their updates.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.turns = ""

    def updates(self, name: str, seconds: float) -> Iterator[float]:
        """Yield the seconds of each update of a network, after the clock has moved by them."""
        while True:
            self.now += seconds
            self.turns += name
            yield seconds


def test_networks_take_turns_until_the_deadline() -> None:
    world = World()
    updates = [world.updates("a", 1.0), world.updates("b", 2.0)]
    assert round_robin(updates, 8.0, lambda: world.now) == [(3, 3.0), (3, 6.0)]
    assert world.turns == "ababab"


@pytest.mark.parametrize(
    ("deadline", "turns"),
    [
        pytest.param(-1.0, "a", id="passed before the start"),
        pytest.param(0.5, "a", id="passes in the first turn"),
        pytest.param(1.0, "ab", id="passes in the second turn"),
    ],
)
def test_only_the_first_network_has_a_turn_in_any_case(deadline: float, turns: str) -> None:
    world = World()
    updates = [world.updates(name, 1.0) for name in "abc"]
    sums = round_robin(updates, deadline, lambda: world.now)
    assert sums == [(1, 1.0)] * len(turns)
    assert world.turns == turns


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


def test_each_network_has_its_own_batches(
    watch: Stopwatch, networks: list[Timed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first update of each, which is not timed; meanwhile hardly any time passes."""
    sizes: list[int] = []
    add = Update.add

    def note_size(update: Update, batch: Batch, size: int) -> None:
        sizes.append(size)
        add(update, batch, size)

    monkeypatch.setattr(Update, "add", note_size)
    microseconds = count()
    monkeypatch.setattr(timing.time, "monotonic", lambda: next(microseconds) / 1e6)
    watch.training_speeds(networks, SECONDS)
    assert sizes[:2] == [16, 3]


def test_training_has_a_speed(watch: Stopwatch, networks: list[Timed]) -> None:
    """On a slow machine, of the first network alone."""
    assert min(watch.training_speeds(networks, SECONDS)) > 0


class TestValidation:
    @pytest.fixture
    def speeds(
        self, setup: TrainingSetup, watch: Stopwatch, networks: list[Timed]
    ) -> tuple[float, ...]:
        """The speeds of losses, and of decoding."""
        return watch.validation_speeds(networks[0], setup.validation)

    def test_has_speeds(self, speeds: tuple[float, ...]) -> None:
        assert len(speeds) == 2
        assert min(speeds) > 0

    @pytest.mark.usefixtures("speeds")
    def test_counts_the_development_set(self, setup: TrainingSetup, watch: Stopwatch) -> None:
        assert watch.development_pairs == len(lengths_of(setup.data.valid.path_tgt))
