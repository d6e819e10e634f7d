"""`Transducer` with analogies: the mixture of both, and what is proven about it.

All texts of up to `LONGEST` letters are enumerated; `onmt_entmax.strings.analogies` defines the
mixture.
"""

import itertools
import math
from pathlib import Path

import pytest

from onmt_entmax import Query, Transducer
from onmt_entmax.analogous_outputs import NO_ANALOGIES
from onmt_entmax.strings.analogies import Analogies
from onmt_entmax.strings.pairs import Pair
from onmt_entmax.transducer import TransducerError
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.string_models import LETTERS, task_options

LONGEST = 3  # letters of a text
SOURCES = ["".join(letters) for letters in itertools.product(LETTERS, repeat=2)]
# Training pairs: most words that end in b get a d, and those that end in d get an a.
KNOWN = {"ab": "abd", "cb": "cbd", "acb": "acbd", "aab": "aaba", "ad": "ada", "bd": "bda"}
PAIRS = [(Query(source), target) for source, target in KNOWN.items()]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("letters") / "model"
    return write_model(folder, 3, vocabularies_of(LETTERS, LETTERS), options=task_options())


def expected_mixture(model: Path, source: str) -> dict[str, float]:
    """Return the probability of each text in the mixture, from those of the two distributions."""
    known = [Pair((), tuple(word), tuple(target)) for word, target in KNOWN.items()]
    analogies = Analogies(known)
    by_analogy = {
        "".join(output): probability
        for output, probability in analogies.distribution((), tuple(source)).items()
    }
    weight = analogies.weight(()) if by_analogy else 0.0
    network = Transducer(model, n_best=0, beam_size=200, max_length=LONGEST).predict(source)
    by_network = {output.text: output.prob for output in network.outputs}
    assert len(by_network) > 5
    return {
        text: (1 - weight) * by_network.get(text, 0.0) + weight * by_analogy.get(text, 0.0)
        for text in {*by_network, *by_analogy}
    }


def weight_of_analogies(transducer: Transducer) -> float:
    """Return the weight of analogies in the mixture, for queries without language and tags."""
    assert transducer.analogies is not None
    return transducer.analogies.known.weight(())


def test_analogies_have_a_tenth_of_the_weight_or_more(model: Path) -> None:
    """Otherwise the tests below would see hardly anything but the network."""
    assert weight_of_analogies(Transducer(model, analogies=PAIRS)) > 0.1


def test_a_proven_output_is_the_most_probable_of_the_mixture(model: Path) -> None:
    transducer = Transducer(model, max_length=LONGEST, analogies=PAIRS)
    proven = [
        prediction
        for prediction in transducer.predictions(map(Query, SOURCES))
        if prediction.level != "none"
    ]
    assert len(proven) > len(SOURCES) / 2
    for prediction in proven:
        mixture = expected_mixture(model, prediction.query.source)
        assert mixture[prediction.text] == pytest.approx(max(mixture.values()), abs=1e-6)


@pytest.mark.parametrize("source", SOURCES[:4])
def test_a_list_of_all_outputs_has_the_mixture(model: Path, source: str) -> None:
    transducer = Transducer(model, n_best=0, beam_size=200, max_length=LONGEST, analogies=PAIRS)
    prediction = transducer.predict(source)
    listed = {output.text: output.prob for output in prediction.outputs}
    assert listed == pytest.approx(expected_mixture(model, source), abs=1e-6)


class TestTheScore:
    """The score of a target is a log-probability."""

    @pytest.fixture(scope="class")
    def by_network(self, model: Path) -> str:
        """The most probable output of the network."""
        return Transducer(model, max_length=LONGEST).predict("db").text

    def assert_score(self, model: Path, target: str) -> None:
        """Fail unless the target has its score in the mixture."""
        transducer = Transducer(model, max_length=LONGEST, analogies=PAIRS)
        expected = math.log(expected_mixture(model, "db")[target])
        assert transducer.score("db", target) == pytest.approx(expected, abs=1e-5)

    def test_is_that_of_the_mixture_for_the_best_output_of_the_network(
        self, model: Path, by_network: str
    ) -> None:
        self.assert_score(model, by_network)

    def test_is_that_of_the_mixture_for_an_output_by_analogy(
        self, model: Path, by_network: str
    ) -> None:
        by_analogy = "dbd"  # as ab gives abd
        assert by_analogy != by_network
        self.assert_score(model, by_analogy)


def test_the_bound_of_other_outputs_is_that_of_the_network_by_its_weight(model: Path) -> None:
    """All outputs that follow by analogy are listed, so they leave no probability for others."""
    alone = Transducer(model, beam_size=1, max_length=LONGEST).predict("db")
    transducer = Transducer(model, beam_size=1, max_length=LONGEST, analogies=PAIRS)
    expected = (1 - weight_of_analogies(transducer)) * alone.certificate.bound
    assert expected > 0
    assert transducer.predict("db").certificate.bound == pytest.approx(expected, rel=1e-5)


def test_a_target_that_the_model_cannot_write_may_follow_by_analogy(model: Path) -> None:
    pairs = [(Query("ab"), "abʘ"), (Query("cb"), "cbʘ")]
    assert Transducer(model).score("db", "dbʘ") == -math.inf
    weight = 0.8 / (1 + 0.8)  # w for an accuracy of 1: each of the pairs follows from the other
    assert Transducer(model, analogies=pairs).score("db", "dbʘ") == pytest.approx(math.log(weight))


def test_a_query_without_an_analogous_output_has_the_outputs_of_the_network(model: Path) -> None:
    """The target d has neither the a nor the c that a d would replace."""
    pairs = [(Query("ab"), "d"), (Query("cb"), "d")]
    mixed = Transducer(model, analogies=pairs).predict("db")
    alone = Transducer(model).predict("db")
    assert mixed.outputs[0].prob == pytest.approx(alone.outputs[0].prob)
    assert mixed.text == alone.text


def test_a_pair_without_a_source_is_refused(model: Path) -> None:
    with pytest.raises(TransducerError, match="analogies: pair 2: the source is empty"):
        Transducer(model, analogies=[(Query("ab"), "a"), (Query(""), "a")])


def test_a_pair_without_a_target_is_refused(model: Path) -> None:
    with pytest.raises(TransducerError, match="analogies: pair 2: the target is empty"):
        Transducer(model, analogies=[(Query("ab"), "a"), (Query("cb"), "")])


def test_analogies_that_are_never_right_are_not_computed(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have no weight: none of the targets follows from the other pair."""
    transducer = Transducer(model, analogies=[(Query("ab"), "cc"), (Query("cd"), "ba")])
    assert weight_of_analogies(transducer) == 0
    computed: list[object] = []
    monkeypatch.setattr(Analogies, "distribution", lambda *_: computed.append(1) or {})
    assert transducer.analogies.outputs(Query("ad")) == NO_ANALOGIES
    assert not computed
