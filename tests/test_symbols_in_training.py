"""Special symbols, such as `</s>`, in training data: no text may have them."""

from argparse import Namespace
from pathlib import Path

import pytest

from onmt_entmax.cli import prepare_files
from onmt_entmax.cli.train import main as train
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.transforms import build_transforms
from onmt_entmax.options.train import training_setup
from tests.in_process import refusal
from tests.models import vocabularies_of
from tests.toy import TRAINING_PAIRS, write_config

SYMBOLS = ["<s>", "</s>", "<blank>"]
# Arguments of `prepare files`.
PREPARE = "--out data --languages de en --train train.de train.en --val_size 5 --symbols 20"


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("side", ["src", "tgt"])
def test_training_refuses_texts_with_symbols(tmp_path: Path, side: str, symbol: str) -> None:
    path = write_config(tmp_path)
    file = tmp_path / f"train.{side}"
    lines = file.read_text().splitlines()
    number = 7
    lines[number - 1] = f"a {symbol} b"
    file.write_text("\n".join(lines) + "\n")
    line = refusal(train, ["-config", path])
    assert f"{file}: line {number}: {symbol!r} is a symbol of the model's own" in line
    assert not list((tmp_path / "run").glob("step_*"))


def test_a_development_set_with_symbols_is_refused_too(tmp_path: Path) -> None:
    path = write_config(tmp_path)
    file = tmp_path / "valid.tgt"
    file.write_text("".join(f"<s> {line} </s>\n" for line in file.read_text().splitlines()))
    assert f"{file}: line 1: '</s>' is a symbol" in refusal(train, ["-config", path], progress=True)


@pytest.mark.usefixtures("pyonmttok")
def test_symbols_that_transforms_divide_are_ordinary_text(tmp_path: Path) -> None:
    """The tokeniser makes several tokens of `</s>`."""
    joined = "{'mode': 'aggressive', 'joiner_annotate': True}"
    options = {f"{side}_onmttok_kwargs": joined for side in ("src", "tgt")}
    path = write_config(tmp_path, transforms=["onmt_tokenize"], **options)
    (tmp_path / "train.tgt").write_text("a </s> b\n" * TRAINING_PAIRS)
    setup = training_setup(["-config", str(path)])
    assert "￭/￭" in TrainingData.read(setup.data, setup.vocabulary).vocabularies.target


def test_switchout_never_writes_symbols() -> None:
    """The transform replaces words by random ones of the vocabulary."""
    vocabularies = vocabularies_of("ab", "xyz")
    options = Namespace(switchout_temperature=0.0)
    pipe = build_transforms(["switchout"], options, vocabularies)
    (transform,) = pipe.transforms
    for side, vocabulary in zip(("src", "tgt"), vocabularies, strict=True):
        assert {*transform.vocabs[side].itos} == {*vocabulary.tokens} - {*SYMBOLS}


def test_unknown_tokens_in_targets_give_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_config(tmp_path, train_steps=1, rnn_size=8, valid_steps=1)
    (tmp_path / "train.tgt").write_text("a <unk> b\n" * TRAINING_PAIRS)
    assert train(["-config", str(path)]) == 0
    counts = f"{TRAINING_PAIRS} of {3 * TRAINING_PAIRS} target tokens"
    assert f"warning: {counts} of the training data are <unk>" in capsys.readouterr().err


# --- `prepare files` ---


@pytest.fixture
def text_with_symbols(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write train.de and train.en into the working directory; line 61 of the latter has symbols."""
    monkeypatch.chdir(tmp_path)
    lines = "".join(f"a b c {n}\n" for n in range(60))
    Path("train.de").write_text(f"{lines}a\n")
    Path("train.en").write_text(f"{lines}<s> a </s>\n")


@pytest.mark.usefixtures("text_with_symbols")
def test_prepared_tokens_have_no_symbols() -> None:
    line = refusal(prepare_files.main, [*PREPARE.split(), "--tokens"])
    assert "train.en: line 61: '</s>' is a symbol of the model's own" in line
    assert not Path("data").exists()


@pytest.mark.usefixtures("text_with_symbols")
def test_prepared_subwords_divide_symbols() -> None:
    """Divided symbols are ordinary text, which stays in the training data."""
    assert prepare_files.main(PREPARE.split()) == 0
    assert "<s> a </s>\n" in Path("data/train.en").read_text()
    setup = training_setup(["-config", "data/train.yaml"])
    _, target_counts = TrainingData.read(setup.data, setup.vocabulary).counts
    assert not {*SYMBOLS} & target_counts.keys()
