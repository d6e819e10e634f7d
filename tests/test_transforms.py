"""Translation through OpenNMT-py's transforms: text in, text out."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.train import main as train
from onmt_entmax.cli.translate import main as translate
from onmt_entmax.data.transforms import TransformError
from onmt_entmax.options.reader import transforms_of
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tests.toy import write_config

JOINED = "{'mode': 'char', 'joiner_annotate': True}"


def join_words(folder: Path) -> None:
    """Take the spaces out of the toy corpora; add a line of which tokenising leaves nothing."""
    for name in ("train.src", "train.tgt", "valid.src", "valid.tgt"):
        file = folder / name
        file.write_text(file.read_text().replace(" ", "") + "\ufeff\n")


@pytest.fixture
def run(tmp_path: Path, pyonmttok: Any) -> Path:
    """Train a model of words like `fedc`, whose tokens are `f ￭e ￭d ￭c`."""
    options = {"src_onmttok_kwargs": JOINED, "tgt_onmttok_kwargs": JOINED}
    path = write_config(
        tmp_path, transforms=["onmt_tokenize", "tokendrop"], train_steps=20, valid_steps=20,
        rnn_size=8, save_checkpoint_steps=20, **options,
    )  # fmt: skip
    join_words(tmp_path)
    assert train(["-config", str(path)]) == 0
    return tmp_path / "run"


def translator(run: Path, **options: object) -> Translator:
    task = SearchTask(SearchConfig(beam_size=3, n_best=3, max_length=8))
    return Translator.from_folders([run], task, transform_options=Namespace(**options))


def test_a_prefix_is_text_as_a_source_is(run: Path) -> None:
    """The prefix is tokenised as targets are, and outputs begin with it."""
    reader = translator(run)
    assert "￭e" in reader.vocabularies.target
    free, begun = reader.answers(["abc", "abc"], prefixes=["", "fed"])
    assert begun.hypotheses
    for decoded in begun.hypotheses:
        assert decoded.text.startswith("fed")
        tokens = reader.vocabularies.target.decode(decoded.hypothesis.tokens)
        assert tokens[:3] == ["f", "￭e", "￭d"]
    assert not all(decoded.text.startswith("fed") for decoded in free.hypotheses)


def test_texts_that_other_tokens_become_too_have_slack(run: Path) -> None:
    (answer,) = translator(run).answers(["abc"])
    listed = sum(decoded.hypothesis.prob for decoded in answer.hypotheses)
    assert answer.result.certificate.level != "exhaustive"
    assert answer.record()["slack"] == pytest.approx(1 - listed, abs=1e-4)
    task = SearchTask(SearchConfig(beam_size=3, n_best=3, max_length=8))
    plainly = Translator([load(run / "step_20")], task, transforms=())
    (plain,) = plainly.answers(["a ￭b ￭c"])
    assert "slack" not in plain.record()


def test_a_model_reads_text_by_the_subword_transforms_of_its_training(run: Path) -> None:
    """Unless others are named; other transforms of training are not applied."""
    named = {"transforms": ["filtertoolong"], "data": {"c": {"path_src": "x"}}}
    assert transforms_of(named) == ["filtertoolong"]
    own = {"transforms": ["bpe"], "data": {"c": {"transforms": ["tokendrop", "onmt_tokenize"]}}}
    assert transforms_of(own) == ["bpe", "tokendrop", "onmt_tokenize"]
    source, tokens = run.parent / "source", run.parent / "tokens"
    source.write_text("abc\n")
    tokens.write_text("a ￭b ￭c\n")
    outputs = {}
    for name, more in (
        ("default", ["-src", str(source)]),
        ("named", ["-src", str(source), "-transforms", "onmt_tokenize"]),
        ("none", ["-src", str(tokens), "-transforms"]),
    ):
        output = run.parent / name
        command = ["-model", str(run), "-output", str(output), "-min_length", "3", *more]
        assert translate(command) == 0
        outputs[name] = output.read_text()
    joined = outputs["none"].replace(" ", "").replace("￭", "")
    assert outputs["default"] == outputs["named"] == joined != outputs["none"]


def test_transforms_that_cannot_be_made_are_one_line(run: Path) -> None:
    for option, value, message in (
        ("tgt_onmttok_kwargs", "{'joiner_anotate': True}", "onmt_tokenize cannot be made"),
        ("tgt_onmttok_kwargs", "{'bpe_model_path': 'x'}", "_path: name it in tgt_subword_model"),
        ("src_subword_type", "bpe", "src_subword_type: needs src_subword_model"),
    ):
        with pytest.raises(TransformError, match=message) as caught:
            translator(run, **{option: value})
        assert "\n" not in str(caught.value)
    with pytest.raises(TransformError, match="prefix knows training corpora alone"):
        Translator.from_folders([run], transforms=["prefix"])


@pytest.mark.usefixtures("pyonmttok")
def test_a_trained_model_brings_its_subwords_along(tmp_path: Path, monkeypatch) -> None:
    """Moved, after the subword file of the training is gone, and from another folder."""
    monkeypatch.chdir(tmp_path)
    Path("bpe.model").write_text("#version: 0.2\na b\n")
    options = {"transforms": ["onmt_tokenize"], "train_steps": 2}
    for side in ("src", "tgt"):
        options |= {f"{side}_subword_type": "bpe", f"{side}_subword_model": "bpe.model"}
    path = write_config(tmp_path, **options)
    join_words(tmp_path)
    assert train(["-config", str(path)]) == 0
    Path("bpe.model").unlink()
    (tmp_path / "elsewhere").mkdir()
    moved = (tmp_path / "run").rename(tmp_path / "elsewhere/run")
    for folder, path in ((tmp_path, moved), (moved, Path("step_2"))):
        monkeypatch.chdir(folder)
        reader = Translator.from_folders([path]).reader
        assert reader.preprocess("abc")[0] == ["ab", "c"]
