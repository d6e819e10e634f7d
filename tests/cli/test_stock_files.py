"""YAML files after OpenNMT-py's documentation: unchanged, they train and their models translate."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import yaml

from onmt_entmax.cli import train, translate
from onmt_entmax.options.recorded import transforms_of
from tests.commands import ROOT, succeed
from tests.in_process import refusal, success

STOCK = {path.stem: path for path in (ROOT / "tests" / "stock").rglob("*.yaml")}
# Files that train, and a part of what is said about their options.
TRAINED = {
    "quickstart": "equal values: src_vocab (lines 6 and 21), tgt_vocab (lines 7 and 22)",
    "transformer": "world_size 4 but 1 process: gradients of all batches are accumulated",
    "characters": "early_stopping_criteria accuracy as selection token_accuracy",
    "summarisation": "world_size 2 but 1 process: gradients of all batches are accumulated",
    "sentencepiece": "subword_nbest as src_subword_nbest and tgt_subword_nbest",
    "half_precision": "optim fusedadam as adam, batch_size_multiple as batches of any size",
    "two_machines": "without effect here: save_data, master_ip",
    "bpe": "without effect here: save_data, overwrite (only as a flag)",
    "tokenizer": "subword_alpha as src_subword_alpha and tgt_subword_alpha",
    "corpora": "without effect here: save_data",
    "no_validation": "early_stopping (needs data: valid)",
    "noise": "best checkpoint",
    "embeddings": "vectors for",
}
# Files that are refused, and what to do.
REFUSED = {
    "copy": "copy_attn: not supported: copy attention is not supported; delete the line",
    "graphs": "not 'ggnn'; graph encoders are not supported; use OpenNMT-py",
    "language_model": "not 'lm'; language models are not supported; use OpenNMT-py",
    "features": "src_feats_vocab: not supported: source features are not supported; write",
    "alignments": "lambda_align: not supported: alignment supervision is not supported; delete",
    "fine_tuning": ": onmt-entmax import-onmt data/run/model_step_1000.pt data/run/model_step_1000",
}
# Of every file, only sizes and limits are changed, by flags.
FEW = ["-train_steps", 5, "-valid_steps", 5, "-save_checkpoint_steps", 5]
SIZE = 16
SMALL = ["-rnn_size", SIZE, "-word_vec_size", SIZE]
LINES = 60  # of every text
TRANSFORMER = ["-transformer_ff", 16, "-heads", 2, "-enc_layers", 1, "-dec_layers", 1]

# --- the files that are named in them --------------------------------------------------------


def write_text(path: Path, upper: bool = False) -> None:
    """Write lines of words of letters, the same for all files, in lower or upper case."""
    generator = random.Random(5)
    words = ["".join(generator.choices("abcdefgh", k=3)) for _ in range(30)]
    lines = [" ".join(generator.choices(words, k=generator.randint(2, 5))) for _ in range(LINES)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line.upper() if upper else line}\n" for line in lines))


def learn_sentencepiece(path: Path, texts: Sequence[Path]) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    sentencepiece.SentencePieceTrainer.train(
        input=list(map(str, texts)),
        model_prefix=str(path.with_suffix("")),
        vocab_size=60,
        minloglevel=2,
    )
    path.with_suffix(".model").rename(path)


def learn_bpe(path: Path, texts: Sequence[Path]) -> None:
    pyonmttok = pytest.importorskip("pyonmttok")
    learner = pyonmttok.BPELearner(tokenizer=pyonmttok.Tokenizer("aggressive"), symbols=20)
    for text in texts:
        learner.ingest_file(str(text))
    learner.learn(str(path))


def write_subwords(folder: Path, config: Mapping[str, Any], texts: Sequence[Path]) -> None:
    """Learn the subword models that a YAML file names, each of which is of both languages."""
    kind = config.get("src_subword_type", "sentencepiece")
    learn = {"sentencepiece": learn_sentencepiece, "bpe": learn_bpe}[kind]
    names = {config[key] for key in {"src_subword_model", "tgt_subword_model"} & config.keys()}
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        learn(folder / name, texts)


def write_embeddings(path: Path, texts: Sequence[Path]) -> None:
    """Write the same vector for each word of texts, of the size that `SMALL` has."""
    path.parent.mkdir()
    words = dict.fromkeys(word for text in texts for word in text.read_text().split())
    path.write_text("".join(f"{word}{' 0.5' * SIZE}\n" for word in words))


def write_inputs(name: str, folder: Path) -> dict[str, Any]:
    """Write all files that a YAML file names; return its content.

    Skip the test if the file needs a library that is not installed.
    """
    config: dict[str, Any] = yaml.safe_load(STOCK[name].read_text(encoding="utf-8"))
    if "onmt_tokenize" in transforms_of(config):
        pytest.importorskip("pyonmttok")
    texts = []
    for corpus in config["data"].values():
        for key in {"path_src", "path_tgt", "path_align"} & corpus.keys():
            texts.append(folder / corpus[key])
            write_text(texts[-1], upper=key == "path_tgt")
    write_subwords(folder, config, texts)
    if config.get("both_embeddings"):
        write_embeddings(folder / config["both_embeddings"], texts)
    return config


# --- training and translation ----------------------------------------------------------------


def test_every_file_is_tried() -> None:
    assert STOCK.keys() == {*TRAINED, *REFUSED}


def test_the_documents_state_the_share() -> None:
    share = f"f {len(STOCK)} YAML files after its documentation, {len(TRAINED)} train unchanged"
    for name in ("README.md", "docs/opennmt.md", "docs/architecture.md"):
        text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
        assert share in text, name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quickstart", "transformer"])
def test_it_trains_in_full_size(tmp_path: Path, name: str) -> None:
    write_inputs(name, tmp_path)
    succeed("train.py", "-config", STOCK[name], "-train_steps", 4, cwd=tmp_path)


class Trained(NamedTuple):
    """A file with which a model was trained."""

    name: str
    config: dict[str, Any]
    """The content of the file."""
    folder: Path
    """Paths of the file are relative to it."""
    printed: str


@pytest.fixture(scope="module", params=TRAINED)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A file that trains; a test runs for each."""
    name, folder = request.param, tmp_path_factory.mktemp("stock")
    config = write_inputs(name, folder)
    is_transformer = config.get("encoder_type") == "transformer"
    small = [*SMALL, *TRANSFORMER] if is_transformer else SMALL
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        printed = success(train.main, ["-config", STOCK[name], *FEW, *small])
    return Trained(name, config, folder, printed)


