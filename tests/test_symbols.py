"""Symbols of the model's own, such as `</s>`: no text has them, and every command says so."""

import io
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
from onmt_entmax.report.writers import AnswerWriter
from onmt_entmax.search import Constraints, LineConstraints, SearchConfig, SearchTask
from onmt_entmax.suggester import suggest
from onmt_entmax.translator import Translator
from tests.commands import json_lines
from tests.in_process import refusal
from tests.models import small, words
from tests.toy import write_config

SYMBOLS = ["<s>", "</s>", "<blank>"]
VOCABULARIES = words("ab", "xyz")


def write_model_of(folder: Path, *likely: str) -> Path:
    """Write a model that gives these target tokens all probability."""
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
    line = refusal(train, ["-config", path])
    assert f"{file}: line 7: {symbol!r} is a symbol of the model's own" in line
    assert not list((tmp_path / "run").glob("step_*"))


def test_the_development_set_is_refused_too(tmp_path: Path) -> None:
    path = write_config(tmp_path)
    file = tmp_path / "valid.tgt"
    file.write_text("".join(f"<s> {line} </s>\n" for line in file.read_text().splitlines()))
    assert f"{file}: line 1: '</s>' is a symbol" in refusal(train, ["-config", path], progress=True)


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


def test_unknown_tokens_that_a_model_learns_to_write_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_config(tmp_path, train_steps=1, rnn_size=8, valid_steps=1)
    (tmp_path / "train.tgt").write_text("a <unk> b\n" * 240)
    assert train(["-config", str(path)]) == 0
    assert "warning: 240 of 720 target tokens of the training data are <unk>" in (
        capsys.readouterr().err
    )


PREPARE = "--out data --languages de en --train train.de train.en --val_size 5 --symbols 20"


