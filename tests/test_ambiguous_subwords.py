"""A text that several sequences of subwords write: a `Transducer` sums their probabilities."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from onmt_entmax import Transducer, Translator
from onmt_entmax.files.checksums import write_list
from onmt_entmax.proven_outputs import Output
from onmt_entmax.search import SearchConfig, SearchTask
from tests.inflection_models import write_model
from tests.models import vocabularies_of


@pytest.fixture(scope="module")
def ambiguous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model whose tokens write `ab` in two ways: as `a@@ b` and as `ab`."""
    vocabularies = vocabularies_of(("a@@", "b", "ab"), ("a@@", "b", "ab"))
    names = ["src_subword_model", "tgt_subword_model"]
    options = {"transforms": ["bpe"], **{name: name for name in names}}
    path = tmp_path_factory.mktemp("divisions") / "model"
    folder = write_model(path, 8, vocabularies, end=0, options=options)
    for name in names:
        (folder / name).write_text("#version: 0.2\na b</w>\n")
    write_list(folder)
    return folder


@pytest.fixture(scope="module")
def sums(ambiguous: Path) -> Counter[str]:
    """The probability of each text: the sum over all sequences of tokens that write it."""
    task = SearchTask(SearchConfig(beam_size=200, n_best=200, max_length=3))
    (answer,) = Translator.from_folders(ambiguous, task).answers(["ab b"])
    sums: Counter[str] = Counter()
    for output in answer.hypotheses:
        sums[output.text] += output.hypothesis.prob
    assert len(answer.hypotheses) > len(sums), "no text is written by two sequences"
    assert len(sums) > 3
    return sums


@pytest.fixture(scope="module")
def predicted(ambiguous: Path) -> Sequence[Output]:
    """The outputs that a transducer predicts."""
    transducer = Transducer(ambiguous, n_best=200, beam_size=200, max_length=3)
    return transducer.predict("ab b").outputs


def test_each_text_is_predicted_once(predicted: Sequence[Output], sums: Counter[str]) -> None:
    assert sorted(output.text for output in predicted) == sorted(sums)


def test_a_text_has_the_sum_of_its_probabilities(
    predicted: Sequence[Output], sums: Counter[str]
) -> None:
    assert {output.text: output.prob for output in predicted} == pytest.approx(dict(sums))


def test_predicted_texts_are_in_the_order_of_their_sums(predicted: Sequence[Output]) -> None:
    probabilities = [output.prob for output in predicted]
    assert probabilities == sorted(probabilities, reverse=True)