def test_its_options_are_explained(trained: Trained) -> None:
    assert TRAINED[trained.name] in trained.printed


def test_a_missing_gpu_is_named(trained: Trained) -> None:
    """Of several processes without a GPU, the first warns; `gpu_ranks: []` asks for none."""
    asks_for_a_gpu = trained.config.get("gpu_ranks") not in (None, [])
    warned = "warning: gpu_ranks 0: no GPU here; running on the CPU" in trained.printed
    assert warned == (asks_for_a_gpu and not torch.cuda.is_available())


def test_it_ends_at_its_limit(trained: Trained) -> None:
    assert "finished at step 5 (train_steps)" in trained.printed


def test_the_vocabulary_is_written(trained: Trained) -> None:
    assert (trained.folder / trained.config["src_vocab"]).is_file()


def test_its_model_translates(trained: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained.folder)
    data = trained.config["data"]
    source = data["valid" if "valid" in data else "corpus_1"]["path_src"]
    files = ["-model", trained.config["save_model"], "-src", source, "-output", "out"]
    success(translate.main, [*files, "-gpu", 0, "-verbose", "-max_length", 8, "-beam_size", 2])
    assert len(Path("out").read_text().splitlines()) == LINES


# --- refusals --------------------------------------------------------------------------------


class Refused(NamedTuple):
    """A file that a training refused, with the error."""

    name: str
    run: Path
    """The folder that the training would have written."""
    error: str


@pytest.fixture(scope="module", params=REFUSED)
def refused(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Refused:
    """A file that is refused; a test runs for each."""
    name, folder = request.param, tmp_path_factory.mktemp("refused")
    config = write_inputs(name, folder)
    if "train_from" in config:  # the error names the command that imports a checkpoint
        (folder / config["train_from"]).parent.mkdir(exist_ok=True)
        (folder / config["train_from"]).write_bytes(b"a checkpoint of OpenNMT-py")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        error = refusal(train.main, ["-config", STOCK[name]], progress=True)
    return Refused(name, folder / config["save_model"], error)


def test_it_is_refused_with_what_to_do(refused: Refused) -> None:
    assert REFUSED[refused.name] in refused.error


def test_nothing_is_written_if_it_is_refused(refused: Refused) -> None:
    assert not refused.run.exists()
