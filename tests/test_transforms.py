"""Translation with OpenNMT-py's transforms, which turn text into tokens and tokens into text.

In most tests the tokeniser splits words into letters.
"""

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.train import main as train
from onmt_entmax.cli.translate import main as translate
from onmt_entmax.data.transform_options import TransformError
from onmt_entmax.options.recorded import transforms_of
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tests.toy import write_config

JOINED = "{'mode': 'char', 'joiner_annotate': True}"
# The longest output that a test looks at is a prefix of three letters and a few more.
TASK = SearchTask(SearchConfig(beam_size=3, n_best=3, max_length=8))


def join_words(folder: Path) -> None:
    """Take the spaces out of the toy corpora, so that the tokeniser has words to split.

    A line is added that has only a byte order mark. The tokeniser leaves nothing of it, so its pair
    is left out of the training.
    """
    for name in ("train.src", "train.tgt", "valid.src", "valid.tgt"):
        file = folder / name
        file.write_text(file.read_text().replace(" ", "") + "\ufeff\n")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, pyonmttok: Any) -> Path:
    """Train a model of words like `fedc`, whose tokens are `f ￭e ￭d ￭c`."""
    folder = tmp_path_factory.mktemp("joined")
    options = {"src_onmttok_kwargs": JOINED, "tgt_onmttok_kwargs": JOINED}
    path = write_config(
        folder, transforms=["onmt_tokenize", "tokendrop"], train_steps=20, valid_steps=20,
        rnn_size=8, save_checkpoint_steps=20, **options,
    )  # fmt: skip
    join_words(folder)
    assert train(["-config", str(path)]) == 0
    return folder / "run"


def translator_of(run: Path, **options: object) -> Translator:
    """Return the translator of a run, whose recorded transforms get these options."""
    return Translator.from_folders([run], TASK, transform_options=Namespace(**options))


# --- prefixes --------------------------------------------------------------------------------


def test_outputs_begin_with_the_text_of_a_prefix(run: Path) -> None:
    """It is tokenised as targets are."""
    translator = translator_of(run)
    (answer,) = translator.answers(["abc"], prefixes=["fed"])
    assert answer.hypotheses
    for output in answer.hypotheses:
        assert output.text.startswith("fed")
        tokens = translator.vocabularies.target.decode(output.hypothesis.tokens)
        assert tokens[:3] == ["f", "￭e", "￭d"]


def test_without_a_prefix_outputs_begin_otherwise(run: Path) -> None:
    """The model itself would not write the text of the prefix."""
    (answer,) = translator_of(run).answers(["abc"])
    assert not all(output.text.startswith("fed") for output in answer.hypotheses)


# --- texts that several sequences of tokens write --------------------------------------------


def test_a_text_that_other_tokens_may_write_has_slack(run: Path) -> None:
    """Slack is how much more probable a text may be than the listed outputs that write it."""
    (answer,) = translator_of(run).answers(["abc"])
    listed = sum(output.hypothesis.prob for output in answer.hypotheses)
    assert answer.result.certificate.level != "exhaustive"
    # Certificates are about tokens: each sequence that is not listed may write this text.
    assert answer_record(answer)["slack"] == pytest.approx(1 - listed, abs=1e-4)


def test_outputs_of_tokens_have_no_slack(run: Path) -> None:
    translator = Translator([load(run / "step_20")], TASK, transforms=())
    (answer,) = translator.answers(["a ￭b ￭c"])
    assert "slack" not in answer_record(answer)


# --- the transforms of a translation ---------------------------------------------------------


