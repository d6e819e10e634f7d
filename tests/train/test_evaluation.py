"""The measures of a validation are those of translating the development set."""

from pathlib import Path

import pytest
import torch
from sacrebleu.metrics import BLEU

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.data.batch import Example
from onmt_entmax.data.training import TrainingData
from onmt_entmax.report.output_lines import output_texts
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.train.evaluation import make_evaluate
from onmt_entmax.train.sampled_examples import sample_examples
from onmt_entmax.translator import Translator
from tests.train.trainers import setup_of

SAMPLED = 33  # of forty pairs: a sample that is even over first tokens


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("measures")


@pytest.fixture(scope="module")
def model(trained: Path) -> LoadedModel:
    """A model that writes some outputs correctly."""
    return load(trained / "run" / "step_300")


@torch.no_grad()
def evaluate(model: LoadedModel, folder: Path, **changes: object) -> dict[str, float]:
    """Return the measures of a model on the development set in a folder, by these options."""
    setup = setup_of(folder, **changes)
    data = TrainingData.read(setup.data, setup.vocabulary, model.vocabularies)
    return make_evaluate(data, setup.validation)(model.model)


@pytest.fixture(scope="module")
def measures(model: LoadedModel, folder: Path) -> dict[str, float]:
    """The measures, with a loss of twenty pairs."""
    sizes = {"valid_decode_size": SAMPLED, "valid_loss_size": 20}
    return evaluate(model, folder, selection="macro_accuracy", **sizes)


@pytest.fixture(scope="module")
def pairs(folder: Path, measures: object) -> list[tuple[str, str]]:
    """The lines of the development set."""
    sides = ((folder / f"valid.{side}").read_text().splitlines() for side in ("src", "tgt"))
    return list(zip(*sides, strict=True))


@pytest.fixture(scope="module")
def outputs(model: LoadedModel, pairs: list[tuple[str, str]]) -> list[str]:
    """The translations of the development set."""
    translator = Translator([model], SearchTask(SearchConfig(beam_size=1, stop="first")))
    answers = translator.answers([source for source, _ in pairs])
    return [output_texts(answer, 1)[0] for answer in answers]


@pytest.fixture(scope="module")
def correct_by_first_token(
    model: LoadedModel, pairs: list[tuple[str, str]], outputs: list[str]
) -> dict[str, list[bool]]:
    """Whether each output of the sample is correct, by the first token of its source.

    First tokens are the groups of macro accuracy.
    """
    source, target = model.vocabularies
    examples = [
        Example(source.encode(line.split()), target.encode(reference.split()), number)
        for number, (line, reference) in enumerate(pairs)
    ]
    correct: dict[str, list[bool]] = {}
    for example in sample_examples(examples, SAMPLED, evenly=True):
        line, reference = pairs[example.index]
        correct.setdefault(line[0], []).append(outputs[example.index] == reference)
    return correct


def test_exact_match_is_over_the_sample(
    measures: dict[str, float], correct_by_first_token: dict[str, list[bool]]
) -> None:
    count = sum(sum(group) for group in correct_by_first_token.values())
    assert measures["exact_match"] == pytest.approx(100 * count / SAMPLED)


def test_macro_accuracy_is_the_mean_over_first_tokens(
    measures: dict[str, float], correct_by_first_token: dict[str, list[bool]]
) -> None:
    means = [sum(group) / len(group) for group in correct_by_first_token.values()]
    assert measures["macro_accuracy"] == pytest.approx(100 * sum(means) / len(means))


def test_the_loss_has_a_sample_of_its_own(
    measures: dict[str, float], model: LoadedModel, folder: Path
) -> None:
    of_all = evaluate(
        model,
        folder,
        selection="macro_accuracy",
        valid_decode_size=SAMPLED,
        valid_loss_size=0,
    )
    assert of_all["loss"] != measures["loss"]
    assert of_all["exact_match"] == measures["exact_match"]


def test_bleu_is_that_of_sacrebleu(
    model: LoadedModel, folder: Path, pairs: list[tuple[str, str]], outputs: list[str]
) -> None:
    measures = evaluate(model, folder, selection="bleu")
    references = [reference for _, reference in pairs]
    expected = BLEU(force=True).corpus_score(outputs, [references]).score
    assert measures["bleu"] == pytest.approx(expected)
    assert "exact_match" not in measures
