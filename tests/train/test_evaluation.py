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
from onmt_entmax.data.training import TrainingData
from onmt_entmax.model import build_model
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.train import evaluation
from onmt_entmax.train.evaluation import make_evaluate, sample_examples
from onmt_entmax.translator import Translator
from tests.train.trainers import setup_of


def examples_of(firsts: list[int]) -> list[Example]:
    return [Example([first, 9], [number], number) for number, first in enumerate(firsts)]


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(0, 70), st.booleans())
def test_a_sample_has_its_size_and_is_the_same_again(
    firsts: list[int], size: int, evenly: bool
) -> None:
    """An even one has as many of each first token as there are."""
    examples = examples_of(firsts)
    sample = sample_examples(examples, size, evenly)
    assert len(sample) == (min(size, len(firsts)) if size else len(firsts))
    assert len({example.index for example in sample}) == len(sample)
    assert sample == sample_examples(examples, size, evenly)
    if evenly and 0 < size < len(firsts):
        taken, there = Counter(example.source[0] for example in sample), Counter(firsts)
        for first, count in there.items():
            assert taken[first] == count or taken[first] >= max(taken.values()) - 1


def test_measures_are_those_of_translating(trained: Path, tmp_path: Path) -> None:
    """Of a sample, even over first tokens, which decide the groups of macro accuracy."""
    changes = {"selection": "macro_accuracy", "valid_decode_size": 33, "valid_loss_size": 20}
    loaded, values = load(trained / "run" / "step_300"), []
    for more in (changes, {**changes, "valid_loss_size": 0}, {"selection": "bleu"}):
        setup = setup_of(tmp_path, **more)
        data = TrainingData(setup.data, setup.vocabulary, loaded.vocabularies)
        with torch.no_grad():
            values.append(make_evaluate(data, setup.validation)(loaded.model))
    assert values[0]["loss"] != values[1]["loss"]  # of 20 and of all
    assert values[0]["exact_match"] == values[1]["exact_match"]

    sources = (tmp_path / "valid.src").read_text().splitlines()
    targets = (tmp_path / "valid.tgt").read_text().splitlines()
    pairs = [(s.split(), t.split()) for s, t in zip(sources, targets, strict=True)]
    sides = loaded.vocabularies
    examples = [
        Example(sides.source.encode(source), sides.target.encode(target), n)
        for n, (source, target) in enumerate(pairs)
    ]
    task = SearchTask(SearchConfig(beam_size=1, stop="first"))
    answers = [a.lines(1)[0] for a in Translator([loaded], task).answers(sources)]
    right: dict[str, list[bool]] = {}
    for example in sample_examples(examples, 33, True):
        exact = answers[example.index] == targets[example.index]
        right.setdefault(sources[example.index][0], []).append(exact)
    every = [exact for group in right.values() for exact in group]
    assert values[0]["exact_match"] == pytest.approx(100 * sum(every) / 33)
    means = [sum(group) / len(group) for group in right.values()]
    assert values[0]["macro_accuracy"] == pytest.approx(100 * sum(means) / len(means))
    from sacrebleu.metrics import BLEU

    bleu = BLEU(force=True).corpus_score(answers, [targets]).score
    assert values[2]["bleu"] == pytest.approx(bleu)
    assert "exact_match" not in values[2]


def test_an_unknown_token_never_matches(tmp_path: Path, monkeypatch) -> None:
    """Even if the search finds every reference; it gets the length limit of the options."""
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
    told: list[str] = []
    with torch.no_grad():
        evaluate = make_evaluate(data, setup.validation, told.append)
        values = evaluate(build_model(setup.model, data.vocabularies).eval())
    lines = (tmp_path / "valid.tgt").read_text().splitlines()
    known = [all(token in data.vocabularies.target for token in line.split()) for line in lines]
    assert 0 < sum(known) < len(known)
    assert values["exact_match"] == pytest.approx(100 * sum(known) / len(known))
    (warning,) = told
    assert warning.startswith("warning: corpus 'valid': ")
    assert "not in the target vocabulary: no output has '" in warning
