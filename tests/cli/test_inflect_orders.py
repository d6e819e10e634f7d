"""`Inflector` and `inflect` where forms are written from right to left, and
where orders of writing are averaged: what is said, and what is proven."""

import hashlib
import io
import math
from pathlib import Path

import pytest

from onmt_entmax import Inflector
from onmt_entmax.cli import export, inflect
from onmt_entmax.inflector import Question
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.translator import TranslationError, Translator
from tests.ended import ended
from tests.inflection_models import write_model


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    """A model with forms that are others from right to left."""
    return write_model(tmp_path_factory.mktemp("uneven") / "model", 5, end=1)


ORDER = "target_order: right_to_left"
RIGHT_TO_LEFT = {"target_order": "right_to_left"}


@pytest.fixture(scope="module")
def turned(tmp_path_factory):
    """The same, which writes from right to left by its folder."""
    folder = tmp_path_factory.mktemp("turned") / "model"
    return write_model(folder, 5, end=1, options=RIGHT_TO_LEFT)


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Another one."""
    return write_model(tmp_path_factory.mktemp("other") / "model", 7, end=1)


QUESTIONS = [
    Question(language, lemma, ("V",))
    for language in ("english", "german")
    for lemma in ("a", "ab", "b", "bba", "aab", "ba")
]


@pytest.fixture(scope="module", params=(40, 50))
def short_forms(request, tmp_path_factory):
    """Models of both orders, with few forms of any probability, and all their forms."""
    folder = tmp_path_factory.mktemp("short")
    seeds = request.param, request.param + 14
    options = {}, RIGHT_TO_LEFT
    folders = [
        write_model(folder / str(seed), seed, end=3, options=each)
        for seed, each in zip(seeds, options, strict=True)
    ]
    return folders, list(Inflector(folders, n_best=0, max_length=8).answers(QUESTIONS))


def test_a_model_that_writes_backwards_gives_its_forms_forwards(uneven, turned):
    question = "english", "ab", "V"
    plain, other = (Inflector([each], n_best=5).inflect(*question) for each in (uneven, turned))
    assert [form.text for form in other.forms] == [form.text[::-1] for form in plain.forms]
    assert any(form.text != form.text[::-1] for form in plain.forms)
    assert [form.prob for form in other.forms] == [form.prob for form in plain.forms]
    assert other.certificate == plain.certificate


@pytest.mark.parametrize("lemma", ["a", "bba"])
def test_models_of_two_orders_are_averaged_by_whole_forms(uneven, tmp_path, lemma):
    """Two models from the left have two thirds of the weight; all forms are known."""
    other = write_model(tmp_path / "other", 24)
    turned = write_model(tmp_path / "turned", 24, options=RIGHT_TO_LEFT)
    left, right = (Inflector(each, n_best=0, max_length=6) for each in ([uneven, other], [other]))
    both = Inflector([uneven, turned, other], 0, max_length=6)
    expected, forbidden = {}, 0.0
    for inflector, weight, step in ((left, 2 / 3, 1), (right, 1 / 3, -1)):
        alone = inflector.inflect("english", lemma, "V")
        forbidden += weight * math.exp(alone.certificate.log_excluded_bound)
        for form in alone.forms:
            text = form.text[::step]
            expected[text] = expected.get(text, 0) + weight * form.prob
    answer = both.inflect("english", lemma, "V")
    assert {form.text: form.prob for form in answer.forms} == pytest.approx(expected, abs=1e-6)
    assert math.exp(answer.certificate.log_excluded_bound) == pytest.approx(forbidden, rel=1e-5)
    probs = [form.prob for form in answer.forms]
    assert probs == sorted(probs, reverse=True)


def test_no_excluded_form_exceeds_the_excluded_bound(short_forms):
    """It is the mean of each direction's bound on what it excluded or did not follow."""
    folders, _ = short_forms
    apart = [
        Inflector([folder], n_best=1, beam_size=1, max_length=8).answers(QUESTIONS)
        for folder in folders
    ]
    both = Inflector(folders, n_best=1, beam_size=1, max_length=8).answers(QUESTIONS)
    larger = 0
    for answer, *parts in zip(both, *apart, strict=True):
        proofs = [part.certificate for part in parts]
        limits = [max(proof.log_excluded_bound, proof.log_bound) for proof in proofs]
        expected = sum(math.exp(limit) for limit in limits) / 2
        assert math.exp(answer.certificate.log_excluded_bound) == pytest.approx(expected, rel=1e-6)
        larger += any(proof.log_bound > proof.log_excluded_bound for proof in proofs)
    assert larger > 0


def test_prefixes_of_both_directions_count(turned, other, tmp_path):
    """Those dropped and cut; the search is strictly exhaustive only if both are."""
    few = write_model(tmp_path / "few", 3, end=4)
    proofs = []
    for left, beam, length in ((other, 1, 8), (other, 20, 2), (few, 20, 8)):
        folders = [left, turned]
        sizes = {"n_best": beam, "beam_size": beam, "max_length": length}
        apart = [Inflector(folder, **sizes).answers(QUESTIONS) for folder in folders]
        both = Inflector(folders, **sizes).answers(QUESTIONS)
        for answer, *parts in zip(both, *apart, strict=True):
            proof, first, second = (each.certificate for each in (answer, *parts))
            assert proof.dropped == first.dropped + second.dropped
            assert proof.truncated == first.truncated + second.truncated
            assert proof.strict == (first.strict and second.strict)
            proofs.append((first, second))
    assert any(first.dropped and second.dropped for first, second in proofs)
    assert any(first.truncated or second.truncated for first, second in proofs)
    assert any(first.strict != second.strict for first, second in proofs)


