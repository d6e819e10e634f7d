"""YAML and JSON of strangers: what is wrong is one line, and neither hangs nor runs code."""

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.files.parsing import parse_json, parse_yaml
from tests.refusals import assert_short_line


def repeated_tenfold(line: str) -> str:
    """Return YAML in which each line repeats the one before ten times: 10 ** 29 values."""
    lines = [line.format(n, ", ".join([f"*a{n - 1}"] * 10)) for n in range(1, 30)]
    return "\n".join(["a0: &a0 {x: 1, y: 2}", *lines])


WRONG_YAML = {
    "a tab": "\ta: {}",
    "many values by lists": repeated_tenfold("a{0}: &a{0} [{1}]"),
    "many values by merged mappings": repeated_tenfold("a{0}: &a{0} {{{{<<: [{1}]}}}}"),
    "an alias of nothing": "a: *b",
    "many lists that do not end": "[" * 10**5,
    "lists in lists": "[" * 10**5 + "]" * 10**5,
    "mappings in mappings": "".join(" " * n + "a:\n" for n in range(900)),
    "a key twice": "a: 1\na: 1",
    "a key twice, with another between": "a: 1\nb: 2\na: 3",
    "a key twice, quoted": "a: 1\n'a': 2",
    "a key twice, inside": "a: {b: 1, b: 2}",
    "a key twice, as two spellings of a number": "1: a\n0x1: b",
    "a key twice, in a mapping that is merged": "a: &a {x: 1, x: 2}\nb: {<<: *a}",
    "code": "a: !!python/object/apply:os.system [ls]",
    "a tag": "a: !x {}",
    "a type that does not fit": "a: !!bool x",
    "a list as key": "? [a]\n: 1",
    "a mapping as key": "? {a: 1}\n: 1",
    "no date": "a: 2024-13-45",
    "a long number": "a: " + "9" * 5000,
    "a zero byte": 'a: "\\0',
    "two documents": "a: 1\n---\nb: 2",
    "a long text": "# " + "x" * 2**20,
}
WRONG_JSON = {
    "nothing": "",
    "a list that does not end": '{"a": [',
    "many lists that do not end": "[" * 10**6,
    "mappings in mappings": '{"a":' * 10**5 + "1" + "}" * 10**5,
    "a key twice": '{"a": 1, "a": 2}',
    "nan": '{"a": NaN}',
    "infinity": "[Infinity]",
    "a long number": "9" * 10**4,
}


@pytest.mark.parametrize("text", WRONG_YAML.values(), ids=WRONG_YAML)
def test_wrong_yaml_is_refused(text: str) -> None:
    with pytest.raises(UserError) as raised:
        parse_yaml(text)
    assert_short_line(raised.value, "not valid YAML: ")


@pytest.mark.parametrize("text", WRONG_JSON.values(), ids=WRONG_JSON)
def test_wrong_json_is_refused(text: str) -> None:
    with pytest.raises(UserError) as raised:
        parse_json(text)
    assert_short_line(raised.value, "not valid JSON: ")


def test_ordinary_yaml_is_read() -> None:
    """Merged mappings may replace keys, aliases may repeat, and 1e-3 is a number."""
    text = "x: &x {a: 1, b: [1e-3, -2E5]}\ny: {<<: *x, a: 2}\nz: [*x, *x]"
    x = {"a": 1, "b": [0.001, -200_000.0]}
    assert parse_yaml(text) == {"x": x, "y": x | {"a": 2}, "z": [x, x]}


def test_a_mapping_that_replaced_a_merged_key_may_itself_be_merged() -> None:
    text = "a: &a {k: 1}\nb: &b {<<: *a, k: 2}\nc: {<<: *b, l: 3}"
    assert parse_yaml(text)["c"] == {"k": 2, "l": 3}


def test_ordinary_json_is_read() -> None:
    assert parse_json('{"a": [1, null, "ä"]}') == {"a": [1, None, "ä"]}


def test_a_key_that_is_given_twice_is_named_with_its_line() -> None:
    with pytest.raises(UserError, match=r"line 3: .* the key 'a' is given twice"):
        parse_yaml("a: 1\nb: 2\na: 3\n")
