"""`target_symbols` of a `Transducer`: its warnings, and when it calls an output the only one."""

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
    """Do some work, and return the texts of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [str(warning.message) for warning in caught]


def test_a_language_without_recorded_symbols_gives_one_warning(model: Path) -> None:
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
    """The folder of the same model without recorded symbols, as earlier releases wrote it."""
    return write_letters(tmp_path / "old", seen=None)


def test_a_model_without_recorded_symbols_gives_a_warning(old: Path) -> None:
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


def exclusion_warnings(folder: Path, recorded: str, target_symbols: str) -> list[str]:
    """Write a model, predict `QUERY`, and return the warnings of excluded probability.

    Args:
        folder: folder of the model.
        recorded: target letters that it records for the language of the query.
        target_symbols: the option.
    """
    write_letters(folder, seen={"lang=x": recorded})
    transducer = Transducer(folder, n_best=0, max_length=LONGEST, target_symbols=target_symbols)
    (prediction,) = transducer.predictions([QUERY])
    return [text for text in prediction.warnings if text.startswith("excluded with symbols")]


@pytest.mark.parametrize("recorded", ["a", "ab"], ids=["one letter", "two letters"])
class TestExcludedProbability:
    def test_gives_a_warning(self, tmp_path: Path, recorded: str) -> None:
        assert len(exclusion_warnings(tmp_path / "model", recorded, "language")) == 1

    def test_gives_none_if_all_symbols_are_allowed(self, tmp_path: Path, recorded: str) -> None:
        assert exclusion_warnings(tmp_path / "model", recorded, "any") == []


# --- a single output -------------------------------------------------------------------------


def predict_without(folder: Path, tokens: Iterable[str], target_symbols: str) -> Prediction:
    """Write a model that gives these target tokens no probability, and predict `QUERY`."""
    write_letters(folder)
    loaded = load(folder)
    with torch.no_grad():
        loaded.model.generator.bias[loaded.vocabularies.target.encode(tokens)] = -100.0
    save(folder, loaded.model, loaded.config, loaded.vocabularies, loaded.options)
    transducer = Transducer(folder, n_best=0, max_length=LONGEST, target_symbols=target_symbols)
    (prediction,) = transducer.predictions([QUERY])
    return prediction


class TestTheOnlyAllowedOutput:
    """It is the empty one, since the model gives no probability to the letters a and b of x.

    Outputs with the letters c and d are possible, too, but the option excludes them.
    """

    @pytest.fixture
    def prediction(self, tmp_path: Path) -> Prediction:
        prediction = predict_without(tmp_path / "model", ["<unk>", "a", "b"], "language")
        assert prediction.certificate.log_excluded_bound > -math.inf
        return prediction

    def test_alone_is_listed(self, prediction: Prediction) -> None:
        assert [output.text for output in prediction.outputs] == [""]
        assert prediction.certificate.level == "exhaustive"

    def test_is_not_called_the_only_possible_one(self, prediction: Prediction) -> None:
        assert not prediction.only


def test_the_only_possible_output_is_called_the_only_one(tmp_path: Path) -> None:
    prediction = predict_without(tmp_path / "model", ["<unk>", *LETTERS], "any")
    assert [output.text for output in prediction.outputs] == [""]
    assert prediction.only