def test_the_first_form_does_not_depend_on_how_many_are_listed(short_forms):
    """The best form of both may be the best of neither."""
    folders, _ = short_forms
    one, five = (
        list(Inflector(folders, n_best=n, beam_size=5, max_length=8).answers(QUESTIONS))
        for n in (1, 5)
    )
    assert [answer.forms for answer in one] == [answer.forms[:1] for answer in five]
    assert [answer.level for answer in one] == [answer.level for answer in five]
    proofs = [(answer.certificate.bound, answer.certificate.mass) for answer in one]
    assert proofs == [(answer.certificate.bound, answer.certificate.mass) for answer in five]


@pytest.mark.parametrize("beam", [1, 2, 50])
def test_what_is_proven_of_both_orders_is_so(short_forms, beam):
    """Against all forms of both orders; ends are likely, so that often few are possible."""
    folders, whole = short_forms
    some = Inflector(folders, n_best=2, beam_size=beam, max_length=8).answers(QUESTIONS)
    for answer, all_forms in zip(some, whole, strict=True):
        truth = {form.text: form.prob for form in all_forms.forms}
        certificate, rest = answer.certificate, all_forms.certificate.bound
        for form in answer.forms:
            upper = form.prob + certificate.bound + rest
            assert form.prob - 1e-6 <= truth[form.text] <= upper + 1e-6
        best = max(truth.values())
        if answer.level != "none":
            assert truth[answer.forms[0].text] == pytest.approx(best, abs=1e-6)
            assert certificate.proven >= 1
        assert certificate.proven <= len(answer.forms) <= 2
        if answer.level in ("only", "exhaustive"):
            assert (certificate.bound, certificate.gap) == (0, math.inf)
            # What is missing are strings with symbols for start and padding.
            assert certificate.mass + certificate.excluded == pytest.approx(1, abs=1e-5)
            assert len(answer.forms) == min(2, len(truth))
            assert answer.only == (len(truth) == 1) == (answer.level == "only")
        else:
            assert certificate.bound > 0
            assert certificate.gap < math.inf
        others = [prob for text, prob in truth.items() if text != answer.forms[0].text]
        if answer.level == "optimal" and others:
            # As a probability: the logarithm of a rare form rounds by more than that of a likely
            # one, since a score next to the threshold loses digits.
            bound = answer.forms[0].prob * math.exp(-certificate.gap)
            assert max(others) <= bound + 1e-7


def asked(model: Path, capsys, monkeypatch, text: str, *more: str) -> list[str]:
    """Lines that the command prints."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert ended(inflect.main, [*more, str(model)]) == 0
    return capsys.readouterr().out.splitlines()


def test_what_a_folder_says_of_its_order_is_exported(turned, tmp_path, capsys, monkeypatch):
    told = tmp_path / "told"
    assert ended(export.main, [str(turned), str(told)]) == 0
    capsys.readouterr()
    card = (told / "README.md").read_text("utf-8")
    assert "inflect --model told LANGUAGE" in card
    assert "It writes from right to left" in card
    before, after = (
        asked(model, capsys, monkeypatch, "english ab V\n", "--model") for model in (turned, told)
    )
    assert before == after


def test_translate_gives_forms_forwards(uneven, turned):
    task = SearchTask(SearchConfig(5, 5))
    plain, other = (
        next(Translator.from_folders([model], task).answers(["lang=english +V a b"]))
        for model in (uneven, turned)
    )
    forms = [[h.text for h in answer.hypotheses] for answer in (plain, other)]
    assert forms[1] == [" ".join(reversed(form.split())) for form in forms[0]] != forms[0]
    records = [answer.record() for answer in (plain, other)]
    assert records[0]["certificate"] == records[1]["certificate"]


def test_a_folder_of_release_1_0_is_told_its_order(turned, tmp_path):
    """As the guide says: a line in config.yaml, whose checksum is renewed."""
    old = write_model(tmp_path / "old", 5, end=1, options={"seed": 1})
    config, sums = old / "config.yaml", old / "SHA256SUMS"
    before = hashlib.sha256(config.read_bytes()).hexdigest()
    config.write_text(config.read_text().replace("options:", f"options:\n  {ORDER}"))
    after = hashlib.sha256(config.read_bytes()).hexdigest()
    sums.write_text(sums.read_text().replace(before, after))
    question = "english", "ab", "V"
    assert Inflector(old, n_best=5).inflect(*question) == (
        Inflector(turned, n_best=5).inflect(*question)
    )


def test_models_of_two_orders_are_no_token_level_ensemble(uneven, turned):
    with pytest.raises(TranslationError, match="one writes from left to right, the other"):
        Translator.from_folders([uneven, turned])
    with pytest.raises(TranslationError, match="prefix of line 1: a model that writes from right"):
        list(Translator.from_folders([turned]).answers(["lang=english +V a"], prefixes=["a"]))
