"""Several threads search with one model."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from onmt_entmax.search import SearchConfig, beam_search
from tests.search.networks import network, sentences, stepper


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Let Python switch between threads after each microsecond."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("frequent_switches")
@pytest.mark.parametrize("kind", ["input-feeding", "gru", "transformer", "average"])
def test_threads_share_a_model_and_nothing_else(kind: str) -> None:
    """OpenNMT-py's decoders keep a state, so every search needs its own."""
    shared = stepper(network(kind, 1.5, seed=2))
    batches = sentences(4, seed=2)

    def outputs(batch: Any) -> list[tuple[Any, float]]:
        config = SearchConfig(beam_size=3, n_best=2, max_length=6)
        (result,) = beam_search(shared, batch, config)
        return [(hypothesis.tokens, hypothesis.log_prob) for hypothesis in result.hypotheses]

    alone = [outputs(batch) for batch in batches]
    assert all(alone)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(outputs, batches * 6))
    assert together == alone * 6
