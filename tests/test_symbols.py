"""Symbols of the model's own, such as `</s>`: no text has them, and every command says so."""

import io
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from onmt_entmax import load
from onmt_entmax.checkpoint import save
from onmt_entmax.cli import prepare_files, score
from onmt_entmax.cli.train import main as train
from onmt_entmax.data.reader import Reader
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.transforms import build_transforms
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary
from onmt_entmax.errors import UserError
from onmt_entmax.model import build_model
from onmt_entmax.options.train import training_setup
from onmt_entmax.report.summary import Summary
from onmt_entmax.report.writers import AnswerWriter
from onmt_entmax.search import Constraints, LineConstraints, SearchConfig, SearchTask
from onmt_entmax.suggester import suggest
from onmt_entmax.translator import Translator
from tests.commands import json_lines
from tests.ended import refused
from tests.models import small, words
from tests.toy import write_config

SYMBOLS = ["<s>", "</s>", "<blank>"]
VOCABULARIES = words("ab", "xyz")


def model(folder: Path, *likely: str) -> Path:
    """Write a model that gives these target tokens, and the end, all probability."""
    config = small(generator_alpha=2.0)
    torch.manual_seed(0)
    network = build_model(config, VOCABULARIES)
    with torch.no_grad():
        network.generator.bias.fill_(-100.0)
        network.generator.bias[VOCABULARIES.target.encode(likely)] = 0.0
    save(folder, network, config, VOCABULARIES, {})
    return folder


# --- training --------------------------------------------------------------------------------


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("side", ["src", "tgt"])
def test_training_refuses_texts_that_have_them(tmp_path: Path, side: str, symbol: str) -> None:
    path = write_config(tmp_path)
    file = tmp_path / f"train.{side}"
    lines = file.read_text().splitlines()
    lines[6] = f"a {symbol} b"
    file.write_text("\n".join(lines) + "\n")
    line = refused(train, ["-config", path])
    assert f"{file}: line 7: {symbol!r} is a symbol of the model's own" in line
    assert not list((tmp_path / "run").glob("step_*"))


def test_the_development_set_is_refused_too(tmp_path: Path) -> None:
    path = write_config(tmp_path)
    file = tmp_path / "valid.tgt"
    file.write_text("".join(f"<s> {line} </s>\n" for line in file.read_text().splitlines()))
    assert f"{file}: line 1: '</s>' is a symbol" in refused(train, ["-config", path], progress=True)


@pytest.mark.usefixtures("pyonmttok")
def test_a_text_whose_transforms_divide_them_is_one_like_others(tmp_path: Path) -> None:
    joined = "{'mode': 'aggressive', 'joiner_annotate': True}"
    options = {f"{side}_onmttok_kwargs": joined for side in ("src", "tgt")}
    path = write_config(tmp_path, transforms=["onmt_tokenize"], **options)
    (tmp_path / "train.tgt").write_text("a </s> b\n" * 240)
    setup = training_setup(["-config", str(path)])
    assert "￭/￭" in TrainingData(setup.data, setup.vocabulary).vocabularies.target


def test_switchout_never_writes_them() -> None:
    options = Namespace(switchout_temperature=0.0)
    pipe = build_transforms(["switchout"], options, VOCABULARIES)
    for side, known in zip(("src", "tgt"), VOCABULARIES, strict=True):
        (transform,) = pipe.transforms
        assert set(transform.vocabs[side].itos) == set(known.tokens) - set(SYMBOLS)


def test_unknown_tokens_that_a_model_learns_to_write_are_said(tmp_path: Path, capsys) -> None:
    path = write_config(tmp_path, train_steps=1, rnn_size=8, valid_steps=1)
    (tmp_path / "train.tgt").write_text("a <unk> b\n" * 240)
    assert train(["-config", str(path)]) == 0
    assert "warning: 240 of 720 target tokens of the training data are <unk>" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("tokens", [True, False])
def test_prepared_tokens_have_none(tmp_path: Path, monkeypatch, tokens: bool) -> None:
    """Of text, subwords divide them."""
    monkeypatch.chdir(tmp_path)
    for language in ("de", "en"):
        Path(f"train.{language}").write_text("".join(f"a b c {n}\n" for n in range(60)))
    with open("train.en", "a") as file:
        file.write("<s> a </s>\n")
    with open("train.de", "a") as file:
        file.write("a\n")
    command = "--out data --languages de en --train train.de train.en --val_size 5 --symbols 20"
    if tokens:
        line = refused(prepare_files.main, [*command.split(), "--tokens"])
        assert "train.en: line 61: '</s>' is a symbol of the model's own" in line
        assert not Path("data").exists()
    else:
        assert prepare_files.main(command.split()) == 0