@pytest.mark.parametrize(
    ("recorded", "names"),
    [
        pytest.param(
            {"transforms": ["filtertoolong"], "data": {"c": {"path_src": "x"}}},
            ["filtertoolong"],
            id="of all corpora",
        ),
        pytest.param(
            {"transforms": ["bpe"], "data": {"c": {"transforms": ["tokendrop", "onmt_tokenize"]}}},
            ["bpe", "tokendrop", "onmt_tokenize"],
            id="of a corpus, too",
        ),
    ],
)
def test_the_transforms_of_a_training_are_those_of_all_its_corpora(
    recorded: dict[str, Any], names: list[str]
) -> None:
    assert transforms_of(recorded) == names


class TestTransformsOfATranslation:
    """The subword transforms of the training, unless others are named."""

    def output(self, run: Path, folder: Path, source: str, *more: str) -> str:
        """Translate a line with further options; return the output."""
        (folder / "source").write_text(f"{source}\n")
        files = ["-src", str(folder / "source"), "-output", str(folder / "output")]
        assert translate(["-model", str(run), *files, "-min_length", "3", *more]) == 0
        return (folder / "output").read_text()

    @pytest.fixture
    def tokens(self, run: Path, tmp_path: Path) -> str:
        """The output of a translation without transforms."""
        tokens = self.output(run, tmp_path, "a ￭b ￭c", "-transforms")
        assert " ￭" in tokens
        return tokens

    def test_are_those_of_subwords_by_default(self, run: Path, tmp_path: Path, tokens: str) -> None:
        text = self.output(run, tmp_path, "abc")
        assert text == tokens.replace(" ", "").replace("￭", "")

    def test_may_be_named(self, run: Path, tmp_path: Path) -> None:
        text = self.output(run, tmp_path, "abc", "-transforms", "onmt_tokenize")
        assert text == self.output(run, tmp_path, "abc")


# --- refused transforms ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        pytest.param(
            "tgt_onmttok_kwargs",
            "{'joiner_anotate': True}",
            "onmt_tokenize cannot be made",
            id="a misspelt argument",
        ),
        pytest.param(
            "tgt_onmttok_kwargs",
            "{'bpe_model_path': 'x'}",
            "_path: name it in tgt_subword_model",
            id="a file among the arguments",
        ),
        pytest.param(
            "src_subword_type",
            "bpe",
            "src_subword_type: needs src_subword_model",
            id="subwords without their file",
        ),
    ],
)
def test_a_transform_that_cannot_be_made_is_an_error_of_one_line(
    run: Path, option: str, value: str, message: str
) -> None:
    with pytest.raises(TransformError, match=message) as caught:
        translator_of(run, **{option: value})
    assert "\n" not in str(caught.value)


def test_a_transform_of_training_corpora_is_refused(run: Path) -> None:
    with pytest.raises(TransformError, match="prefix knows training corpora alone"):
        Translator.from_folders([run], transforms=["prefix"])


# --- files of transforms ---------------------------------------------------------------------


def subwords_of(text: str, model: Path) -> list[str]:
    """Return the tokens of a text as a model reads it."""
    tokens, *_ = Translator.from_folders([model]).reader.preprocess(text)
    return tokens


@pytest.mark.usefixtures("pyonmttok")
def test_a_model_folder_has_a_copy_of_its_subword_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads them when it was moved, and the training's own file is gone."""
    monkeypatch.chdir(tmp_path)
    Path("bpe.model").write_text("#version: 0.2\na b\n")  # a and b become one token
    path = write_config(
        tmp_path, transforms=["onmt_tokenize"], train_steps=2,
        src_subword_type="bpe", src_subword_model="bpe.model",
        tgt_subword_type="bpe", tgt_subword_model="bpe.model",
    )  # fmt: skip
    join_words(tmp_path)
    assert train(["-config", str(path)]) == 0
    Path("bpe.model").unlink()
    (tmp_path / "elsewhere").mkdir()
    moved = (tmp_path / "run").rename(tmp_path / "elsewhere/run")
    assert subwords_of("abc", moved) == ["ab", "c"]
    monkeypatch.chdir(moved)
    assert subwords_of("abc", Path("step_2")) == ["ab", "c"]
