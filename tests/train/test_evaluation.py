"""Validation: the sample of the development set and the measures."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.checkpoint import load
from onmt_entmax.data.batch import Batch, Example
from onmt_entmax.data.corpus import all_pairs, numericalise, validation_pairs
from onmt_entmax.data.vocabulary import build_vocabularies, count_tokens
from onmt_entmax.errors import UserError
from onmt_entmax.model import build_model
from onmt_entmax.options.train import training_setup
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.train import evaluation
from onmt_entmax.train.evaluation import make_evaluate, sample_examples
from onmt_entmax.translator import Translator
from tests.models import words
from tests.toy import write_config


def examples_of(firsts: list[int]) -> list[Example]:
    return [Example([first, 9], [number], number) for number, first in enumerate(firsts)]


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(0, 70), st.booleans())
def test_a_sample_has_its_size_and_is_the_same_again(
    firsts: list[int], size: int, evenly: bool
) -> None:
    examples = examples_of(firsts)
    sample = sample_examples(examples, size, evenly)
    assert len(sample) == (min(size, len(firsts)) if size else len(firsts))
    assert len({example.index for example in sample}) == len(sample)
    assert sample == sample_examples(examples, size, evenly)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=60), st.data())
def test_an_even_sample_takes_as_many_of_each_first_token_as_there_are(
    firsts: list[int], data: st.DataObject
) -> None:
    size = data.draw(st.integers(1, len(firsts) - 1))
    sample = sample_examples(examples_of(firsts), size, True)
    taken, there = Counter(example.source[0] for example in sample), Counter(firsts)
    most = max(taken.values())
    for first, count in there.items():
        assert taken[first] == count or taken[first] >= most - 1


def test_the_size_of_a_plain_sample_does_not_follow_the_languages() -> None:
    sample = sample_examples(examples_of([0] * 900 + [1] * 100), 100, False)
    assert 80 <= Counter(example.source[0] for example in sample)[0] <= 99


def test_macro_accuracy_is_the_mean_over_first_tokens_of_what_translating_gives(
    trained: Path, tmp_path: Path
) -> None:
    changes = {"selection": "macro_accuracy", "valid_decode_size": 33, "valid_loss_size": 20}
    setup = training_setup(["-config", str(write_config(tmp_path, **changes))])
    loaded = load(trained / "run" / "step_300")
    with torch.no_grad():
        values = make_evaluate(setup.data, setup.validation, loaded.vocabularies)(loaded.model)

    sources = (tmp_path / "valid.src").read_text().splitlines()
    targets = (tmp_path / "valid.tgt").read_text().splitlines()
    kept = sample_examples(
        [
            numericalise(pair, loaded.vocabularies, index)
            for index, pair in enumerate(validation_pairs(setup.data, loaded.vocabularies))
        ],
        33,
        True,
    )
    task = SearchTask(SearchConfig(beam_size=1, stop="first"))
    answers = Translator([loaded], task).answers([sources[example.index] for example in kept])
    right: dict[str, list[bool]] = {}
    for example, answer in zip(kept, answers, strict=True):
        exact = answer.lines(1)[0] == targets[example.index]
        right.setdefault(sources[example.index][0], []).append(exact)
    every = [exact for group in right.values() for exact in group]
    assert len(every) == 33
    assert 0 < sum(every) < 33
    assert values["exact_match"] == pytest.approx(100 * sum(every) / 33)
    means = [sum(group) / len(group) for group in right.values()]
    assert values["macro_accuracy"] == pytest.approx(100 * sum(means) / len(means))
    assert values["macro_accuracy"] != values["exact_match"]


def test_an_unknown_token_never_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the search finds every reference; it gets the length limit of the options."""
    changes = {"selection": "exact_match", "tgt_vocab_size": 4, "max_length": 7, "rnn_size": 8}
    setup = training_setup(["-config", str(write_config(tmp_path, **changes))])
    vocabularies, _ = build_vocabularies(
        setup.vocabulary, lambda: count_tokens(all_pairs(setup.data))
    )

    def found(_: object, batch: Batch, search: SearchConfig) -> list[SimpleNamespace]:
        assert search.max_length == 7
        assert batch.target is not None
        rows = zip(batch.target[1:, :, 0].t().tolist(), batch.target_lengths, strict=True)
        outputs = [tuple(row[: int(length) - 2]) for row, length in rows]
        return [SimpleNamespace(hypotheses=[SimpleNamespace(tokens=out)]) for out in outputs]

    monkeypatch.setattr(evaluation, "beam_search", found)
    model = build_model(setup.model, vocabularies).eval()
    with torch.no_grad():
        values = make_evaluate(setup.data, setup.validation, vocabularies)(model)
    lines = (tmp_path / "valid.tgt").read_text().splitlines()
    known = [all(token in vocabularies.target for token in line.split()) for line in lines]
    assert 0 < sum(known) < len(known)
    assert values["exact_match"] == pytest.approx(100 * sum(known) / len(known))


def test_the_loss_is_that_of_the_sample(trained: Path, tmp_path: Path) -> None:
    loaded = load(trained / "run" / "step_300")
    losses = []
    for size in (0, 7, 40):
        setup = training_setup(["-config", str(write_config(tmp_path, valid_loss_size=size))])
        with torch.no_grad():
            losses.append(
                make_evaluate(setup.data, setup.validation, loaded.vocabularies)(loaded.model)[
                    "loss"
                ]
            )
    assert losses[0] == losses[2] != losses[1]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("valid_loss_size", -1, "valid_loss_size: must be a whole number from 0 to"),
        ("valid_loss_size", "many", "valid_loss_size: must be a whole number"),
        ("selection", "macro_acuracy", "did you mean 'macro_accuracy'?"),
    ],
)
def test_a_wrong_value_gets_one_line(
    tmp_path: Path, name: str, value: object, message: str
) -> None:
    path = write_config(tmp_path, **{name: value})
    with pytest.raises(UserError, match=r".*") as raised:
        training_setup(["-config", str(path)])
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("split", [True, False])
def test_splitting_is_no_cause_if_the_development_set_is_split(tmp_path: Path, split: bool) -> None:
    kept = {f"{side}_onmttok_kwargs": "{'mode': 'space'}" for side in ("src", "tgt")}
    names = ["onmt_tokenize" if split else "filtertoolong"]
    setup = training_setup(["-config", str(write_config(tmp_path, transforms=names, **kept))])
    (tmp_path / "valid.src").write_text("Hunde\n")
    (tmp_path / "valid.tgt").write_text("ein\n")
    told: list[str] = []
    make_evaluate(setup.data, setup.validation, words(["￭es"], ["ein"]), told.append)
    (warning,) = told
    assert ("-transforms" in warning) != split
