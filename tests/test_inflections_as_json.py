"""Inflections as JSON, which has neither infinity nor NaN."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax import Inflector
from onmt_entmax.inflector import Form, Inflection
from tests.inflection_models import write_model


@pytest.fixture
def without_forms(tmp_path: Path) -> Inflection:
    """The inflection by a model whose forms never end."""
    model = write_model(tmp_path / "model", seed=1, end=-100)
    return Inflector([model], max_length=5).inflect("german", "ab", "V")


@pytest.fixture
def with_impossible_form(tmp_path: Path) -> Inflection:
    """An inflection with several forms, to which an impossible one is added."""
    model = write_model(tmp_path / "model", seed=22)
    inflection = Inflector([model], n_best=3).inflect("german", "ab", "V;PST")
    assert len(inflection.forms) > 1
    return replace(inflection, forms=(*inflection.forms, Form("b", -math.inf, 0.0)))


@pytest.mark.parametrize("name", ["without_forms", "with_impossible_form"])
def test_an_inflection_is_strict_json(request: pytest.FixtureRequest, name: str) -> None:
    content = request.getfixturevalue(name).to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_json_has_all_forms(with_impossible_form: Inflection) -> None:
    forms = with_impossible_form.to_dict()["forms"]
    assert [form["form"] for form in forms] == [form.text for form in with_impossible_form.forms]


def test_the_logarithm_of_an_impossible_form_is_null(with_impossible_form: Inflection) -> None:
    *_, last = with_impossible_form.to_dict()["forms"]
    assert last == {"form": "b", "prob": 0.0, "log_prob": None}
