"""`target_symbols: language`: a search excludes symbols of other languages, and certifies the rest.

An output may have the symbols of its source, those that training targets of the language had, and
`<unk>`. The tests compare a search with all outputs under `target_symbols: any`, of which there
are few.
"""

import itertools
import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax import Transducer, Translator
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import Sampling, SearchConfig, SearchTask
from tests.letter_models import LETTERS, SEEN, write_copying_letters, write_letters

OF_KNOWN_LANGUAGES = ("lang=x +V a a", "lang=x +V d", "lang=y +V b c")
OF_UNKNOWN_LANGUAGE = "lang=z +V c"
SOURCES = (*OF_KNOWN_LANGUAGES, OF_UNKNOWN_LANGUAGE)
LONGEST = 3  # tokens of an output

Output = tuple[str, ...]
"""The symbols of an output."""

# The only warning is about the language z, which has no recorded symbols.
pytestmark = pytest.mark.filterwarnings("error::UserWarning", "ignore:.*of z:UserWarning")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_letters(tmp_path_factory.mktemp("letters") / "model")


def allowed_symbols(source: str) -> set[str]:
    """Return the symbols that an output for a source may have."""
    language, _, *letters = source.split()
    return {*SEEN.get(language, LETTERS), *letters, "<unk>"}


def translator_of(model: Path, symbols: str, method: str = "beam") -> Translator:
    """Return a translator that lists all outputs within the length limit."""
    config = SearchConfig(beam_size=200, n_best=0, max_length=LONGEST)
    return Translator.from_folders(model, SearchTask(config, method, target_symbols=symbols))


def answer_of(translator: Translator, source: str) -> Answer:
    (answer,) = translator.answers([source])
    return answer


def log_probs_of(translator: Translator, source: str) -> dict[Output, float]:
    """Return the log-probability of each output."""
    return {
        tuple(output.text.split()): output.hypothesis.log_prob
        for output in answer_of(translator, source).hypotheses
    }


class Outputs(NamedTuple):
    """All outputs for a source, with their log-probabilities."""

    allowed: dict[Output, float]
    excluded: dict[Output, float]
    """Outputs with a symbol that is not allowed."""


def all_outputs(model: Path, source: str) -> Outputs:
    """Return all outputs within the length limit, divided into allowed and excluded ones."""
    outputs, symbols = Outputs({}, {}), allowed_symbols(source)
    for output, log_prob in log_probs_of(translator_of(model, "any"), source).items():
        part = outputs.allowed if {*output} <= symbols else outputs.excluded
        part[output] = log_prob
    return outputs


@pytest.fixture(scope="module")
def outputs(model: Path) -> dict[str, Outputs]:
    """All outputs for each of `SOURCES`."""
    return {source: all_outputs(model, source) for source in SOURCES}


# --- which outputs are possible --------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("method", ["beam", "enumerate"])
def test_outputs_are_those_of_allowed_symbols(
    model: Path, outputs: dict[str, Outputs], source: str, method: str
) -> None:
    """They keep their probabilities."""
    restricted = log_probs_of(translator_of(model, "language", method), source)
    expected = outputs[source].allowed
    assert restricted == pytest.approx(expected, abs=1e-5)
    assert len(expected) > 10


@pytest.mark.parametrize("source", SOURCES)
def test_only_a_language_with_recorded_symbols_has_fewer_outputs(model: Path, source: str) -> None:
    restricted = log_probs_of(translator_of(model, "language"), source)
    unrestricted = log_probs_of(translator_of(model, "any"), source)
    assert (len(restricted) < len(unrestricted)) is (source in OF_KNOWN_LANGUAGES)


@pytest.mark.parametrize("source", OF_KNOWN_LANGUAGES)
def test_the_option_restricts_languages_with_recorded_symbols(model: Path, source: str) -> None:
    answer = answer_of(translator_of(model, "language"), source)
    assert answer.restricted_by == ("target_symbols",)


def test_the_option_does_not_restrict_a_language_without_recorded_symbols(model: Path) -> None:
    answer = answer_of(translator_of(model, "language"), OF_UNKNOWN_LANGUAGE)
    assert answer.restricted_by == ()


@pytest.mark.parametrize(("symbols", "possible"), [("any", True), ("language", False)])
def test_a_target_that_the_option_excludes_has_no_score(
    model: Path, symbols: str, possible: bool
) -> None:
    score = Transducer(model, target_symbols=symbols).score("aa", "cd", "V", "x")
    assert (score > -math.inf) is possible


