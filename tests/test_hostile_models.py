"""Configurations of strangers: what is wrong in them is one line, without a hang."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from onmt_entmax.checkpoint import LoadedModel, load, save
from onmt_entmax.config import ModelConfig, declared
from onmt_entmax.errors import UserError
from onmt_entmax.files.checksums import write_list
from onmt_entmax.files.parsing import parse_json, parse_yaml
from onmt_entmax.model import build_model
from onmt_entmax.search import SearchTask
from onmt_entmax.translator import Translator
from tests.models import SMALL, TRANSFORMER, VOCABULARIES

HUGE = 10**400
RULES = {name: option.rule for name, option in declared(ModelConfig).items()}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Save a recurrent model and a Transformer."""
    folders = {}
    for kind, config in (("rnn", SMALL), ("transformer", TRANSFORMER)):
        folders[kind] = tmp_path_factory.mktemp("models") / kind
        save(folders[kind], build_model(config, VOCABULARIES), config, VOCABULARIES, {})
    return folders


def refused(work: Callable[[], object], *parts: str) -> None:
    """Check that the work ends in a short line that has all the parts."""
    with pytest.raises(UserError) as caught:
        work()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 500
    for part in parts:
        assert part in message


ABSURD: list[Any] = [
    None, True, -1, 0, 0.5, HUGE, -HUGE, float("nan"), float("inf"), -float("inf"), "", "x" * 5000,
    [], [1], {}, {"a": 1},
]  # fmt: skip


@pytest.mark.parametrize("field", dataclasses.fields(ModelConfig), ids=lambda field: field.name)
def test_absurd_values_break_the_rules(field: dataclasses.Field) -> None:
    rule = RULES[field.name]
    assert rule.fits(field.default)
    values = [value for value in ABSURD if not rule.fits(value)]
    assert len(values) >= len(ABSURD) - 4
    for value in values:
        refused(lambda value=value: ModelConfig(**{field.name: value}), f"{field.name}: must be ")


MISFITS = [
    ("rnn", {"encoder_type": "transformer"}, "encoder_type: a Transformer needs"),
    ("rnn", {"rnn_size": 7, "encoder_type": "brnn"}, "rnn_size: must be even"),
    ("rnn", {"enc_layers": 1}, "dec_layers: 2 of a recurrent decoder"),
    ("rnn", {"encoder_type": "mean"}, "src_word_vec_size: must equal rnn_size"),
    ("rnn", {"position_encoding": True, "src_word_vec_size": 5}, "position_encoding: needs"),
    ("rnn", {"share_embeddings": True}, "share_embeddings: needs one vocabulary"),
    ("transformer", {"heads": 3}, "heads: must divide rnn_size 8"),
    ("transformer", {"enc_layers": 3}, "model.safetensors: "),
    ("rnn", {"x" * 5000: 8}, "no such key"),
]


@pytest.mark.parametrize(("kind", "changes", "message"), MISFITS)
def test_networks_that_do_not_fit(
    models: dict[str, Path], tmp_path: Path, kind: str, changes: dict[str, object], message: str
) -> None:
    folder = Path(shutil.copytree(models[kind], tmp_path / "model"))
    content = yaml.safe_load((folder / "config.yaml").read_text())
    content["model"].update(changes)
    (folder / "config.yaml").write_text(yaml.safe_dump(content))
    write_list(folder)
    refused(lambda: load(folder), str(folder), message)


def bomb(line: str) -> str:
    """Return YAML in which each line repeats the one before ten times."""
    lines = [line.format(n, ", ".join([f"*a{n - 1}"] * 10)) for n in range(1, 30)]
    return "\n".join(["a0: &a0 {x: 1, y: 2}", *lines])


NOT_YAML = [
    "\ta: {}", bomb("a{0}: &a{0} [{1}]"), bomb("a{0}: &a{0} {{{{<<: [{1}]}}}}"), "a: *b",
    "[" * 10**5, "[" * 10**5 + "]" * 10**5, "".join(" " * n + "a:\n" for n in range(900)),
    "a: 1\nb: 2\na: 3", "a: 1\na: 1", "a: 1\n'a': 2", "a: {b: 1, b: 2}",
    "a: !!python/object/apply:os.system [ls]",
    "a: !x {}", "a: !!bool x",
    "? [a]\n: 1", "? {a: 1}\n: 1", "a: 2024-13-45", "a: " + "9" * 5000, 'a: "\\0',
    "a: 1\n---\nb: 2", "# " + "x" * 2**20,
]  # fmt: skip
NOT_JSON = [
    "", '{"a": [', "[" * 10**6, '{"a":' * 10**5 + "1" + "}" * 10**5, '{"a": 1, "a": 2}',
    '{"a": NaN}', "[Infinity]", "9" * 10**4,
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_YAML, ids=range(len(NOT_YAML)))
def test_texts_that_are_not_yaml(text: str) -> None:
    refused(lambda: parse_yaml(text), "not valid YAML: ")


@pytest.mark.parametrize("text", NOT_JSON, ids=range(len(NOT_JSON)))
def test_texts_that_are_not_json(text: str) -> None:
    refused(lambda: parse_json(text), "not valid JSON: ")


def test_ordinary_yaml_is_read() -> None:
    """Merged mappings may replace keys, aliases may repeat, and 1e-3 is a number."""
    text = "x: &x {a: 1, b: [1e-3, -2E5]}\ny: {<<: *x, a: 2}\nz: [*x, *x]"
    x = {"a": 1, "b": [0.001, -200_000.0]}
    assert parse_yaml(text) == {"x": x, "y": x | {"a": 2}, "z": [x, x]}


def test_ordinary_json_is_read() -> None:
    assert parse_json('{"a": [1, null, "ä"]}') == {"a": [1, None, "ä"]}


def test_a_key_that_is_given_twice_is_named_with_its_line() -> None:
    with pytest.raises(UserError, match=r"line 3: .* the key 'a' is given twice"):
        parse_yaml("a: 1\nb: 2\na: 3\n")


OPTIONS = [
    ("bart", {"mask_ratio": 2}),
    ("tokendrop", {"tokendrop_temperature": float("nan")}),
    ("filtertoolong", {"src_seq_length": {"a": 1}}),
    ("sentencepiece", {"src_subword_nbest": -7}),
    ("bpe", {"src_subword_model": "/dev/zero"}),
    ("bpe", {"src_subword_model": "a\0b"}),
    ("onmt_tokenize", {"src_onmttok_kwargs": "{'bpe_model_path': '/dev/zero'}"}),
    ("onmt_tokenize", {"src_onmttok_kwargs": "__import__('os').system('ls')"}),
    ("onmt_tokenize", {"src_onmttok_kwargs": "[" * 10**5}),
]


def with_options(folder: Path, options: dict[str, Any]) -> LoadedModel:
    return dataclasses.replace(load(folder), options=options)


@pytest.mark.parametrize(("transform", "options"), OPTIONS)
def test_wrong_options_of_transforms_are_refused(
    models: dict[str, Path], transform: str, options: dict[str, Any]
) -> None:
    """Decoding reads them from the folder, as strictly as training does from YAML."""
    model, (name,) = with_options(models["rnn"], options), options
    refused(lambda: Translator([model], SearchTask(), [transform]), name)


@pytest.mark.parametrize(("transform", "options"), OPTIONS)
def test_wrong_options_that_no_transform_reads_do_no_harm(
    models: dict[str, Path], transform: str, options: dict[str, Any]
) -> None:
    Translator([with_options(models["rnn"], options)], SearchTask())
