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
from onmt_entmax.data.subwords import Bpe, SentencePiece
from onmt_entmax.data.training import TrainingData
from onmt_entmax.files.checksums import write_list
from onmt_entmax.model import build_model
from onmt_entmax.options.train import training_setup
from onmt_entmax.report.answer_records import hypothesis_record
from onmt_entmax.report.writers import Answer
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


Options = dict[str, object]


def sentencepiece_options(path: Path) -> Options:
    """Learn a model of SentencePiece; return the options of a training with it."""
    learn_sentencepiece(path)
    return {"transforms": ["sentencepiece"]}


def bpe_options(path: Path) -> Options:
    """Learn merges of subword-nmt; return the options of a training with them."""
    learn_bpe(path)
    return {"transforms": ["bpe"]}


def onmt_tokenize_options(path: Path, **tokeniser: object) -> Options:
    """Learn a model of SentencePiece; return the options of a training with pyonmttok."""
    pytest.importorskip("pyonmttok")
    learn_sentencepiece(path)
    options: Options = {"transforms": ["onmt_tokenize"]}
    for side in ("src", "tgt"):
        options[f"{side}_subword_type"] = "sentencepiece"
        options[f"{side}_onmttok_kwargs"] = str(tokeniser)
    return options


def spacers(path: Path) -> Options:
    return onmt_tokenize_options(path, mode="none")


def joiners(path: Path) -> Options:
    return onmt_tokenize_options(
        path, mode="aggressive", joiner_annotate=True, no_substitution=True
    )


KINDS: dict[str, Callable[[Path], Options]] = {
    "sentencepiece": sentencepiece_options,
    "bpe": bpe_options,
    "onmt_tokenize-spacers": spacers,
    "onmt_tokenize-joiners": joiners,
}


def write_subword_config(folder: Path, kind: str, **changes: object) -> Path:
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
    assert (
        train(["-config", str(write_subword_config(folder, request.param, selection="bleu"))]) == 0
    )
    return folder


@pytest.fixture(scope="module")
def output(folder: Path) -> list[str]:
    """Lines of the translation of the development set."""
    files = ["-model", folder / "run", "-src", folder / "valid.src", "-output", folder / "out"]
    assert translate([*map(str, files), "-stop", "first"]) == 0
    return (folder / "out").read_text(encoding="utf-8").splitlines()


def test_text_becomes_text(output: list[str]) -> None:
    assert len(output) == 12
    assert not [line for line in output if any(mark in line for mark in MARKS)]


def test_the_bleu_of_training_is_that_of_the_text(folder: Path, output: list[str]) -> None:
    files = [folder / "out", "--reference", folder / "valid.tgt", "--output", folder / "bleu.json"]
    assert bleu.main([*map(str, files), "--metrics", "bleu"]) == 0
    systems = json.loads((folder / "bleu.json").read_text())["systems"]
    rows = json_lines(folder / "run/metrics.jsonl")
    *_, last_validation = [row for row in rows if row["kind"] == "valid"]
    assert systems[str(folder / "out")]["BLEU 13a"]["value"] == last_validation["bleu"] > 0


class TestEverythingThatReadsTargets:
    """Prefixes, phrases, targets to score and prefixes to continue have the model's tokens."""

    PREFIX = "the woman"

    @pytest.fixture(scope="class")
    def translator(self, folder: Path) -> Translator:
        task = SearchTask(SearchConfig(beam_size=3, n_best=3, max_length=30))
        return Translator.from_folders([folder / "run"], task, align=True)

    @pytest.fixture(scope="class")
    def prefix_tokens(self, translator: Translator) -> list[str]:
        _, tokens = translator.reader.preprocess("", self.PREFIX)
        assert tokens != self.PREFIX.split()
        return tokens

    @pytest.fixture(scope="class")
    def answer(self, translator: Translator) -> Answer:
        """Outputs that begin with the prefix."""
        (answer,) = translator.answers([TEXTS[0]], prefixes=[self.PREFIX])
        assert answer.hypotheses
        return answer

    def test_begins_with_the_prefix(
        self, translator: Translator, answer: Answer, prefix_tokens: list[str]
    ) -> None:
        for output in answer.hypotheses:
            tokens = translator.vocabularies.target.decode(output.hypothesis.tokens)
            assert tokens[: len(prefix_tokens)] == prefix_tokens
            assert output.text.startswith(self.PREFIX)

    def test_aligns_the_tokens_and_lists_them(self, translator: Translator, answer: Answer) -> None:
        for output in answer.hypotheses:
            tokens = translator.vocabularies.target.decode(output.hypothesis.tokens)
            assert output.alignment.target == tuple(tokens)
            assert hypothesis_record(output, scored=False)["tokens"].split() == tokens

    def test_contains_the_phrase(self, translator: Translator) -> None:
        constraints = [LineConstraints((("the dog",),))]
        (answer,) = translator.answers([TEXTS[2]], constraints=constraints)
        assert answer.hypotheses
        assert all("the dog" in output.text for output in answer.hypotheses)

    def test_scores_the_tokens(self, translator: Translator, folder: Path) -> None:
        files = ["-src", folder / "valid.src", "-tgt", folder / "valid.tgt"]
        arguments = ["-model", folder / "run", *files, "-output", folder / "scores"]
        assert score.main([*map(str, arguments)]) == 0
        first, *_ = json_lines(folder / "scores")
        *tokens, _ = [step["token"] for step in first["steps"]]
        assert tokens == translator.reader.preprocess("", TEXTS[0])[1]

    def test_continues_the_prefix(self, folder: Path, prefix_tokens: list[str]) -> None:
        suggestion = Suggester(load(folder / "run"))(TEXTS[0], self.PREFIX)
        assert list(suggestion.prefix) == prefix_tokens
        assert not suggestion.unknown


