"""`Transducer` with analogies: the mixture, and what is proven about it, by enumeration."""

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

LONGEST = 3
SOURCES = ["".join(letters) for letters in itertools.product(LETTERS, repeat=2)]
KNOWN = {"ab": "abd", "cb": "cbd", "acb": "acbd", "aab": "aaba", "ad": "ada", "bd": "bda"}
PAIRS = [(Query(source), target) for source, target in KNOWN.items()]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("letters") / "model"
    return write_model(folder, 3, vocabularies_of(LETTERS, LETTERS), 2, task_options())


def expected_mixture(model: Path, source: str) -> dict[str, float]:
    """Return the probability of each text in the mixture, from those of its two parts."""
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


def test_analogies_have_a_tenth_of_the_weight_or_more(model: Path) -> None:
    """Otherwise the tests below would compare models alone."""
    transducer = Transducer(model, analogies=PAIRS)
    assert transducer.analogies is not None
    assert transducer.analogies.known.weight(()) > 0.1


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


def test_the_score_of_a_target_is_that_of_the_mixture(model: Path) -> None:
    """For the most probable output of the network, and for one that follows by analogy."""
    mixture = expected_mixture(model, "db")
    targets = {Transducer(model, max_length=LONGEST).predict("db").text, "dbd"}
    assert len(targets) == 2
    transducer = Transducer(model, max_length=LONGEST, analogies=PAIRS)
    scores = {target: transducer.score("db", target) for target in targets}
    expected = {target: math.log(mixture[target]) for target in targets}
    assert scores == pytest.approx(expected, abs=1e-5)


def test_only_the_search_leaves_probability_for_other_outputs(model: Path) -> None:
    """By analogy, no output is possible but those that are listed."""
    alone = Transducer(model, beam_size=1, max_length=LONGEST).predict("db")
    transducer = Transducer(model, beam_size=1, max_length=LONGEST, analogies=PAIRS)
    assert transducer.analogies is not None
    weight = transducer.analogies.known.weight(())
    expected = (1 - weight) * alone.certificate.bound
    assert expected > 0
    assert transducer.predict("db").certificate.bound == pytest.approx(expected, rel=1e-5)


def test_a_target_that_the_model_cannot_write_may_follow_by_analogy(model: Path) -> None:
    pairs = [(Query("ab"), "abʘ"), (Query("cb"), "cbʘ")]
    assert Transducer(model).score("db", "dbʘ") == -math.inf
    weight = 0.8 / 1.8  # all of these analogies are right
    assert Transducer(model, analogies=pairs).score("db", "dbʘ") == pytest.approx(math.log(weight))


def test_without_analogies_for_its_tags_a_query_has_the_outputs_of_the_models(model: Path) -> None:
    """No known word has a beginning that the source could take the place of."""
    pairs = [(Query("ab"), "d"), (Query("cb"), "d")]
    mixed = Transducer(model, analogies=pairs).predict("db")
    alone = Transducer(model).predict("db")
    assert mixed.outputs[0].prob == pytest.approx(alone.outputs[0].prob)
    assert mixed.text == alone.text


def test_a_query_that_cannot_be_asked_is_refused(model: Path) -> None:
    with pytest.raises(TransducerError, match="analogies: pair 2: the source is empty"):
        Transducer(model, analogies=[(Query("ab"), "a"), (Query(""), "a")])


def test_a_target_without_units_is_refused(model: Path) -> None:
    with pytest.raises(TransducerError, match="analogies: pair 2: the target is empty"):
        Transducer(model, analogies=[(Query("ab"), "a"), (Query("cb"), "")])


def test_analogies_that_are_never_right_are_not_computed(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their weight is 0: no two of these words share an ending that their targets share."""
    transducer = Transducer(model, analogies=[(Query("ab"), "cc"), (Query("cd"), "ba")])
    assert transducer.analogies is not None
    assert transducer.analogies.known.weight(()) == 0
    computed: list[object] = []
    monkeypatch.setattr(Analogies, "distribution", lambda *_: computed.append(1) or {})
    assert transducer.analogies.outputs(Query("ad")) == NO_ANALOGIES
    assert not computed
