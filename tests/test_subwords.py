"""Subword models of users: `translate` takes and gives text, and training measures that text."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sentencepiece
import torch
import yaml

from onmt_entmax import Query, Transducer, Translator, load
from onmt_entmax.cli import bleu, score
from onmt_entmax.cli.train import main as train
from onmt_entmax.cli.translate import main as translate
from onmt_entmax.data.batch import Batch
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.transforms import Bpe, SentencePiece
from onmt_entmax.files.checksums import write_list
from onmt_entmax.model import build_model
from onmt_entmax.options.train import training_setup
from onmt_entmax.search import LineConstraints, SearchConfig, SearchTask
from onmt_entmax.suggester import Suggester
from onmt_entmax.train import evaluation
from tests.commands import json_lines
from tests.inflection_models import write_model
from tests.models import words
from tests.toy import write_config

TEXTS = [
    "the woman walks home",
    "a man, walking",
    "home, the dog barks",
    "the man runs !",
]
MARKS = ("▁", "@@", "￭")


def learn_sentencepiece(path: Path) -> None:
    with open(path, "wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(TEXTS * 20), model_writer=file, vocab_size=60,
            hard_vocab_limit=False, minloglevel=2,
            normalization_rule_name="identity",
        )  # fmt: skip


def learn_bpe(path: Path) -> None:
    learner = pytest.importorskip("subword_nmt.learn_bpe")
    with open(path, "w", encoding="utf-8") as file:
        learner.learn_bpe(TEXTS * 20, file, 12, num_workers=1)


def onmt(path: Path, **options: object) -> dict[str, object]:
    pytest.importorskip("pyonmttok")
    learn_sentencepiece(path)
    settings: dict[str, object] = {"transforms": ["onmt_tokenize"]}
    for side in ("src", "tgt"):
        settings |= {
            f"{side}_subword_type": "sentencepiece",
            f"{side}_onmttok_kwargs": str(options),
        }
    return settings


def pieces(path: Path) -> dict[str, object]:
    learn_sentencepiece(path)
    return {"transforms": ["sentencepiece"]}


def merges(path: Path) -> dict[str, object]:
    learn_bpe(path)
    return {"transforms": ["bpe"]}


KINDS: dict[str, Callable[[Path], dict[str, object]]] = {
    "sentencepiece": pieces,
    "bpe": merges,
    "onmt_tokenize-spacers": lambda path: onmt(path, mode="none"),
    "onmt_tokenize-joiners": lambda path: onmt(
        path, mode="aggressive", joiner_annotate=True, no_substitution=True
    ),
}


def configured(folder: Path, kind: str, **changes: object) -> Path:
    """Write text, a subword model and the YAML file of a training; return the file's path."""
    model = str(folder / "subwords")
    options = KINDS[kind](folder / "subwords") | {
        "src_subword_model": model, "tgt_subword_model": model, "train_steps": 100,
        "valid_steps": 100, "save_checkpoint_steps": 100, "dropout": 0.0, "learning_rate": 0.03,
        "batch_size": 8, "generator_function": "softmax",
    }  # fmt: skip
    path = write_config(folder, **(options | changes))
    for name, size in (("train", 160), ("valid", 12)):
        for side in ("src", "tgt"):
            (folder / f"{name}.{side}").write_text(
                "".join(f"{TEXTS[i % 4]}\n" for i in range(size))
            )
    return path