def test_a_transducer_takes_and_gives_text(folder: Path, output: list[str]) -> None:
    transducer = Transducer(folder / "run")
    predictions = transducer.predictions(Query(text) for text in TEXTS)
    assert [prediction.text for prediction in predictions] == output[:4]
    assert -math.inf < transducer.score(TEXTS[0], output[0]) <= 0


class TestATextOfSeveralDivisions:
    """Such as `a@@ b` and `ab`."""

    @pytest.fixture(scope="class")
    def folder(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        vocabularies = words(("a@@", "b", "ab"), ("a@@", "b", "ab"))
        names = [f"{side}_subword_model" for side in ("src", "tgt")]
        options = {"transforms": ["bpe"], **{name: name for name in names}}
        path = tmp_path_factory.mktemp("divisions") / "model"
        folder = write_model(path, 8, vocabularies, 0, options)
        for name in names:
            (folder / name).write_text("#version: 0.2\na b</w>\n")
        write_list(folder)
        return folder

    @pytest.fixture(scope="class")
    def sums(self, folder: Path) -> dict[str, float]:
        """The sum of the probabilities of each text's sequences of tokens."""
        task = SearchTask(SearchConfig(beam_size=200, n_best=200, max_length=3))
        (answer,) = Translator.from_folders(folder, task).answers(["ab b"])
        sums: dict[str, float] = {}
        for output in answer.hypotheses:
            sums[output.text] = sums.get(output.text, 0.0) + output.hypothesis.prob
        assert len(answer.hypotheses) > len(sums) > 3
        return sums

    def test_is_listed_once_with_their_sum(self, folder: Path, sums: dict[str, float]) -> None:
        transducer = Transducer(folder, n_best=200, beam_size=200, max_length=3)
        outputs = transducer.predict("ab b").outputs
        assert {output.text: output.prob for output in outputs} == pytest.approx(sums)
        probabilities = [output.prob for output in outputs]
        assert probabilities == pytest.approx(sorted(sums.values(), reverse=True))


def test_accuracy_in_training_is_that_of_the_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In whatever pieces a model writes them: here in letters, and one of four texts is wrong."""
    path = write_subword_config(tmp_path, "sentencepiece", selection="exact_match")
    model = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "subwords"))
    _, _, _, *pieces = [model.id_to_piece(i) for i in range(len(model))]  # three are special
    (tmp_path / "vocabulary").write_text("\n".join(pieces), encoding="utf-8")
    setup = training_setup(["-config", str(path), "-tgt_vocab", str(tmp_path / "vocabulary")])
    data = TrainingData(setup.data, setup.vocabulary)
    letters = [[*f"▁{text.replace(' ', '▁')}"] for text in [TEXTS[0], "the man", *TEXTS[2:]]]
    assert data.validation().targets[0] != letters[0]

    def search(_: object, batch: Batch, *__: Any, **___: Any) -> list[SimpleNamespace]:
        outputs = [data.vocabularies.target.encode(letters[i % 4]) for i in batch.indices]
        return [SimpleNamespace(best=SimpleNamespace(tokens=ids)) for ids in outputs]

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
    warnings: list[str] = []
    evaluation.make_evaluate(data, setup.validation, warnings.append)
    message = "3 of 40 targets come back from transforms and truncation as other texts, such as "
    assert any(f"{message}'a-b' as 'a - b'" in warning for warning in warnings)


@pytest.mark.parametrize("order", [("prefix", "sentencepiece"), ("sentencepiece", "prefix")])
def test_a_target_prefix_is_part_of_the_text(tmp_path: Path, order: tuple[str, str]) -> None:
    """Outputs begin with it, so the references do, whatever comes first."""
    path = write_subword_config(tmp_path, "sentencepiece", transforms=list(order), selection="bleu")
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


def undo(kind: type, model: object, tokens: list[str]) -> str:
    """Return what the inverse of a transform makes of target tokens."""
    transform = kind.__new__(kind)
    transform.load_models = {"src": None, "tgt": model}
    return transform.apply_reverse(" ".join(tokens))


@pytest.mark.parametrize("text", [*TEXTS, "", "x", "homes, homes"])
def test_pieces_become_their_text(model: sentencepiece.SentencePieceProcessor, text: str) -> None:
    assert undo(SentencePiece, model, model.encode(text, out_type=str)) == text


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["▁the", "<unk>", "s", "▁man"], "the <unk> s man"),
        (["<unk>", "<unk>"], "<unk> <unk>"),
        (["▁Haus", "▁the"], "Haus the"),  # a source piece that replaced <unk>
        (["▁"], ""),
    ],
)
def test_pieces_that_are_no_words(
    model: sentencepiece.SentencePieceProcessor, tokens: list[str], text: str
) -> None:
    assert undo(SentencePiece, model, tokens) == text


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
def test_merges_become_words(tokens: str, text: str) -> None:
    assert undo(Bpe, SimpleNamespace(separator="@@"), tokens.split()) == text


@pytest.mark.usefixtures("pyonmttok")
def test_the_last_transform_is_undone_first(tmp_path: Path) -> None:
    """Words and marks first, then pieces of them, with the space marks of SentencePiece."""
    joined = "{'mode': 'aggressive', 'joiner_annotate': True}"
    options = {f"{side}_onmttok_kwargs": joined for side in ("src", "tgt")}
    names = ["onmt_tokenize", "sentencepiece"]
    path = write_subword_config(
        tmp_path, "sentencepiece", transforms=names, selection="bleu", **options
    )
    setup = training_setup(["-config", str(path)])
    development = TrainingData(setup.data, setup.vocabulary).validation()
    assert "▁" in development.targets[1]
    assert [*map(development.reader.postprocess, development.targets)] == development.texts
