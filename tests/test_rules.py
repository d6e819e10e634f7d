"""Rules for values: what they allow, how messages say it, and the same in JSON Schema."""

import json
import math

import jsonschema
import pytest

from onmt_entmax.rules import FLAG, SHARE, Rule, number, one_of, positive, whole

RULES = {
    "whole": whole(1, 5),
    "whole or off": whole(1, 5, off=-1),
    "whole or a word": Rule(int, 1, 5, names=("all",)),
    "number": number(-1, 2.5),
    "positive": positive(2),
    "share": SHARE,
    "share or a word": Rule(float, 0, 1, excludes_high=True, names=("half",)),
    "unbounded": Rule(float, off=None),
    "flag": FLAG,
    "text": Rule(str),
    "word": one_of("dot", "mlp"),
    "word or none": one_of("dot", "mlp", off=None),
    "mapping": Rule(dict),
    "list": Rule(list),
}
# JSON Schema cannot tell 2.0 from 2, so no number here is a whole one written as a float.
VALUES = [
    *(-2, -1, 0, 1, 2, 3, 5, 6, 10**30, -1.5, 0.5, 1.5, 2.75),
    *(None, True, False, "", "all", "half", "dot", "other", "1", [], [1], {}, {"a": 1}),
]


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_the_schema_says_what_fits(rule: Rule) -> None:
    schema = json.loads(json.dumps(rule.schema(), allow_nan=False))
    validator = jsonschema.Draft202012Validator(schema)
    assert [value for value in VALUES if validator.is_valid(value) != rule.fits(value)] == []


@pytest.mark.parametrize("rule", [number(0, 1), Rule(float)], ids=["range", "unbounded"])
def test_nan_fits_no_rule(rule: Rule) -> None:
    assert not rule.fits(math.nan)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        pytest.param(whole(1, 5000), "a whole number from 1 to 5,000", id="range"),
        pytest.param(whole(1, 5, off=-1), "-1 or a whole number from 1 to 5", id="off"),
        pytest.param(one_of("a", "b", off=None), "none or one of a, b", id="words"),
        pytest.param(positive(2), "above 0 and at most 2", id="above"),
        pytest.param(
            Rule(float, 0, 1, excludes_high=True, names=("half",), note=" (of all)"),
            "half or at least 0 and below 1 (of all)",
            id="below, with a word and a note",
        ),
        pytest.param(FLAG, "true or false", id="flag"),
        pytest.param(Rule(list), "a list", id="list"),
    ],
)
def test_a_rule_says_what_a_value_must_be(rule: Rule, text: str) -> None:
    assert str(rule) == f"must be {text}"


def test_a_rule_for_booleans_reads_no_text() -> None:
    """`bool("false")` is True."""
    with pytest.raises(TypeError, match="bool reads no text"):
        FLAG("false")
