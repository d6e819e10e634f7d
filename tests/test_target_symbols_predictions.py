"""`target_symbols` of a `Transducer`: its warnings, and when an output is the only one."""

import math
import re
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import torch

from onmt_entmax import Inflector, Query, Transducer
from onmt_entmax.checkpoint import load, save
from onmt_entmax.prediction import Prediction
from tests.letter_models import LETTERS, write_letters

LONGEST = 3  # tokens of an output
QUERY = Query("a", ("V",), "x")

# A warning that no test expects is an error.
pytestmark = pytest.mark.filterwarnings("error::UserWarning")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_letters(tmp_path_factory.mktemp("letters") / "model")


# --- warnings --------------------------------------------------------------------------------


def warnings_of(work: Callable[[], object]) -> list[str]:
    """Return the texts of all warnings of some work."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [str(warning.message) for warning in caught]


def test_a_language_without_recorded_symbols_is_warned_of_once(model: Path) -> None:
    transducer = Transducer(model, n_best=0, budget=0, target_symbols="language")
    queries = [Query("ab", ("V",), "z")] * 3

    def predict_twice() -> None:
        list(transducer.predictions(queries))
        list(transducer.predictions(queries))

    assert warnings_of(predict_twice) == [
        "target_symbols: the model does not record the target symbols of z: its outputs may have "
        "any"
    ]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A model folder in which no symbols are recorded; other than that, the same as `model`."""
    return write_letters(tmp_path / "old", seen=None)


def test_a_model_without_recorded_symbols_is_warned_of(old: Path) -> None:
    (line,) = warnings_of(lambda: Inflector(old, target_symbols="language").inflect("x", "ab", "V"))
    assert re.search("old does not record .*: no symbols are excluded", line)


def test_a_model_without_recorded_symbols_gives_no_warning_if_all_are_allowed(old: Path) -> None:
    assert warnings_of(lambda: Transducer(old).predict("ab", "V", "x")) == []


@pytest.mark.parametrize("source", ["ab", "d"])
def test_recorded_symbols_change_no_prediction_if_all_are_allowed(
    model: Path, old: Path, source: str
) -> None:
    expected = Transducer(old).predict(source, "V", "x")
    assert Transducer(model, target_symbols="any").predict(source, "V", "x") == expected


def exclusion_warnings(folder: Path, seen: str, option: str) -> list[str]:
    """Return the warnings of excluded probability, of a model that records these letters."""
    write_letters(folder, seen={"lang=x": seen})
    transducer = Transducer(folder, n_best=0, max_length=LONGEST, target_symbols=option)
    (prediction,) = transducer.predictions([QUERY])
    return [text for text in prediction.warnings if text.startswith("excluded with symbols")]


@pytest.mark.parametrize("seen", ["a", "ab"], ids=["one allowed letter", "two allowed letters"])
class TestExcludedProbability:
    def test_is_warned_of(self, tmp_path: Path, seen: str) -> None:
        assert len(exclusion_warnings(tmp_path / "model", seen, "language")) == 1

    def test_is_nothing_if_all_symbols_are_allowed(self, tmp_path: Path, seen: str) -> None:
        assert exclusion_warnings(tmp_path / "model", seen, "any") == []


# --- a single output -------------------------------------------------------------------------


def predict_without(folder: Path, tokens: Iterable[str], target_symbols: str) -> Prediction:
    """Predict with a model that gives these target tokens no probability."""
    write_letters(folder)
    loaded = load(folder)
    with torch.no_grad():
        loaded.model.generator.bias[loaded.vocabularies.target.encode(tokens)] = -100.0
    save(folder, loaded.model, loaded.config, loaded.vocabularies, loaded.options)
    transducer = Transducer(folder, n_best=0, max_length=LONGEST, target_symbols=target_symbols)
    (prediction,) = transducer.predictions([QUERY])
    return prediction


def test_the_only_allowed_output_is_not_called_the_only_one(tmp_path: Path) -> None:
    """Of the outputs of a and b, the letters of x, only the empty one is possible.

    Outputs of c and d, which are excluded, are possible, too.
    """
    prediction = predict_without(tmp_path / "model", ["<unk>", "a", "b"], "language")
    assert [output.text for output in prediction.outputs] == [""]
    assert prediction.certificate.level == "exhaustive"
    assert prediction.certificate.log_excluded_bound > -math.inf
    assert not prediction.only


def test_the_only_possible_output_is_called_the_only_one(tmp_path: Path) -> None:
    prediction = predict_without(tmp_path / "model", ["<unk>", *LETTERS], "any")
    assert [output.text for output in prediction.outputs] == [""]
    assert prediction.only