# --- decoding --------------------------------------------------------------------------------


def test_a_source_that_has_them_is_read_as_unknown() -> None:
    """Except where the training data had them: in a vocabulary that is not shared."""
    tokens = ("<unk>", "<blank>", "<s>", "</s>", "a")
    shared = Vocabulary(tokens)
    read = Reader(Vocabularies(shared, shared)).encode(["<s>", "a", "</s>", "<blank>", "<unk>"])
    assert list(read.example.source) == [0, 4, 0, 0, 0]
    assert read.unknown == ("<s>", "</s>", "<blank>")
    own = Vocabularies(Vocabulary(("<unk>", "<blank>", "<s>", "a")), Vocabulary((*tokens, "b")))
    read = Reader(own).encode(["<s>", "a", "<blank>"])
    assert list(read.example.source) == [2, 3, 0]
    assert read.unknown == ("<blank>",)


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_prefixes_and_constraints_with_them_are_refused(tmp_path: Path, symbol: str) -> None:
    folder = model(tmp_path / "model", "x", "</s>")
    said = f"'{symbol}' is a symbol of the model's own, and no part of a text"
    translator = Translator.from_folders([folder])
    with pytest.raises(UserError, match=f"prefix of line 1: {said}"):
        list(translator.answers(["a"], prefixes=[f"x {symbol}"]))
    for wish in (
        LineConstraints(((f"x {symbol}",),)),
        LineConstraints(avoid=(symbol,)),
        LineConstraints(regex=f"x {symbol}"),
    ):
        with pytest.raises(UserError, match=f"constraints of line 1: {said}"):
            list(translator.answers(["a"], constraints=[wish]))
    with pytest.raises(UserError, match=f"constraint_regex: {said}"):
        Translator.from_folders([folder], SearchTask(regex=f". {symbol}"))
    with pytest.raises(UserError, match=f"^{said}"):
        suggest(load(folder), "a", symbol)


def test_a_target_with_them_is_scored_as_one_with_an_unknown_token(tmp_path: Path) -> None:
    folder = model(tmp_path / "model", "x", "y", "</s>")
    steps = []
    for target in ("x </s> y", "x ? y"):
        for name, text in (("src", "a\n"), ("tgt", f"{target}\n")):
            (tmp_path / name).write_text(text)
        files = {"-src": "src", "-tgt": "tgt", "-output": "out"}
        more = [str(w) for name, file in files.items() for w in (name, tmp_path / file)]
        assert score.main(["-model", str(folder), *more]) == 0
        (record,) = json_lines(tmp_path / "out")
        assert record["excluded_at"] == 1
        assert list(record["unknown_target"]) == [target.split()[1]]
        steps.append([{**step, "token": ""} for step in record["steps"]])
    assert steps[0] == steps[1]


# --- no output is possible -------------------------------------------------------------------


def summary_of(folder: Path, task: SearchTask, **given: Sequence[object]) -> Summary:
    writer = AnswerWriter(io.StringIO(), None, 1)
    for answer in Translator.from_folders([folder], task).answers(["a", "b"], **given):
        writer.write(answer)
    return writer.summary


def test_without_a_possible_output_only_what_was_asked_is_blamed(tmp_path: Path) -> None:
    """A model trained on `<s> ...`, from before that was refused, writes nothing else."""
    text = summary_of(model(tmp_path / "broken", "<s>"), SearchTask()).text().splitlines()[0]
    assert text == (
        "2 sentences, 2 without a possible output (the model gives all probability to start and "
        "padding symbols)"
    )
    ending = model(tmp_path / "ending", "</s>")
    task = SearchTask(SearchConfig(constraints=Constraints(min_length=2)))
    text = summary_of(ending, task, prefixes=["x", ""]).text()
    assert "1 without a possible output under min_length" in text
    assert "1 without a possible output under prefix and min_length" in text
    none, some = LineConstraints(), LineConstraints((("x",),))
    text = summary_of(ending, SearchTask(), constraints=[none, some]).text()
    assert "2 sentences, 1 without a possible output under constraints" in text
