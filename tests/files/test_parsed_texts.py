"""YAML and JSON of strangers: what is wrong is one line, and neither hangs nor runs code."""

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.files.parsing import parse_json, parse_yaml
from tests.refusals import assert_short_line


def repeated_tenfold(line: str) -> str:
    """Return YAML in which each line repeats the one before ten times: 10 ** 29 values."""
    lines = [line.format(n, ", ".join([f"*a{n - 1}"] * 10)) for n in range(1, 30)]
    return "\n".join(["a0: &a0 {x: 1, y: 2}", *lines])


TOO_MUCH = "nested too deeply or too many values"
# Texts that are not YAML or not allowed, and what the message says.
WRONG_YAML = {
    "a tab": ("\ta: {}", "line 1: not valid YAML: found character that cannot start any token"),
    "many values by lists": (repeated_tenfold("a{0}: &a{0} [{1}]"), TOO_MUCH),
    "many values by merged mappings": (
        repeated_tenfold("a{0}: &a{0} {{{{<<: [{1}]}}}}"),
        TOO_MUCH,
    ),
    "an alias of nothing": ("a: *b", "found undefined alias"),
    "many lists that do not end": ("[" * 10**5, TOO_MUCH),
    "lists in lists": ("[" * 10**5 + "]" * 10**5, TOO_MUCH),
    "mappings in mappings": ("".join(" " * n + "a:\n" for n in range(900)), TOO_MUCH),
    "a key twice": ("a: 1\na: 1", "line 2: not valid YAML: the key 'a' is given twice"),
    "a key twice, with another between": (
        "a: 1\nb: 2\na: 3",
        "line 3: not valid YAML: the key 'a' is given twice",
    ),
    "a key twice, quoted": ("a: 1\n'a': 2", "the key 'a' is given twice"),
    "a key twice, inside": ("a: {b: 1, b: 2}", "the key 'b' is given twice"),
    "a key twice, as two spellings of a number": (
        "1: a\n0x1: b",
        "the key '0x1' is given twice",
    ),
    "a key twice, in a mapping that is merged": (
        "a: &a {x: 1, x: 2}\nb: {<<: *a}",
        "the key 'x' is given twice",
    ),
    "code": ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
    "a tag": ("a: !x {}", "could not determine a constructor for the tag '!x'"),
    "a type that does not fit": ("a: !!bool x", "not valid YAML: 'x'"),
    "a list as key": ("? [a]\n: 1", "found unhashable key"),
    "a mapping as key": ("? {a: 1}\n: 1", "found unhashable key"),
    "no date": ("a: 2024-13-45", "month must be in 1..12"),
    "a long number": ("a: " + "9" * 5000, "Exceeds the limit (4300 digits)"),
    "a zero byte": ('a: "\\0', "found unexpected end of stream"),
    "two documents": ("a: 1\n---\nb: 2", "but found another document"),
    "a long text": ("# " + "x" * 2**20, "larger than 1,048,576 characters"),
}
WRONG_JSON = {
    "nothing": ("", "Expecting value: line 1 column 1"),
    "a list that does not end": ('{"a": [', "Expecting value: line 1 column 8"),
    "many lists that do not end": ("[" * 10**6, "while decoding a JSON array"),
    "mappings in mappings": (
        '{"a":' * 10**5 + "1" + "}" * 10**5,
        "while decoding a JSON object",
    ),
    "a key twice": ('{"a": 1, "a": 2}', "a key is given twice"),
    "nan": ('{"a": NaN}', "not valid JSON: NaN"),
    "infinity": ("[Infinity]", "not valid JSON: Infinity"),
    "a long number": ("9" * 10**4, "Exceeds the limit (4300 digits)"),
}


@pytest.mark.parametrize(("text", "reason"), WRONG_YAML.values(), ids=WRONG_YAML)
def test_wrong_yaml_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UserError) as raised:
        parse_yaml(text)
    assert_short_line(raised.value, "not valid YAML: ", reason)


@pytest.mark.parametrize(("text", "reason"), WRONG_JSON.values(), ids=WRONG_JSON)
def test_wrong_json_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UserError) as raised:
        parse_json(text)
    assert_short_line(raised.value, "not valid JSON: ", reason)


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