@pytest.fixture(scope="module", params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with text and a run that was trained on it."""
    folder = tmp_path_factory.mktemp("subwords")
    assert train(["-config", str(configured(folder, request.param, selection="bleu"))]) == 0
    return folder


def measured(folder: Path) -> dict[str, Any]:
    """Return the last validation of a run."""
    return [row for row in json_lines(folder / "run/metrics.jsonl") if row["kind"] == "valid"][-1]


def command(folder: Path, *more: object) -> list[str]:
    files = ["-model", folder / "run", "-src", folder / "valid.src", "-output", folder / "out"]
    return [*map(str, files), "-stop", "first", *map(str, more)]


def test_text_in_and_text_out_and_its_bleu_is_that_of_training(folder: Path) -> None:
    assert translate(command(folder)) == 0
    lines = (folder / "out").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 12
    assert not any(mark in line for line in lines for mark in MARKS)
    files = [folder / "out", "--reference", folder / "valid.tgt", "--output", folder / "bleu.json"]
    assert bleu.main([*map(str, files), "--metrics", "bleu"]) == 0
    systems = json.loads((folder / "bleu.json").read_text())["systems"]
    assert systems[str(folder / "out")]["BLEU 13a"]["value"] == measured(folder)["bleu"] > 0


def test_everything_that_reads_targets_takes_text(folder: Path) -> None:
    """Prefixes, phrases, targets to score and prefixes to continue have the model's tokens."""
    task = SearchTask(SearchConfig(beam_size=3, n_best=3, max_length=30))
    translator = Translator.from_folders([folder / "run"], task, align=True)
    tokens = translator.reader.preprocess("", "the woman")[1]
    assert tokens != ["the", "woman"]
    wish = LineConstraints((("the dog",),))
    begun, held = translator.answers(
        [TEXTS[0], TEXTS[2]], prefixes=["the woman", ""], constraints=[LineConstraints(), wish]
    )
    assert begun.hypotheses
    assert held.hypotheses
    for each in begun.hypotheses:
        written = translator.vocabularies.target.decode(each.hypothesis.tokens)
        assert written[: len(tokens)] == tokens
        assert each.text.startswith("the woman")
        # An alignment is of the model's tokens, which the report lists beside the text.
        assert each.alignment.target == tuple(written)
        assert each.record(False)["tokens"].split() == written
    assert all("the dog" in each.text for each in held.hypotheses)
    paths = [folder / "run", folder / "valid.src", folder / "valid.tgt", folder / "scores"]
    names = ("-model", "-src", "-tgt", "-output")
    assert score.main([str(w) for pair in zip(names, paths, strict=True) for w in pair]) == 0
    steps = json_lines(folder / "scores")[0]["steps"]
    assert [each["token"] for each in steps][:-1] == translator.reader.preprocess("", TEXTS[0])[1]
    found = Suggester(load(folder / "run"))(TEXTS[0], "the woman")
    assert list(found.prefix) == tokens
    assert not found.unknown


def test_a_transducer_takes_and_gives_text(folder: Path) -> None:
    transducer = Transducer(folder / "run")
    assert translate(command(folder)) == 0
    lines = (folder / "out").read_text(encoding="utf-8").splitlines()
    found = transducer.predictions(Query(text) for text in TEXTS)
    assert [each.text for each in found] == lines[:4]
    assert -math.inf < transducer.score(TEXTS[0], lines[0]) <= 0


def test_a_text_of_several_divisions_is_listed_once(tmp_path: Path) -> None:
    """With the sum of their probabilities, and a certificate that is about texts."""
    known = words(("a@@", "b", "ab"), ("a@@", "b", "ab"))
    names = {f"{side}_subword_model": f"{side}_subword_model" for side in ("src", "tgt")}
    options = {"transforms": ["bpe"], **names}
    folder = write_model(tmp_path / "model", 8, known, 0, options)
    for name in names:
        (folder / name).write_text("#version: 0.2\na b</w>\n")
    write_list(folder)
    task = SearchTask(SearchConfig(beam_size=200, n_best=200, max_length=3))
    (answer,) = Translator.from_folders(folder, task).answers(["ab b"])
    assert len(answer.hypotheses) > len({each.text for each in answer.hypotheses}) > 3
    found = Transducer(folder, n_best=200, beam_size=200, max_length=3).predict("ab b")
    sums: dict[str, float] = {}
    for each in answer.hypotheses:
        sums[each.text] = sums.get(each.text, 0.0) + each.hypothesis.prob
    assert {each.text: each.prob for each in found.outputs} == pytest.approx(sums)
    probabilities = [each.prob for each in found.outputs]
    assert probabilities == pytest.approx(sorted(sums.values(), reverse=True))


def test_accuracy_in_training_is_that_of_the_texts(tmp_path: Path, monkeypatch) -> None:
    """In whatever pieces a model writes them: here in letters."""
    path = configured(tmp_path, "sentencepiece", selection="exact_match")
    model = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "subwords"))
    every = [model.id_to_piece(i) for i in range(len(model))]
    (tmp_path / "vocabulary").write_text("\n".join(every[3:]), encoding="utf-8")
    setup = training_setup(["-config", str(path), "-tgt_vocab", str(tmp_path / "vocabulary")])
    data = TrainingData(setup.data, setup.vocabulary)
    letters = [[*f"▁{text.replace(' ', '▁')}"] for text in [TEXTS[0], "the man", *TEXTS[2:]]]
    assert data.validation().targets[0] != letters[0]

    def search(_: object, batch: Batch, *__: Any, **___: Any) -> list[SimpleNamespace]:
        found = [data.vocabularies.target.encode(letters[i % 4]) for i in batch.indices]
        return [SimpleNamespace(best=SimpleNamespace(tokens=ids)) for ids in found]

    monkeypatch.setattr(evaluation, "beam_search", search)
    evaluate = evaluation.make_evaluate(data, setup.validation)
    with torch.no_grad():
        values = evaluate(build_model(setup.model, data.vocabularies).eval())
    assert values["exact_match"] == 75