def sampled_symbols(model: Path, source: str, symbols: str) -> set[str]:
    """Return the symbols of fifty samples."""
    task = SearchTask(
        SearchConfig(n_best=50, max_length=LONGEST),
        sampling=Sampling(topk=0, topp=0.99),
        target_symbols=symbols,
    )
    answer = answer_of(Translator.from_folders(model, task), source)
    return {symbol for sample in answer.samples for symbol in sample.text.split()}


def test_samples_have_allowed_symbols(model: Path) -> None:
    source = SOURCES[0]
    assert sampled_symbols(model, source, "language") <= allowed_symbols(source)
    assert not sampled_symbols(model, source, "any") <= allowed_symbols(source)


def test_a_symbol_that_is_copied_is_written_by_its_placeholder_alone(tmp_path: Path) -> None:
    """The token of the symbol itself stays excluded."""
    model = write_copying_letters(tmp_path / "copying", 1)
    translator = translator_of(model, "language")
    answer = answer_of(translator, "lang=x +V d a")  # the source vocabulary lacks d
    tokens = [
        translator.vocabularies.target.decode(output.hypothesis.tokens)
        for output in answer.hypotheses
    ]
    assert {*itertools.chain(*tokens)} - {"<unk>"} == {"a", "b", "<copy1>"}
    texts = [output.text for output in answer.hypotheses]
    assert len({*texts}) == len(texts)


# --- what certificates say about excluded outputs --------------------------------------------


def probability(log_probs: Iterable[float]) -> float:
    return sum(map(math.exp, log_probs))


@pytest.mark.parametrize("source", OF_KNOWN_LANGUAGES)
def test_excluded_outputs_count_as_excluded_probability(
    model: Path, outputs: dict[str, Outputs], source: str
) -> None:
    """The search may count a little more: all that follows an excluded prefix."""
    excluded = probability(outputs[source].excluded.values())
    assert excluded > 0.01
    certificate = answer_of(translator_of(model, "language"), source).result.certificate
    assert certificate.excluded >= excluded - 1e-6
    assert certificate.mass + certificate.excluded <= 1 + 1e-6


@pytest.mark.parametrize("source", OF_KNOWN_LANGUAGES)
def test_more_probability_is_excluded_than_without_the_restriction(
    model: Path, source: str
) -> None:
    restricted, unrestricted = (
        answer_of(translator_of(model, symbols), source).result.certificate
        for symbols in ("language", "any")
    )
    assert restricted.excluded > unrestricted.excluded


class Search(NamedTuple):
    """A search for the best output, and all outputs for its source."""

    answer: Answer
    outputs: Outputs

    @property
    def best(self) -> Output:
        (hypothesis,) = self.answer.hypotheses
        return tuple(hypothesis.text.split())


@pytest.fixture(
    scope="module",
    params=itertools.product(SOURCES, (1, 2, 5), ("beam", "exact")),
    ids=lambda case: "-".join(map(str, case)),
)
def search(request: pytest.FixtureRequest, model: Path, outputs: dict[str, Outputs]) -> Search:
    """A search with a source, a beam size and a method, which verifies its answer."""
    source, beam_size, method = request.param
    config = SearchConfig(beam_size, max_length=LONGEST)
    task = SearchTask(config, method, verify=True, target_symbols="language")
    answer = answer_of(Translator.from_folders(model, task), source)
    return Search(answer, outputs[source])


def test_the_best_output_is_an_allowed_one(search: Search) -> None:
    assert search.best in search.outputs.allowed


def test_a_certified_output_is_the_most_probable_allowed_one(search: Search) -> None:
    """Every search of this model gives a certificate, even with a beam of one."""
    assert search.answer.result.certificate.level == "optimal"
    allowed = search.outputs.allowed
    assert allowed[search.best] == pytest.approx(max(allowed.values()), abs=1e-5)


def test_verification_confirms_the_certificate(search: Search) -> None:
    assert search.answer.verification.agrees is True


def test_excluded_outputs_have_at_most_the_probability_that_a_certificate_says(
    search: Search,
) -> None:
    certificate = search.answer.result.certificate
    most_probable = max(search.outputs.excluded.values(), default=-math.inf)
    bound = max(certificate.log_bound, certificate.log_excluded_bound)
    assert math.exp(most_probable) <= math.exp(bound) + 1e-6
