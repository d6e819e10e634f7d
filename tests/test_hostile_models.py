"""Model folders of strangers: what is wrong in them is named in one line, without a hang."""

import dataclasses
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from onmt_entmax.checkpoint import load, save
from onmt_entmax.checksums import write_list
from onmt_entmax.config import ModelConfig, declared
from onmt_entmax.errors import UserError
from onmt_entmax.model import build_model
from onmt_entmax.search import SearchTask
from onmt_entmax.translator import Translator
from tests.test_model import CONFIGS, SMALL, TRANSFORMER, VOCABULARIES

HUGE = 10**400
RULES = {name: option.rule for name, option in declared(ModelConfig).items()}


@contextmanager
def no_hang(seconds: int = 30) -> Iterator[None]:
    """Fail after a time in which the slowest machine reads a refused folder."""

    def fail(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Save a recurrent model and a Transformer."""
    folders = {}
    for kind, config in (("rnn", SMALL), ("transformer", TRANSFORMER)):
        folders[kind] = tmp_path_factory.mktemp("models") / kind
        save(folders[kind], build_model(config, VOCABULARIES), config, VOCABULARIES, {})
    return folders


@pytest.fixture
def folder(models: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(models["rnn"], tmp_path / "model"))


def refused(work: Callable[[], object], *parts: str) -> None:
    """Check that the work ends in a short line that has all the parts."""
    with pytest.raises(UserError) as caught, no_hang():
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


def breaks(name: str) -> list[Any]:
    return [value for value in ABSURD if not RULES[name].fits(value)]


@pytest.mark.parametrize("name", RULES)
def test_absurd_values_break_the_rules(name: str) -> None:
    """Of each field, in the class itself."""
    values = breaks(name)
    assert len(values) >= len(ABSURD) - 4
    for value in values:
        refused(lambda value=value: ModelConfig(**{name: value}), f"{name}: must be ")


def test_every_field_has_a_rule_that_its_default_follows() -> None:
    fields = {field.name: field.default for field in dataclasses.fields(ModelConfig)}
    assert list(fields) == list(RULES)
    assert all(RULES[name].fits(default) for name, default in fields.items())


@pytest.mark.parametrize(
    "name", ["heads", "rnn_size", "enc_layers", "dropout", "rnn_type", "input_feed", "context_gate"]
)
def test_absurd_values_in_a_folder(folder: Path, name: str) -> None:
    """YAML cannot write all of them, and the rest of the fields differ by their rules alone."""
    for value in breaks(name):
        change_config(folder, lambda content, v=value: content["model"].update({name: v}))
        refused(lambda: load(folder), "config.yaml", "model: ")


def change_config(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "config.yaml"
    content = yaml.safe_load(path.read_text())
    saved = path.read_text()
    change(content)
    path.write_text(yaml.safe_dump(content))
    write_list(folder)
    assert saved != path.read_text()


MISFITS = [
    ("rnn", {"encoder_type": "transformer"}, "encoder_type: a Transformer needs"),
    ("rnn", {"decoder_type": "transformer"}, "encoder_type: a Transformer needs"),
    ("rnn", {"rnn_size": 7}, "rnn_size: must be even"),
    ("rnn", {"enc_layers": 1}, "dec_layers: 2 of a recurrent decoder"),
    ("rnn", {"dec_layers": 3}, "dec_layers: 3 of a recurrent decoder"),
    ("rnn", {"dec_layers": 1, "input_feed": False}, "dec_layers: 1 of a recurrent decoder"),
    ("rnn", {"encoder_type": "mean"}, "src_word_vec_size: must equal rnn_size"),
    ("rnn", {"bridge": True}, "bridge: OpenNMT-py"),
    ("rnn", {"position_encoding": True, "src_word_vec_size": 5}, "position_encoding: needs"),
    ("rnn", {"share_embeddings": True, "src_word_vec_size": 4}, "share_embeddings: needs equal"),
    ("rnn", {"share_embeddings": True}, "share_embeddings: needs one vocabulary"),
    ("rnn", {"share_embeddings": True, "freeze_word_vecs_enc": True}, "share_embeddings: is one"),
    ("rnn", {"share_decoder_embeddings": True}, "share_decoder_embeddings: needs"),
    ("transformer", {"heads": 3}, "heads: must divide rnn_size 8"),
    ("transformer", {"heads": 16}, "heads: must divide rnn_size 8"),
    ("transformer", {"src_word_vec_size": 6}, "src_word_vec_size: must equal rnn_size 8"),
    ("transformer", {"tgt_word_vec_size": 6}, "tgt_word_vec_size: must equal rnn_size 8"),
    # right by itself, and too much for the file of weights
    ("rnn", {"rnn_size": 10**6}, "too few for the"),
    ("rnn", {"enc_layers": 1000, "dec_layers": 1000}, "too few for the"),
    ("transformer", {"enc_layers": 1000}, "too few for the"),
    ("transformer", {"transformer_ff": 10**6}, "too few for the"),
    # unknown keys
    ("rnn", {"head": 8}, "model: head: no such key; did you mean 'heads'?"),
    ("rnn", {7: 8}, "model: 7: no such key"),
    ("rnn", {"x" * 5000: 8}, "no such key"),
    # retired
    ("rnn", {"tag_head": "[abc]"}, "tag_head: is retired"),
]


@pytest.mark.parametrize(("kind", "changes", "message"), MISFITS)
def test_values_that_do_not_fit(models, tmp_path, kind, changes, message) -> None:
    folder = Path(shutil.copytree(models[kind], tmp_path / "model"))
    change_config(folder, lambda content: content["model"].update(changes))
    refused(lambda: load(folder), str(folder), message)


BOMB = "a0: &a0 {x: 1, y: 2}\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30)
)
MERGED = "a0: &a0 {x: 1, y: 2}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 30)
)
NOT_YAML = {
    "empty": "",
    "a list": "[1, 2]",
    "a word": "format_version",
    "a tab": "\tmodel: {}",
    "aliases": BOMB,
    "merged aliases": MERGED,
    "an alias of itself": "model: &m {options: *m}",
    "an unknown alias": "model: *m",
    "deep lists": "model: " + "[" * 10**5,
    "deep closed lists": "model: " + "[" * 10**5 + "]" * 10**5,
    "deep mappings": "".join(" " * n + "a:\n" for n in range(900)),
    "twice": "model: {}\nmodel: {}\noptions: {}",
    "a tag": "model: !!python/object/apply:os.system [ls]",
    "another tag": "model: !x {}",
    "a list as key": "? [a]\n: 1",
    "a mapping as key": "? {a: 1}\n: 1",
    "an impossible date": "format_version: 2024-13-45",
    "many digits": "format_version: " + "9" * 5000,
    "base sixty": "format_version: 1" + ":1" * 10**5,
    "many hexadecimal digits": "model: 0x" + "f" * 9000,
    "null": "format_version: '1.0'\nmodel: \"\\0\"\noptions: {}",
    "no version": "model: {}\noptions: {}",
    "a version to come": "format_version: '2.0'\nmodel: {}\noptions: {}",
    "a version of digits": f"format_version: '{'1' * 4000}.0'\nmodel: {{}}\noptions: {{}}",
    "no model": "format_version: '1.0'\noptions: {}",
    "no options": "format_version: '1.0'\nmodel: {}",
    "options in a list": "format_version: '1.0'\nmodel: {}\noptions: []",
    "two documents": "format_version: '1.0'\n---\nmodel: {}",
    "too large": "# " + "x" * 2**20,
}


@pytest.mark.parametrize("text", NOT_YAML.values(), ids=NOT_YAML)
def test_configurations_that_are_none(folder: Path, text: str) -> None:
    (folder / "config.yaml").write_text(text)
    write_list(folder)
    refused(lambda: load(folder), "config.yaml")


def test_configurations_of_other_bytes(folder: Path) -> None:
    for content in (b"\xff\xfe\x00", b"\x00" * 100, "é".encode("utf-16")):
        (folder / "config.yaml").write_bytes(content)
        write_list(folder)
        refused(lambda: load(folder), "config.yaml")


SPECIAL = ["<unk>", "<blank>", "<s>", "</s>"]
TOKENS: dict[str, Any] = {
    "nothing": {},
    "a list": [],
    "null": None,
    "words": {"source": "abc", "target": "abc"},
    "one side": {"source": SPECIAL},
    "the other side": {"target": SPECIAL},
    "mappings": {"source": {"<unk>": 0}, "target": {"<unk>": 0}},
    "numbers": {"source": [*SPECIAL, 1], "target": SPECIAL},
    "null in a list": {"source": [*SPECIAL, None], "target": SPECIAL},
    "true": {"source": SPECIAL, "target": [*SPECIAL, True]},
    "lists": {"source": [*SPECIAL, ["a"]], "target": SPECIAL},
    "nested": {"source": [*SPECIAL, {"a": 1}], "target": SPECIAL},
    "empty": {"source": [], "target": []},
    "no <unk>": {"source": SPECIAL[1:], "target": SPECIAL},
    "no <blank>": {"source": ["<unk>", "a"], "target": SPECIAL},
    "no target <unk>": {"source": SPECIAL, "target": SPECIAL[1:]},
    "no target <blank>": {"source": SPECIAL, "target": ["<unk>", "<s>", "</s>"]},
    "no <s>": {"source": SPECIAL, "target": ["<unk>", "<blank>", "</s>"]},
    "no </s>": {"source": SPECIAL, "target": ["<unk>", "<blank>", "<s>"]},
    "twice": {"source": [*SPECIAL, "a", "a"], "target": SPECIAL},
    "a long one twice": {"source": SPECIAL, "target": [*SPECIAL, "a" * 10**5, "a" * 10**5]},
    "too many": {"source": SPECIAL, "target": [*SPECIAL, *map(str, range(10**5))]},
    "too few": {"source": SPECIAL, "target": SPECIAL},
}
NOT_JSON = {
    "no text": "",
    "half": '{"source": ["<unk>"',
    "deep": "[" * 10**6,
    "deep and closed": '{"a":' * 10**5 + "1" + "}" * 10**5,
    "a key twice": (
        f'{{"source": [], "source": {json.dumps(VOCABULARIES.source.tokens)}, '
        f'"target": {json.dumps(VOCABULARIES.target.tokens)}}}'
    ),
    "nan": '{"source": NaN}',
    "infinity": '{"source": [Infinity]}',
    "many digits": '{"source": [' + "9" * 10**4 + "]}",
    "too large": '{"source": [' + '"a",' * 2**24 + "]}",
}


@pytest.mark.parametrize("name", [*TOKENS, *NOT_JSON])
def test_vocabularies_that_are_none(folder: Path, name: str) -> None:
    text = NOT_JSON[name] if name in NOT_JSON else json.dumps(TOKENS[name])
    (folder / "vocab.json").write_text(text)
    write_list(folder)
    wrong = "model.safetensors" if name in ("too many", "too few") else "vocab.json"
    refused(lambda: load(folder), wrong)


@pytest.mark.parametrize("name", ["config.yaml", "vocab.json", "model.safetensors"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "nothing", "loop"])
def test_files_that_are_none(folder: Path, name: str, kind: str) -> None:
    path = folder / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind != "nothing":
        path.symlink_to("/dev/zero" if kind == "device" else path)
    refused(lambda: load(folder), str(folder))


BEST = [
    "1e400", "NaN", "true", "-1", '"2"', "null", "[2]", "{}", "1.5", "9" * 5000, "[" * 10**5, "",
]  # fmt: skip


@pytest.mark.parametrize("step", BEST, ids=lambda step: step[:10])
def test_the_best_step_is_a_number(folder: Path, step: str) -> None:
    """The run's own name for its best checkpoint; without it, a checkpoint must be named."""
    run = folder.parent / "run"
    folder.rename(run / "step_2") if run.mkdir() is None else None
    (run / "best.json").write_text(f'{{"step": {step}, "metric": "loss", "value": 1.0}}')
    refused(lambda: load(run), "best.json: damaged")


OPTIONS = [
    ("bart", {"mask_ratio": 2}),
    ("bart", {"mask_ratio": "much"}),
    ("bart", {"poisson_lambda": 0}),
    ("bart", {"replace_length": 7}),
    ("bart", {"mask_length": "page"}),
    ("tokendrop", {"tokendrop_temperature": float("nan")}),
    ("switchout", {"switchout_temperature": -float("inf")}),
    ("filtertoolong", {"src_seq_length": 0}),
    ("filtertoolong", {"src_seq_length": {"a": 1}}),
    ("filtertoolong", {"tgt_seq_length": HUGE}),
    ("sentencepiece", {"src_subword_nbest": -7}),
    ("bpe", {"src_subword_alpha": 1e9}),
    ("bpe", {"src_subword_model": "/dev/zero"}),
    ("sentencepiece", {"src_subword_model": "/dev/zero"}),
    ("bpe", {"src_subword_model": "a\0b"}),
    ("bpe", {"src_subword_model": ["a"]}),
    ("onmt_tokenize", {"src_onmttok_kwargs": "{'bpe_model_path': '/dev/zero'}"}),
    ("onmt_tokenize", {"src_onmttok_kwargs": "__import__('os').system('ls')"}),
    ("onmt_tokenize", {"src_onmttok_kwargs": "[" * 10**5}),
    ("onmt_tokenize", {"tgt_onmttok_kwargs": "{1: 2}"}),
    ("onmt_tokenize", {"tgt_onmttok_kwargs": {"mode": "space"}}),
    ("onmt_tokenize", {"share_vocab": "perhaps"}),
]


@pytest.mark.parametrize(("transform", "options"), OPTIONS)
def test_options_of_transforms(folder: Path, transform: str, options: dict[str, Any]) -> None:
    """Decoding reads them from the folder, as strictly as training does from YAML."""
    change_config(folder, lambda content: content.update(options=options))

    def translate() -> None:
        Translator([load(folder)], SearchTask(), [transform])

    (name,) = options
    refused(translate, name)


def test_options_are_read_only_for_transforms(folder: Path) -> None:
    """A folder from elsewhere may record options that this program does not have."""
    change_config(folder, lambda content: content.update(options={"mask_ratio": 7, "other": []}))
    assert load(folder).options == {"mask_ratio": 7, "other": []}
    Translator([load(folder)], SearchTask())


def test_aliases_of_ordinary_size_are_read(folder: Path) -> None:
    """Older versions wrote a list that two corpora share as an anchor and an alias."""
    text = (folder / "config.yaml").read_text().replace("options: {}", "")
    (folder / "config.yaml").write_text(text + "options: {a: &x [1], b: *x}\n")
    write_list(folder)
    assert load(folder).options == {"a": [1], "b": [1]}


@pytest.mark.parametrize("name", CONFIGS)
def test_ordinary_networks_are_read(tmp_path: Path, name: str) -> None:
    torch.manual_seed(0)
    model = build_model(CONFIGS[name], VOCABULARIES)
    save(tmp_path / "m", model, CONFIGS[name], VOCABULARIES, {})
    loaded = load(tmp_path / "m")
    assert loaded.config == CONFIGS[name]
