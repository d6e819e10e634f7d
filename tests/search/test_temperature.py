"""A temperature: sampling from the distribution of divided scores."""

import pytest
import torch

from onmt_entmax.data.batch import Batch
from onmt_entmax.search import ModelStepper, Sampling
from tests.search.networks import VOCABULARIES, network, sentences, stepper
from tests.search.samples import Outcome, distribution


@pytest.mark.parametrize("kind", ["input-feeding", "transformer"], scope="class")
@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0], scope="class")
class TestATemperature:
    TEMPERATURE, LONGEST, SEED = 2.5, 2, 3

    @pytest.fixture(scope="class")
    def batch(self) -> Batch:
        (batch,) = sentences(1)
        return batch

    @pytest.fixture(scope="class")
    def divided(self, kind: str, alpha: float, batch: Batch) -> dict[Outcome, float]:
        """The distribution of a network whose scores are divided."""
        other = network(kind, alpha=alpha, seed=self.SEED)
        with torch.no_grad():
            other.generator.weight /= self.TEMPERATURE
            other.generator.bias /= self.TEMPERATURE
        return distribution(stepper(other), batch, Sampling(), self.LONGEST)

    @pytest.fixture(scope="class")
    def warm(self, kind: str, alpha: float) -> ModelStepper:
        model = network(kind, alpha=alpha, seed=self.SEED)
        return ModelStepper(model, VOCABULARIES.target, temperature=self.TEMPERATURE)

    def test_divides_the_scores(
        self, warm: ModelStepper, batch: Batch, divided: dict[Outcome, float]
    ) -> None:
        outcomes = distribution(warm, batch, Sampling(), self.LONGEST)
        assert outcomes == pytest.approx(divided, abs=1e-9)

    def test_divides_the_scores_in_float64(
        self, warm: ModelStepper, batch: Batch, divided: dict[Outcome, float]
    ) -> None:
        outcomes = distribution(warm.double(), batch, Sampling(), self.LONGEST)
        assert outcomes == pytest.approx(divided, abs=1e-6)

    def test_changes_the_distribution(
        self, kind: str, alpha: float, batch: Batch, divided: dict[Outcome, float]
    ) -> None:
        plain = stepper(network(kind, alpha=alpha, seed=self.SEED))
        outcomes = distribution(plain, batch, Sampling(), self.LONGEST)
        assert outcomes != pytest.approx(divided, abs=1e-3)
