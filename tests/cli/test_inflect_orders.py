"""Forms of right-to-left models, and averages of models of both directions."""

import hashlib
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax import Inflector
from onmt_entmax.cli import export, inflect
from onmt_entmax.ensembles import TranslationError
from onmt_entmax.inflector import Inflection, Question
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.search.certificate import Certificate
from onmt_entmax.translator import Translator
from tests.in_process import exit_status
from tests.inflection_models import write_model

RIGHT_TO_LEFT = {"target_order": "right_to_left"}
QUESTIONS = [
    Question(language, lemma, ("V",))
    for language in ("english", "german")
    for lemma in ("a", "ab", "b", "bba", "aab", "ba")
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def left_to_right(folder: Path) -> Path:
    """A model whose forms are no palindromes."""
    return write_model(folder / "left-to-right", 5, end=1)


@pytest.fixture(scope="module")
def right_to_left(folder: Path) -> Path:
    """The same weights; the folder says that they write from right to left."""
    return write_model(folder / "right-to-left", 5, end=1, options=RIGHT_TO_LEFT)


@pytest.fixture(scope="module")
def second_model(folder: Path) -> Path:
    """Another model that writes from left to right."""
    return write_model(folder / "second", 7, end=1)


# --- one model ---


def test_a_right_to_left_model_gives_its_forms_in_natural_order(
    left_to_right: Path, right_to_left: Path
) -> None:
    forwards = Inflector([left_to_right], n_best=5).inflect("english", "ab", "V")
    backwards = Inflector([right_to_left], n_best=5).inflect("english", "ab", "V")
    texts = [form.text for form in forwards.forms]
    assert [form.text for form in backwards.forms] == [text[::-1] for text in texts]
    assert any(text != text[::-1] for text in texts)
    assert [form.prob for form in backwards.forms] == [form.prob for form in forwards.forms]
    assert backwards.certificate == forwards.certificate


def test_translate_gives_forms_in_natural_order(left_to_right: Path, right_to_left: Path) -> None:
    task = SearchTask(SearchConfig(beam_size=5, n_best=5))
    line = "lang=english +V a b"
    (forwards,) = Translator.from_folders([left_to_right], task).answers([line])
    (backwards,) = Translator.from_folders([right_to_left], task).answers([line])
    texts = [hypothesis.text for hypothesis in forwards.hypotheses]
    reversed_texts = [" ".join(reversed(text.split())) for text in texts]
    assert reversed_texts != texts
    assert [hypothesis.text for hypothesis in backwards.hypotheses] == reversed_texts
    assert answer_record(backwards)["certificate"] == answer_record(forwards)["certificate"]


@pytest.fixture
def exported(
    right_to_left: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Path]:
    """The folder that `export` makes of the right-to-left model."""
    folder = tmp_path / "exported"
    assert exit_status(export.main, [str(right_to_left), str(folder)]) == 0
    capsys.readouterr()
    return folder


def test_the_card_of_an_exported_model_says_its_direction(exported: Path) -> None:
    card = (exported / "README.md").read_text("utf-8")
    assert "inflect --model exported LANGUAGE" in card
    assert "It writes from right to left" in card


def test_an_exported_model_keeps_its_direction(
    right_to_left: Path, exported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []
    for model in (right_to_left, exported):
        assert exit_status(inflect.main, ["english", "ab", "V", "--model", str(model)]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_user_can_add_the_direction_to_a_folder_of_release_1_0(
    right_to_left: Path, tmp_path: Path
) -> None:
    """As the guide says: a line in config.yaml, whose checksum is renewed."""
    model = write_model(tmp_path / "model", 5, end=1, options={"seed": 1})
    config, checksums = model / "config.yaml", model / "SHA256SUMS"
    before = sha256(config)
    options = "options:\n  target_order: right_to_left"
    config.write_text(config.read_text().replace("options:", options))
    checksums.write_text(checksums.read_text().replace(before, sha256(config)))
    query = "english", "ab", "V"
    expected = Inflector(right_to_left, n_best=5).inflect(*query)
    assert Inflector(model, n_best=5).inflect(*query) == expected


# --- models of both directions ---


def test_models_of_two_directions_are_no_token_level_ensemble(
    left_to_right: Path, right_to_left: Path
) -> None:
    with pytest.raises(TranslationError, match="one writes from left to right, the other"):
        Translator.from_folders([left_to_right, right_to_left])


def test_a_right_to_left_model_takes_no_prefix(right_to_left: Path) -> None:
    translator = Translator.from_folders([right_to_left])
    with pytest.raises(TranslationError, match="prefix of line 1: a model that writes from right"):
        list(translator.answers(["lang=english +V a"], prefixes=["a"]))


class Mean(NamedTuple):
    """An average of three models, and what its parts say."""

    answer: Inflection
    left: Inflection
    """Of the ensemble of the two left-to-right models, which have two thirds of the weight."""
    right: Inflection
    """Of the right-to-left model, its forms still reversed."""


@pytest.fixture(scope="module", params=["a", "bba"])
def mean(request: pytest.FixtureRequest, left_to_right: Path, folder: Path) -> Mean:
    """An average in which all forms of each direction are known."""
    query = "english", request.param, "V"
    forwards = write_model(folder / f"forwards {request.param}", 24)
    backwards = write_model(folder / f"backwards {request.param}", 24, options=RIGHT_TO_LEFT)
    all_models = [left_to_right, backwards, forwards]
    return Mean(
        Inflector(all_models, n_best=0, max_length=6).inflect(*query),
        Inflector([left_to_right, forwards], n_best=0, max_length=6).inflect(*query),
        Inflector([forwards], n_best=0, max_length=6).inflect(*query),
    )


def test_models_of_two_directions_are_averaged_by_whole_forms(mean: Mean) -> None:
    expected = {form.text: 2 / 3 * form.prob for form in mean.left.forms}
    for form in mean.right.forms:
        text = form.text[::-1]
        expected[text] = expected.get(text, 0.0) + 1 / 3 * form.prob
    forms = {form.text: form.prob for form in mean.answer.forms}
    assert forms == pytest.approx(expected, abs=1e-6)


def test_averaged_forms_are_sorted_by_probability(mean: Mean) -> None:
    probs = [form.prob for form in mean.answer.forms]
    assert probs == sorted(probs, reverse=True)


def test_the_excluded_bound_of_an_average_is_the_mean(mean: Mean) -> None:
    left, right = (
        math.exp(inflection.certificate.log_excluded_bound)
        for inflection in (mean.left, mean.right)
    )
    bound = math.exp(mean.answer.certificate.log_excluded_bound)
    assert bound == pytest.approx(2 / 3 * left + 1 / 3 * right, rel=1e-5)


class Proofs(NamedTuple):
    """The certificate of an average of both directions, and those of its models alone."""

    both: Certificate
    left: Certificate
    right: Certificate


def compared_proofs(left: Path, right: Path, beam_size: int, max_length: int) -> list[Proofs]:
    """Return the certificates of all questions."""
    sizes = {"n_best": beam_size, "beam_size": beam_size, "max_length": max_length}
    certificates = [
        [answer.certificate for answer in Inflector(folders, **sizes).answers(QUESTIONS)]
        for folders in ([left, right], [left], [right])
    ]
    return [Proofs(*proofs) for proofs in zip(*certificates, strict=True)]


def both_drop_prefixes(proofs: Proofs) -> bool:
    return bool(proofs.left.dropped and proofs.right.dropped)


def some_prefix_is_cut(proofs: Proofs) -> bool:
    return bool(proofs.left.truncated or proofs.right.truncated)


def one_is_strict(proofs: Proofs) -> bool:
    return proofs.left.strict != proofs.right.strict


class Setting(NamedTuple):
    """Searches of a left-to-right model and of the right-to-left one, and what they reach."""

    left_model: str
    """Name of a fixture."""
    beam_size: int
    max_length: int
    reached: Callable[[Proofs], bool]


@pytest.fixture(scope="module")
def certain_model(folder: Path) -> Path:
    """A left-to-right model of so few forms that a wide search is strictly exhaustive."""
    return write_model(folder / "certain", 3, end=4)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(Setting("second_model", 1, 8, both_drop_prefixes), id="narrow beam"),
        pytest.param(Setting("second_model", 20, 2, some_prefix_is_cut), id="length limit"),
        pytest.param(Setting("certain_model", 20, 8, one_is_strict), id="one strict direction"),
    ],
)
def setting(request: pytest.FixtureRequest) -> Setting:
    setting: Setting = request.param
    return setting


@pytest.fixture(scope="module")
def proofs(setting: Setting, right_to_left: Path, request: pytest.FixtureRequest) -> list[Proofs]:
    left = request.getfixturevalue(setting.left_model)
    return compared_proofs(left, right_to_left, setting.beam_size, setting.max_length)


def test_each_setting_reaches_what_it_is_for(setting: Setting, proofs: list[Proofs]) -> None:
    assert any(setting.reached(each) for each in proofs)


def test_dropped_prefixes_of_both_directions_count(proofs: list[Proofs]) -> None:
    for both, left, right in proofs:
        assert both.dropped == left.dropped + right.dropped


def test_truncated_prefixes_of_both_directions_count(proofs: list[Proofs]) -> None:
    for both, left, right in proofs:
        assert both.truncated == left.truncated + right.truncated


def test_an_average_is_strictly_exhaustive_if_both_directions_are(proofs: list[Proofs]) -> None:
    for both, left, right in proofs:
        assert both.strict == (left.strict and right.strict)


# --- what is proven, against all forms of both directions ---


class Models(NamedTuple):
    """Random models of both directions."""

    seed: int
    end: float
    """What makes forms short; see `write_model`."""
    levels: set[str]
    """All that is proven of any question, with beams of 1 to 50."""


FEW_FORMS = Models(seed=40, end=3.0, levels={"only", "exhaustive", "optimal"})
MANY_FORMS = Models(seed=50, end=3.0, levels={"optimal"})
FLAT = Models(seed=50, end=1.5, levels={"optimal", "none"})


@pytest.fixture(
    scope="module",
    params=[pytest.param(FEW_FORMS, id="few forms"), pytest.param(FLAT, id="flat distribution")],
)
def models(request: pytest.FixtureRequest) -> Models:
    models: Models = request.param
    return models


@pytest.fixture(scope="module")
def folders(models: Models, folder: Path) -> list[Path]:
    """The folders of the left-to-right model and of the right-to-left one."""
    first, second = models.seed, models.seed + 14
    return [
        write_model(folder / f"{first} {models.end}", first, end=models.end),
        write_model(
            folder / f"{second} {models.end}", second, end=models.end, options=RIGHT_TO_LEFT
        ),
    ]


@pytest.mark.parametrize(
    "models", [FEW_FORMS, MANY_FORMS], indirect=True, ids=["few forms", "many forms"]
)
def test_the_excluded_bound_is_the_mean_of_those_of_the_directions(folders: list[Path]) -> None:
    """Each direction's is the larger of what it excluded and what it did not follow."""
    proofs = compared_proofs(*folders, beam_size=1, max_length=8)
    for both, left, right in proofs:
        limits = [max(proof.log_excluded_bound, proof.log_bound) for proof in (left, right)]
        mean = sum(math.exp(limit) for limit in limits) / 2
        assert math.exp(both.log_excluded_bound) == pytest.approx(mean, rel=1e-6)
    parts = [proof for _, left, right in proofs for proof in (left, right)]
    assert any(proof.log_bound > proof.log_excluded_bound for proof in parts)


def test_the_first_form_does_not_depend_on_how_many_are_listed(folders: list[Path]) -> None:
    """The best form of the average may be the best of neither direction."""
    one, five = (
        list(Inflector(folders, n_best=n_best, beam_size=5, max_length=8).answers(QUESTIONS))
        for n_best in (1, 5)
    )
    assert [answer.forms for answer in one] == [answer.forms[:1] for answer in five]
    assert [answer.level for answer in one] == [answer.level for answer in five]
    for first, second in zip(one, five, strict=True):
        assert first.certificate.bound == second.certificate.bound
        assert first.certificate.mass == second.certificate.mass


class Case(NamedTuple):
    """The answer of a search for two forms, and what is true."""

    answer: Inflection
    truth: dict[str, float]
    """All forms that an enumeration finds, with their probabilities."""
    unlisted: float
    """The largest probability that any other form may have."""


@pytest.fixture(scope="module")
def cases(folders: list[Path]) -> list[Case]:
    """All questions, with beams of 1, 2 and 50."""
    everything = list(Inflector(folders, n_best=0, max_length=8).answers(QUESTIONS))
    return [
        Case(answer, {form.text: form.prob for form in truth.forms}, truth.certificate.bound)
        for beam_size in (1, 2, 50)
        for answer, truth in zip(
            Inflector(folders, n_best=2, beam_size=beam_size, max_length=8).answers(QUESTIONS),
            everything,
            strict=True,
        )
    ]


def test_the_cases_have_every_level(models: Models, cases: list[Case]) -> None:
    assert {case.answer.level for case in cases} == models.levels


def test_the_true_probability_of_a_form_is_within_its_bounds(cases: list[Case]) -> None:
    for answer, truth, unlisted in cases:
        for form in answer.forms:
            upper = form.prob + answer.certificate.bound + unlisted
            assert form.prob - 1e-6 <= truth[form.text] <= upper + 1e-6


def test_a_proven_first_form_is_the_most_probable(cases: list[Case]) -> None:
    for answer, truth, _ in cases:
        if answer.level != "none":
            best = max(truth.values())
            assert truth[answer.forms[0].text] == pytest.approx(best, abs=1e-6)
            assert answer.certificate.proven >= 1


def test_no_more_forms_are_proven_than_listed(cases: list[Case]) -> None:
    for answer, _, _ in cases:
        assert answer.certificate.proven <= len(answer.forms) <= 2


def test_an_exhaustive_answer_leaves_nothing(cases: list[Case]) -> None:
    """Strings with symbols for start and padding have the probability that is missing."""
    for answer, truth, _ in cases:
        if answer.level in ("only", "exhaustive"):
            certificate = answer.certificate
            assert (certificate.bound, certificate.gap) == (0, math.inf)
            assert certificate.mass + certificate.excluded == pytest.approx(1, abs=1e-5)
            assert len(answer.forms) == min(2, len(truth))


def test_only_is_said_of_a_single_possible_form(cases: list[Case]) -> None:
    for answer, truth, _ in cases:
        if answer.level in ("only", "exhaustive"):
            assert answer.only == (len(truth) == 1)
            assert answer.only == (answer.level == "only")


def test_other_answers_bound_what_they_leave(cases: list[Case]) -> None:
    for answer, _, _ in cases:
        if answer.level in ("optimal", "none"):
            assert answer.certificate.bound > 0
            assert answer.certificate.gap < math.inf


def test_the_gap_bounds_all_other_forms(cases: list[Case]) -> None:
    """Compared as probabilities: a score next to the threshold loses digits, so the logarithm of
    a rare form rounds by more than that of a likely one."""
    for answer, truth, _ in cases:
        if answer.level == "optimal":
            first = answer.forms[0]
            others = [prob for text, prob in truth.items() if text != first.text]
            bound = first.prob * math.exp(-answer.certificate.gap)
            assert max(others, default=0.0) <= bound + 1e-7
