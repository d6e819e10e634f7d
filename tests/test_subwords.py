"""Models of subwords: texts that users give are split, and texts that they get are joined."""

import json
import math
from pathlib import Path

import pytest

from onmt_entmax import Query, Transducer, Translator, load
from onmt_entmax.cli import bleu, score
from onmt_entmax.cli.train import main as train
from onmt_entmax.cli.translate import main as translate
from onmt_entmax.report.answer_records import hypothesis_record
from onmt_entmax.report.writers import Answer
from onmt_entmax.search import Hypothesis, LineConstraints, SearchConfig, SearchTask
from onmt_entmax.suggester import Suggester
from tests.commands import json_lines
from tests.subword_models import KINDS, TEXTS, write_subword_config

MARKS = ("▁", "@@", "￭")
"""Marks of subwords, which the texts do not have."""


@pytest.fixture(scope="module", params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts, a model of subwords of one kind, and a run that was trained on both."""
    folder = tmp_path_factory.mktemp("subwords")
    config = write_subword_config(folder, request.param, selection="bleu")
    assert train(["-config", str(config)]) == 0
    return folder


@pytest.fixture(scope="module")
def output(folder: Path) -> list[str]:
    """Lines of the translation of the development set."""
    files = ["-model", folder / "run", "-src", folder / "valid.src", "-output", folder / "out"]
    assert translate([*map(str, files), "-stop", "first"]) == 0
    return (folder / "out").read_text(encoding="utf-8").splitlines()


def test_translations_have_no_marks_of_subwords(output: list[str]) -> None:
    assert len(output) == 12  # lines of the development set
    assert not [line for line in output if any(mark in line for mark in MARKS)]


def test_the_bleu_of_training_is_that_of_the_text(folder: Path, output: list[str]) -> None:
    files = [folder / "out", "--reference", folder / "valid.tgt", "--output", folder / "bleu.json"]
    assert bleu.main([*map(str, files), "--metrics", "bleu"]) == 0
    systems = json.loads((folder / "bleu.json").read_text())["systems"]
    rows = json_lines(folder / "run/metrics.jsonl")
    *_, last_validation = [row for row in rows if row["kind"] == "valid"]
    assert systems[str(folder / "out")]["BLEU 13a"]["value"] == last_validation["bleu"] > 0


def test_a_transducer_predicts_the_texts_of_the_translation(
    folder: Path, output: list[str]
) -> None:
    predictions = Transducer(folder / "run").predictions(Query(text) for text in TEXTS)
    assert [prediction.text for prediction in predictions] == output[: len(TEXTS)]


def test_a_transducer_scores_a_text(folder: Path, output: list[str]) -> None:
    transducer = Transducer(folder / "run")
    assert -math.inf < transducer.score(TEXTS[0], output[0]) <= 0


class TestATextOfAUser:
    """Whatever it is for, it is split into the tokens of the model."""

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
        """The answer to a line whose outputs must begin with the prefix."""
        (answer,) = translator.answers([TEXTS[0]], prefixes=[self.PREFIX])
        assert answer.hypotheses
        return answer

    def tokens_of(self, translator: Translator, hypothesis: Hypothesis) -> list[str]:
        """Return the tokens of an output."""
        return translator.vocabularies.target.decode(hypothesis.tokens)

    def test_may_be_the_prefix_of_outputs(
        self, translator: Translator, answer: Answer, prefix_tokens: list[str]
    ) -> None:
        for output in answer.hypotheses:
            tokens = self.tokens_of(translator, output.hypothesis)
            assert tokens[: len(prefix_tokens)] == prefix_tokens
            assert output.text.startswith(self.PREFIX)

    def test_is_aligned_token_by_token(self, translator: Translator, answer: Answer) -> None:
        for output in answer.hypotheses:
            tokens = self.tokens_of(translator, output.hypothesis)
            assert output.alignment.target == tuple(tokens)

    def test_is_recorded_with_its_tokens(self, translator: Translator, answer: Answer) -> None:
        for output in answer.hypotheses:
            tokens = self.tokens_of(translator, output.hypothesis)
            assert hypothesis_record(output, scored=False)["tokens"].split() == tokens

    def test_may_be_a_phrase_of_outputs(self, translator: Translator) -> None:
        constraints = [LineConstraints(required=(("the dog",),))]
        (answer,) = translator.answers([TEXTS[2]], constraints=constraints)
        assert answer.hypotheses
        assert all("the dog" in output.text for output in answer.hypotheses)

    def test_is_scored_token_by_token(self, translator: Translator, folder: Path) -> None:
        files = ["-src", folder / "valid.src", "-tgt", folder / "valid.tgt"]
        arguments = ["-model", folder / "run", *files, "-output", folder / "scores"]
        assert score.main([*map(str, arguments)]) == 0
        first, *_ = json_lines(folder / "scores")
        *tokens, _end = [step["token"] for step in first["steps"]]
        assert tokens == translator.reader.preprocess("", TEXTS[0])[1]

    def test_may_be_the_prefix_to_continue(self, folder: Path, prefix_tokens: list[str]) -> None:
        suggestion = Suggester(load(folder / "run"))(TEXTS[0], self.PREFIX)
        assert list(suggestion.prefix) == prefix_tokens
        assert not suggestion.unknown