@pytest.mark.usefixtures("pyonmttok")
def test_transforms_that_lose_text_are_said(tmp_path: Path) -> None:
    """Without joiners nobody can tell `a - b` from `a-b`."""
    lossy = {"src_onmttok_kwargs": "{'mode': 'aggressive'}"}
    lossy |= {"tgt_onmttok_kwargs": "{'mode': 'aggressive'}", "transforms": ["onmt_tokenize"]}
    path = write_config(tmp_path, selection="bleu", **lossy)
    (tmp_path / "valid.tgt").write_text("a-b\n" * 3 + "a b\n" * 37)
    setup = training_setup(["-config", str(path)])
    data = TrainingData(setup.data, setup.vocabulary)
    development = data.validation()
    assert development.texts[0] == "a-b"
    assert development.reader.postprocess(development.targets[0]) == "a - b"
    told: list[str] = []
    evaluation.make_evaluate(data, setup.validation, told.append)
    said = "3 of 40 targets come back from transforms and truncation as other texts, such as 'a-b'"
    assert any(f"{said} as 'a - b'" in line for line in told)


@pytest.mark.parametrize("order", [("prefix", "sentencepiece"), ("sentencepiece", "prefix")])
def test_a_target_prefix_is_part_of_the_text(tmp_path: Path, order: tuple[str, str]) -> None:
    """Outputs begin with it, so the references do, whatever comes first."""
    path = configured(tmp_path, "sentencepiece", transforms=list(order), selection="bleu")
    settings = yaml.safe_load(path.read_text())
    for corpus in settings["data"].values():
        corpus |= {"src_prefix": "s", "tgt_prefix": "home"}
    path.write_text(yaml.safe_dump(settings))
    setup = training_setup(["-config", str(path)])
    data = TrainingData(setup.data, setup.vocabulary)
    development = data.validation()
    assert development.texts[0] == f"home {TEXTS[0]}"
    assert [*map(development.reader.postprocess, development.targets)] == development.texts


# --- the inverses ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> sentencepiece.SentencePieceProcessor:
    path = tmp_path_factory.mktemp("pieces") / "subwords"
    learn_sentencepiece(path)
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def undone(kind: type, model: object, tokens: list[str]) -> str:
    """Return what the inverse of a transform makes of target tokens."""
    transform = kind.__new__(kind)
    transform.load_models = {"src": None, "tgt": model}
    return transform.apply_reverse(" ".join(tokens))


@pytest.mark.parametrize("text", [*TEXTS, "", "x", "homes, homes"])
def test_pieces_become_the_text_that_they_are_of(model, text: str) -> None:
    assert undone(SentencePiece, model, model.encode(text, out_type=str)) == text


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["▁the", "<unk>", "s", "▁man"], "the <unk> s man"),
        (["<unk>", "<unk>"], "<unk> <unk>"),
        (["▁Haus", "▁the"], "Haus the"),  # a source piece that replaced <unk>
        (["▁"], ""),
    ],
)
def test_pieces_that_are_no_words(model, tokens: list[str], text: str) -> None:
    assert undone(SentencePiece, model, tokens) == text


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("w@@ om@@ an walks .", "woman walks ."),
        ("a@@", "a"),
        ("a@@ <unk> b", "a<unk> b"),
        ("a @@b", "a @@b"),
        ("@ a@@ @@ b", "@ ab"),
        ("", ""),
    ],
)
def test_merged_words(tokens: str, text: str) -> None:
    assert undone(Bpe, SimpleNamespace(separator="@@"), tokens.split()) == text


@pytest.mark.usefixtures("pyonmttok")
def test_the_last_transform_is_undone_first(tmp_path: Path) -> None:
    """Words and marks first, then pieces of them, with the space marks of SentencePiece."""
    joined = "{'mode': 'aggressive', 'joiner_annotate': True}"
    options = {f"{side}_onmttok_kwargs": joined for side in ("src", "tgt")}
    names = ["onmt_tokenize", "sentencepiece"]
    path = configured(tmp_path, "sentencepiece", transforms=names, selection="bleu", **options)
    setup = training_setup(["-config", str(path)])
    development = TrainingData(setup.data, setup.vocabulary).validation()
    assert "▁" in development.targets[1]
    assert [*map(development.reader.postprocess, development.targets)] == development.texts
