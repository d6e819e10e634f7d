"""Measuring the speed of networks: turns, and what is counted. No test depends on a speed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from onmt_entmax.train.timing import Stopwatch, Timed, round_robin
from tests.train.trainers import setup_of


class World:
    """A clock that updates of networks move, each by the network's own time."""

    def __init__(self) -> None:
        self.now, self.turns = 0.0, ""

    def updates(self, name: str, seconds: float) -> Iterator[float]:
        while True:
            self.now += seconds
            self.turns += name
            yield seconds


def test_networks_take_turns_until_the_deadline() -> None:
    world = World()
    updates = [world.updates("a", 1.0), world.updates("b", 2.0)]
    assert round_robin(updates, 8.0, lambda: world.now) == [(3, 3.0), (3, 6.0)]
    assert world.turns == "ababab"


@pytest.mark.parametrize(("deadline", "turns"), [(-1.0, "a"), (0.5, "a"), (1.0, "ab")])
def test_only_the_first_network_has_a_turn_in_any_case(deadline: float, turns: str) -> None:
    world = World()
    updates = [world.updates(name, 1.0) for name in "abc"]
    sums = round_robin(updates, deadline, lambda: world.now)
    assert sums == [(1, 1.0)] * len(turns)
    assert world.turns == turns


def test_a_speed_is_examples_over_seconds(tmp_path: Path) -> None:
    """Each network has its own batches; the toy corpora have targets of two to six letters."""
    setup = setup_of(tmp_path, rnn_size=8, selection="exact_match")
    watch = Stopwatch(setup.data, setup.vocabulary, torch.device("cpu"))
    lengths = [len(line.split()) for line in (tmp_path / "train.tgt").open()]
    assert (watch.rows, watch.target) == (240, sum(lengths) / 240)
    networks = [
        Timed(replace(setup.data, batch_size=size), setup.model, setup.training) for size in (16, 3)
    ]
    batches: list[int] = []

    def trainer(network: Timed) -> object:
        run = made(network)
        add = run.update.add
        run.update.add = lambda batch, size: batches.append(size) or add(batch, size)
        return run

    made, watch._trainer = watch._trainer, trainer
    speeds = watch.training_speeds(networks, 0.05)
    assert {*batches[:2]} == {16, 3}
    assert all(speed > 0 for speed in speeds)
    rates = watch.validation_speeds(networks[0], setup.validation)
    assert min(rates) > 0
    assert watch.dev == 40
