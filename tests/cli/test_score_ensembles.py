"""`onmt-entmax score`: the scores of an ensemble."""

import math
from pathlib import Path

import pytest

from onmt_entmax.data.vocabulary import Vocabularies
from tests.cli.scoring import VOCABULARIES, score_lines, write_model
from tests.models import vocabularies_of

OTHER_ORDER = vocabularies_of("ba", "zxy")  # the same tokens


def token_probabilities(folder: Path, *models: Path) -> list[float]:
    """Return the probabilities of the token `x` for the source `a b`, and of the end after it."""
    (record,) = score_lines(folder, *models, source=["a b"], target=["x"])
    log_probs = [step["log_prob"] for step in record["steps"]]
    return [0.0 if log_prob is None else math.exp(log_prob) for log_prob in log_probs]


@pytest.mark.parametrize("second", [VOCABULARIES, OTHER_ORDER], ids=["same ids", "other ids"])
def test_a_token_of_an_ensemble_has_the_mean_of_its_probabilities(
    tmp_path: Path, second: Vocabularies
) -> None:
    models = (tmp_path / "first", tmp_path / "second")
    write_model(models[0], 0)
    write_model(models[1], 1, second)
    alone = [token_probabilities(tmp_path, model) for model in models]
    mean = [sum(probs) / 2 for probs in zip(*alone, strict=True)]
    assert token_probabilities(tmp_path, *models) == pytest.approx(mean, abs=1e-5)
