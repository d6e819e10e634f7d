"""Validation: the sample of the development set and the measures."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.data.batch import Batch, Example
from onmt_entmax.data.training import TrainingData
from onmt_entmax.model import build_model
from onmt_entmax.report.output_lines import output_texts
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.train import evaluation
from onmt_entmax.train.evaluation import make_evaluate
from onmt_entmax.train.sampled_examples import sample_examples
from onmt_entmax.translator import Translator
from tests.train.trainers import setup_of


def examples_of(first_tokens: list[int]) -> list[Example]:
    """Return an example for each of these first tokens of a source."""
    return [Example([first, 9], [n], n) for n, first in enumerate(first_tokens)]


FIRST_TOKENS = st.lists(st.integers(0, 5), max_size=60)
SIZES = st.integers(0, 70)


@given(FIRST_TOKENS, SIZES, st.booleans())
def test_a_sample_has_its_size(first_tokens: list[int], size: int, evenly: bool) -> None:
    """Its examples are different; size 0 is all."""
    sample = sample_examples(examples_of(first_tokens), size, evenly)
    assert len(sample) == (min(size, len(first_tokens)) if size else len(first_tokens))
    assert len({example.index for example in sample}) == len(sample)


@given(FIRST_TOKENS, SIZES, st.booleans())
def test_a_sample_is_the_same_again(first_tokens: list[int], size: int, evenly: bool) -> None:
    examples = examples_of(first_tokens)
    assert sample_examples(examples, size, evenly) == sample_examples(examples, size, evenly)


@given(FIRST_TOKENS, SIZES.filter(bool))
def test_an_even_sample_has_as_many_of_each_first_token_as_there_are(
    first_tokens: list[int], size: int
) -> None:
    """Where examples of a token are left over, no other one has two more."""
    sample = sample_examples(examples_of(first_tokens), size, evenly=True)
    sampled = Counter(example.source[0] for example in sample)
    for first, count in Counter(first_tokens).items():
        assert sampled[first] == count or sampled[first] >= max(sampled.values()) - 1


# --- measures are those of translating -------------------------------------------------------

SAMPLED = 33  # of forty pairs: a sample that is even over first tokens


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("measures")


@pytest.fixture(scope="module")
def model(trained: Path) -> LoadedModel:
    return load(trained / "run" / "step_300")


@torch.no_grad()
def measure(model: LoadedModel, folder: Path, **changes: object) -> dict[str, float]:
    setup = setup_of(folder, **changes)
    data = TrainingData(setup.data, setup.vocabulary, model.vocabularies)
    return make_evaluate(data, setup.validation)(model.model)


@pytest.fixture(scope="module")
def values(model: LoadedModel, folder: Path) -> dict[str, float]:
    """The measures, with a loss of twenty pairs."""
    sizes = {"valid_decode_size": SAMPLED, "valid_loss_size": 20}
    return measure(model, folder, selection="macro_accuracy", **sizes)


@pytest.fixture(scope="module")
def pairs(folder: Path, values: object) -> list[tuple[str, str]]:
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
def right(
    model: LoadedModel, pairs: list[tuple[str, str]], outputs: list[str]
) -> dict[str, list[bool]]:
    """Whether the outputs of the sample are right, by first token: the groups of macro accuracy."""
    source, target = model.vocabularies
    examples = [
        Example(source.encode(line.split()), target.encode(reference.split()), number)
        for number, (line, reference) in enumerate(pairs)
    ]
    right: dict[str, list[bool]] = {}
    for example in sample_examples(examples, SAMPLED, evenly=True):
        line, reference = pairs[example.index]
        right.setdefault(line[0], []).append(outputs[example.index] == reference)
    return right


def test_exact_match_is_over_the_sample(
    values: dict[str, float], right: dict[str, list[bool]]
) -> None:
    count = sum(sum(group) for group in right.values())
    assert values["exact_match"] == pytest.approx(100 * count / SAMPLED)


def test_macro_accuracy_is_the_mean_over_first_tokens(
    values: dict[str, float], right: dict[str, list[bool]]
) -> None:
    means = [sum(group) / len(group) for group in right.values()]
    assert values["macro_accuracy"] == pytest.approx(100 * sum(means) / len(means))


def test_the_loss_has_a_sample_of_its_own(
    values: dict[str, float], model: LoadedModel, folder: Path
) -> None:
    of_all = measure(
        model,
        folder,
        selection="macro_accuracy",
        valid_decode_size=SAMPLED,
        valid_loss_size=0,
    )
    assert of_all["loss"] != values["loss"]
    assert of_all["exact_match"] == values["exact_match"]


def test_bleu_is_sacrebleus(
    model: LoadedModel, folder: Path, pairs: list[tuple[str, str]], outputs: list[str]
) -> None:
    values = measure(model, folder, selection="bleu")
    references = [reference for _, reference in pairs]
    expected = BLEU(force=True).corpus_score(outputs, [references]).score
    assert values["bleu"] == pytest.approx(expected)
    assert "exact_match" not in values


# --- unknown tokens --------------------------------------------------------------------------


def test_an_unknown_token_never_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search finds every reference here, and gets the length limit of the options."""
    setup = setup_of(tmp_path, selection="exact_match", tgt_vocab_size=4, max_length=7, rnn_size=8)
    data = TrainingData(setup.data, setup.vocabulary)

    def search(
        _: object, batch: Batch, config: SearchConfig, **__: object
    ) -> list[SimpleNamespace]:
        assert config.max_length == 7
        rows = zip(batch.target[1:, :, 0].t().tolist(), batch.target_lengths, strict=True)
        outputs = [tuple(row[: int(length) - 2]) for row, length in rows]
        return [SimpleNamespace(best=SimpleNamespace(tokens=out)) for out in outputs]

    monkeypatch.setattr(evaluation, "beam_search", search)
    warnings: list[str] = []
    with torch.no_grad():
        evaluate = make_evaluate(data, setup.validation, warnings.append)
        values = evaluate(build_model(setup.model, data.vocabularies).eval())
    lines = (tmp_path / "valid.tgt").read_text().splitlines()
    known = [all(token in data.vocabularies.target for token in line.split()) for line in lines]
    assert 0 < sum(known) < len(known)
    assert values["exact_match"] == pytest.approx(100 * sum(known) / len(known))
    (warning,) = warnings
    assert warning.startswith("warning: corpus 'valid': ")
    assert "not in the target vocabulary: no output has '" in warning
