"""`Transducer` of several models: means of next tokens, or of whole texts."""

import math
from pathlib import Path

import pytest

from onmt_entmax import Transducer
from onmt_entmax.transducer import TransducerError
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.string_models import LETTERS, PHONES, UNKNOWN, all_texts, task_options, write_phones


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_phones(tmp_path_factory.mktemp("phones") / "model", 3)


def test_models_of_the_same_vocabularies_score_a_text_as_they_predict_it(
    model: Path, tmp_path: Path
) -> None:
    """Their probabilities are averaged token by token."""
    others = [write_phones(tmp_path / str(seed), seed) for seed in (4, 5)]
    ensemble = Transducer([model, *others])
    best = ensemble.predict("abd").outputs[0]
    assert math.exp(ensemble.score("abd", best.text)) == pytest.approx(best.prob, abs=1e-6)


def test_models_of_both_directions_average_probabilities_of_texts(
    model: Path, tmp_path: Path
) -> None:
    """Two models that write from left to right count twice as much as one from right to left."""
    right_to_left = write_phones(tmp_path / "other", 4, target_order="right_to_left")
    third = write_phones(tmp_path / "third", 5)
    all_three = Transducer([model, right_to_left, third])
    forward, backward = Transducer([model, third]), Transducer(right_to_left)

    def prob(transducer: Transducer, text: str) -> float:
        return math.exp(transducer.score("abd", text))

    for text in all_texts(longest=2):
        expected = (2 * prob(forward, text) + prob(backward, text)) / 3
        assert prob(all_three, text) == pytest.approx(expected, abs=1e-9)


def test_models_of_different_target_symbols_score_texts_as_they_predict_them(
    model: Path, tmp_path: Path
) -> None:
    """They average probabilities of whole texts. The other model can write x, too."""
    options = task_options(separators={"target": " "})
    vocabularies = vocabularies_of(LETTERS, (*PHONES, "x"))
    other = write_model(tmp_path / "other", 4, vocabularies, options=options)
    both = Transducer([model, other], n_best=3, beam_size=50, max_length=2)
    outputs = both.predict("abd").outputs
    # A text with an unknown symbol has no score.
    probs = {output.text: output.prob for output in outputs if UNKNOWN not in output.text}
    assert len(probs) > 1
    scored = {text: math.exp(both.score("abd", text)) for text in probs}
    assert scored == pytest.approx(probs, rel=1e-5)


def test_models_of_different_tasks_are_refused(model: Path, tmp_path: Path) -> None:
    vocabularies = vocabularies_of(LETTERS, "ab")
    characters = write_model(tmp_path / "characters", 3, vocabularies, options=task_options())
    with pytest.raises(TransducerError, match=r"different tasks; target: symbols between ' '"):
        Transducer([model, characters])