@pytest.fixture
def text_with_symbols(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write train.de and train.en into the working directory; line 61 has symbols."""
    monkeypatch.chdir(tmp_path)
    lines = "".join(f"a b c {n}\n" for n in range(60))
    Path("train.de").write_text(f"{lines}a\n")
    Path("train.en").write_text(f"{lines}<s> a </s>\n")


@pytest.mark.usefixtures("text_with_symbols")
def test_prepared_tokens_have_none() -> None:
    line = refusal(prepare_files.main, [*PREPARE.split(), "--tokens"])
    assert "train.en: line 61: '</s>' is a symbol of the model's own" in line
    assert not Path("data").exists()


@pytest.mark.usefixtures("text_with_symbols")
def test_prepared_text_is_divided_into_subwords() -> None:
    assert prepare_files.main(PREPARE.split()) == 0


# --- decoding --------------------------------------------------------------------------------


def test_a_source_that_has_them_is_read_as_unknown() -> None:
    shared = Vocabulary(("<unk>", "<blank>", "<s>", "</s>", "a"))
    source = Reader(Vocabularies(shared, shared)).encode(["<s>", "a", "</s>", "<blank>", "<unk>"])
    assert list(source.example.source) == [0, 4, 0, 0, 0]
    assert source.unknown == ("<s>", "</s>", "<blank>")


def test_symbols_that_the_training_sources_had_are_read() -> None:
    """In a vocabulary that is not shared; `<blank>` is padding in any case."""
    vocabularies = Vocabularies(
        Vocabulary(("<unk>", "<blank>", "<s>", "a")),
        Vocabulary(("<unk>", "<blank>", "<s>", "</s>", "a", "b")),
    )
    source = Reader(vocabularies).encode(["<s>", "a", "<blank>"])
    assert list(source.example.source) == [2, 3, 0]
    assert source.unknown == ("<blank>",)


@pytest.mark.parametrize("symbol", SYMBOLS)
class TestRefused:
    """In what a user asks of outputs."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return write_model_of(tmp_path / "model", "x", "</s>")

    @pytest.fixture
    def message(self, symbol: str) -> str:
        return f"'{symbol}' is a symbol of the model's own, and no part of a text"

    def test_in_a_prefix(self, folder: Path, symbol: str, message: str) -> None:
        translator = Translator.from_folders([folder])
        with pytest.raises(UserError, match=f"prefix of line 1: {message}"):
            list(translator.answers(["a"], prefixes=[f"x {symbol}"]))

    @pytest.mark.parametrize("kind", ["contain", "avoid", "regex"])
    def test_in_constraints_of_a_line(
        self, folder: Path, symbol: str, message: str, kind: str
    ) -> None:
        constraints = {
            "contain": LineConstraints(((f"x {symbol}",),)),
            "avoid": LineConstraints(avoid=(symbol,)),
            "regex": LineConstraints(regex=f"x {symbol}"),
        }[kind]
        translator = Translator.from_folders([folder])
        with pytest.raises(UserError, match=f"constraints of line 1: {message}"):
            list(translator.answers(["a"], constraints=[constraints]))

    def test_in_a_constraint_of_all_lines(self, folder: Path, symbol: str, message: str) -> None:
        with pytest.raises(UserError, match=f"constraint_regex: {message}"):
            Translator.from_folders([folder], SearchTask(regex=f". {symbol}"))

    def test_in_a_prefix_to_continue(self, folder: Path, symbol: str, message: str) -> None:
        with pytest.raises(UserError, match=f"^{message}"):
            suggest(load(folder), "a", symbol)


class TestScoring:
    """A target with a symbol is scored as one with an unknown token."""

    def record(self, folder: Path, target: str) -> dict[str, Any]:
        """Return what `score` writes of a target."""
        folder.mkdir(exist_ok=True)
        model = write_model_of(folder / "model", "x", "y", "</s>")
        source, reference, output = folder / "src", folder / "tgt", folder / "out"
        source.write_text("a\n")
        reference.write_text(f"{target}\n")
        files = ["-model", model, "-src", source, "-tgt", reference, "-output", output]
        assert score.main([*map(str, files)]) == 0
        (record,) = json_lines(output)
        return record

    @pytest.mark.parametrize("token", ["</s>", "?"])
    def test_names_the_token(self, tmp_path: Path, token: str) -> None:
        record = self.record(tmp_path, f"x {token} y")
        assert record["excluded_at"] == 1
        assert list(record["unknown_target"]) == [token]

    def test_gives_the_same_numbers(self, tmp_path: Path) -> None:
        with_symbol, unknown = (
            [
                {**step, "token": ""}
                for step in self.record(tmp_path / name, f"x {token} y")["steps"]
            ]
            for name, token in (("symbol", "</s>"), ("unknown", "?"))
        )
        assert with_symbol == unknown


# --- no output is possible -------------------------------------------------------------------


def summary_of(folder: Path, task: SearchTask, **requests: Sequence[object]) -> str:
    """Return the summary of the translation of two lines."""
    writer = AnswerWriter(io.StringIO(), None, 1)
    for answer in Translator.from_folders([folder], task).answers(["a", "b"], **requests):
        writer.write(answer)
    return writer.summary.text()


def test_a_model_without_a_possible_output_is_blamed(tmp_path: Path) -> None:
    """A model trained on `<s> ...`, from before that was refused, writes nothing else."""
    text = summary_of(write_model_of(tmp_path / "model", "<s>"), SearchTask())
    assert text.splitlines()[0] == (
        "2 sentences, 2 without a possible output (the model gives all probability to start and "
        "padding symbols)"
    )


class TestRequestsThatLeaveNoOutput:
    """Of a model that writes the empty output alone."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return write_model_of(tmp_path / "model", "</s>")

    def test_are_named_of_each_line(self, folder: Path) -> None:
        task = SearchTask(SearchConfig(constraints=Constraints(min_length=2)))
        text = summary_of(folder, task, prefixes=["x", ""])
        assert "1 without a possible output under min_length" in text
        assert "1 without a possible output under prefix and min_length" in text

    def test_are_counted_of_the_lines_that_have_them(self, folder: Path) -> None:
        constraints = [LineConstraints(), LineConstraints((("x",),))]
        text = summary_of(folder, SearchTask(), constraints=constraints)
        assert "2 sentences, 1 without a possible output under constraints" in text
