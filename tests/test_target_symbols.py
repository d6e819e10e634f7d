"""`target_symbols`: outputs have only the symbols of their language and of their source."""

import itertools
import json
import math
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax import Inflector, Query, Transducer, Translator
from onmt_entmax.checkpoint import find_model, load
from onmt_entmax.cli import export, inflect, paradigm, predict, translate
from onmt_entmax.files.checksums import write_list
from onmt_entmax.search import Sampling, SearchConfig, SearchTask
from onmt_entmax.strings.copying import PLACEHOLDERS
from tests.commands import succeed
from tests.ended import Main, ended
from tests.inflection_models import write_model
from tests.models import words
from tests.string_models import task_options

LANGUAGES = ("lang=x", "lang=y", "lang=z")
TARGET = "abcd"
SEEN = {"lang=x": "ab", "lang=y": "cd"}
SOURCES = ("lang=x +V a a", "lang=x +V d", "lang=y +V b c", "lang=z +V c")
LONGEST = 3
UNKNOWN = "\ufffd"  # how a text shows `<unk>`


def with_symbols(folder: Path, seen: dict[str, str] | None) -> Path:
    """Record the target symbols of languages in a folder, or none."""
    content = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    content.pop("seen_targets", None)
    if seen is not None:
        content["seen_targets"] = {language: " ".join(own) for language, own in seen.items()}
    (folder / "vocab.json").write_text(json.dumps(content), encoding="utf-8")
    write_list(folder)
    return folder


def written(folder: Path, seed: int = 12, seen: dict[str, str] | None = SEEN, **options) -> Path:
    """Write a random model of three languages, one of which records no symbols."""
    source, target = [*LANGUAGES, "+V", *TARGET], [*TARGET]
    if options:  # it copies
        source, target = [*source[:-1], *PLACEHOLDERS[:2]], [*target, *PLACEHOLDERS[:2]]
    options = task_options(["source", "target", "tags"], **options)
    return with_symbols(write_model(folder, seed, words(source, target), 1, options), seen)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("letters") / "model")


@pytest.fixture(autouse=True)
def _no_warning() -> Iterator[None]:
    """Tests catch the warnings that they expect."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", ".*of z")
        yield


def allowed(source: str) -> set[str]:
    """The symbols of a source and its language; all outputs may have `<unk>`."""
    language, _, *units = source.split()
    return {*SEEN.get(language, TARGET), *units, "<unk>"}


def listed(translator: Translator, source: str) -> dict[tuple[str, ...], float]:
    """The log-probabilities of outputs, each as its symbols."""
    (answer,) = translator.answers([source])
    return {(*each.text.split(),): each.hypothesis.log_prob for each in answer.hypotheses}


def translated(folder: Path, symbols: str, **more: object) -> Translator:
    config = SearchConfig(200, 0, LONGEST)
    return Translator.from_folders(folder, SearchTask(config, target_symbols=symbols, **more))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("method", ["beam", "enumerate"])
def test_outputs_are_those_of_allowed_symbols(model: Path, source: str, method: str) -> None:
    """With unchanged probabilities; a symbol of the source itself is allowed."""
    found = listed(translated(model, "language", method=method), source)
    every = listed(translated(model, "any", method=method), source)
    expected = {text: p for text, p in every.items() if {*text} <= allowed(source)}
    assert found == pytest.approx(expected, abs=1e-5)
    assert len(expected) > 10
    assert (len(expected) < len(every)) == source.startswith(("lang=x", "lang=y"))


@pytest.mark.parametrize("source", SOURCES[:3])
def test_what_is_left_out_counts_as_excluded(model: Path, source: str) -> None:
    """Each output that is left out starts with an excluded prefix."""
    every = listed(translated(model, "any"), source)
    outside = sum(math.exp(p) for text, p in every.items() if not {*text} <= allowed(source))
    ((before,), (after,)) = (
        translated(model, symbols).answers([source]) for symbols in ("any", "language")
    )
    assert outside > 0.01
    excluded = after.result.certificate.excluded
    assert excluded >= outside - 1e-6
    assert excluded > before.result.certificate.excluded
    left = 1 - after.result.certificate.mass - excluded
    assert left >= -1e-6


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize("method", ["beam", "exact"])
def test_certificates_are_about_allowed_outputs(model, source, beam, method) -> None:
    """And what is excluded has at most the probability that they say."""
    every = {text: math.exp(p) for text, p in listed(translated(model, "any"), source).items()}
    inside = {text: p for text, p in every.items() if {*text} <= allowed(source)}
    task = SearchTask(
        SearchConfig(beam, 1, LONGEST), method, verify=True, target_symbols="language"
    )
    (answer,) = Translator.from_folders(model, task).answers([source])
    (best,), certificate = answer.hypotheses, answer.result.certificate
    text = (*best.text.split(),)
    assert text in inside
    if certificate.level != "none":
        assert inside[text] == pytest.approx(max(inside.values()), abs=1e-6)
        assert answer.verification.agrees
    outside = max((p for text, p in every.items() if text not in inside), default=0.0)
    bound = max(certificate.bound, math.exp(certificate.log_excluded_bound))
    assert outside <= bound + 1e-6


def test_samples_have_allowed_symbols(model: Path) -> None:
    source, drawn = SOURCES[0], {}
    for symbols in ("any", "language"):
        sampling = Sampling(topk=0, topp=0.99)
        task = SearchTask(SearchConfig(5, 50, LONGEST), sampling=sampling, target_symbols=symbols)
        (answer,) = Translator.from_folders(model, task).answers([source])
        drawn[symbols] = {symbol for each in answer.samples for symbol in each.text.split()}
    assert drawn["language"] <= allowed(source)
    assert not drawn["any"] <= allowed(source)


def test_a_symbol_that_is_copied_is_written_by_its_placeholder_alone(tmp_path: Path) -> None:
    """The source's own symbol, which is rare, stays excluded as itself."""
    model = written(tmp_path / "copying", 1, copy_frequency=2)
    source = "lang=x +V d a"  # the source vocabulary lacks d
    translator = translated(model, "language")
    (answer,) = translator.answers([source])
    tokens = [
        translator.vocabularies.target.decode(each.hypothesis.tokens) for each in answer.hypotheses
    ]
    assert {*itertools.chain(*tokens)} - {"<unk>"} == {"a", "b", "<copy1>"}
    texts = [each.text for each in answer.hypotheses]
    assert len({*texts}) == len(texts)


@pytest.mark.parametrize("right_to_left", [False, True], ids=["token-level", "sequence-level"])
def test_an_ensemble_excludes_what_no_model_had(tmp_path, right_to_left) -> None:
    """All models exclude the same, so that their mean is over the same texts."""
    more = {"target_order": "right_to_left"} if right_to_left else {}
    names = "model", "other"
    seen = {"lang=x": "a", "lang=y": "c"}, {"lang=x": "b"}
    folders = []
    for number, (name, own) in enumerate(zip(names, seen, strict=True)):
        options = task_options(["source", "target", "tags"], **(more if number else {}))
        vocabularies = words([*LANGUAGES, "+V", *TARGET], TARGET)
        folders.append(
            with_symbols(write_model(tmp_path / name, number, vocabularies, 1, options), own)
        )
    of = {"target_symbols": "language", "max_length": LONGEST}
    both = Transducer(folders, n_best=0, beam_size=200, budget=0, **of)
    found = both.predict("a", "V", "x").outputs
    assert {*"".join(each.text for each in found)} - {UNKNOWN} == {*"ab"}
    assert any({*"ab"} <= {*each.text} for each in found)
    with pytest.warns(UserWarning, match="does not record the target symbols of y"):
        found = both.predict("a", "V", "y").outputs
    assert {*"".join(each.text for each in found)} - {UNKNOWN} == {*TARGET}


def test_what_is_not_recorded_is_said_once(model: Path, tmp_path: Path) -> None:
    def told(work: Callable[[], object]) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            work()
        return [str(each.message) for each in caught]

    transducer = Transducer(model, n_best=0, budget=0, target_symbols="language")
    asked = [Query("ab", ("V",), "z")] * 3
    lines = told(lambda: [*transducer.predictions(asked), *transducer.predictions(asked)])
    assert lines == [
        "target_symbols: the model does not record the target symbols of z: its outputs may have "
        "any"
    ]
    old = written(tmp_path / "old", seen=None)
    assert told(lambda: Transducer(old).predict("ab", "V", "x")) == []
    (line,) = told(lambda: Inflector(old, target_symbols="language").inflect("x", "ab", "V"))
    assert re.search("old does not record .*: no symbols are excluded", line)


def test_a_folder_without_symbols_predicts_as_before(model: Path, tmp_path: Path) -> None:
    old = Transducer(written(tmp_path / "old", seen=None))
    new = Transducer(model, target_symbols="any")
    for source in ("ab", "d"):
        assert old.predict(source, "V", "x") == new.predict(source, "V", "x")


def test_from_training_to_predictions(tmp_path: Path, capsys) -> None:
    """Training records the symbols, `export` keeps them, and each command reads them."""
    for language, letters in (("x", "ab"), ("y", "cd")):
        lemmas = ["".join(each) for each in itertools.product(letters, repeat=2)]
        rows = [f"{lemma}\t{lemma}{letters[0]}\tV" for lemma in lemmas]
        for part in ("train", "dev"):
            (tmp_path / f"{language}-{part}").write_text("\n".join(rows) + "\n", encoding="utf-8")
    out, clean = tmp_path / "run", tmp_path / "clean"
    succeed("onmt_entmax", "prepare", "sigmorphon", "--data", tmp_path, "--out", out)
    small = ("-train_steps", 2, "-rnn_size", 8, "-word_vec_size", 8, "-valid_steps", 2)
    succeed("onmt_entmax", "train", "-config", out / "train.yaml", *small)

    def printed(main: Main, *arguments: object) -> list[list[str]]:
        """The lines that a command prints, as cells."""
        capsys.readouterr()
        assert ended(main, [*map(str, arguments)]) == 0
        return [line.split("\t") for line in capsys.readouterr().out.splitlines()]

    printed(export.main, out / "model", clean)
    seen = {f"lang={language}": frozenset(own) for language, own in (("x", "ab"), ("y", "cd"))}
    for folder in (find_model(out / "model"), clean):
        assert load(folder).vocabularies.target.seen == seen
    table, source, report = (tmp_path / name for name in ("x.tsv", "source", "report"))
    table.write_text("ab\t\tV\nc\t\tV\n", encoding="utf-8")
    source.write_text("lang=x +V a b\n", encoding="utf-8")
    excluded = {}
    for option in ("any", "language", None):
        of_language = option == "language"  # not by default
        more = () if option is None else ("--target_symbols", option)
        rows = printed(predict.main, clean, table, "--n_best", 20, "--beam_size", 20, *more)
        of = {lemma: {*"".join(row[1] for row in rows if row[0] == lemma)} for lemma in ("ab", "c")}
        assert ("d" not in of["ab"] | of["c"]) == ("c" not in of["ab"]) == of_language
        assert "c" in of["c"]
        query = ("--model", clean, "x", "ab", "V")
        rows = printed(inflect.main, *query, "--n_best", 20, "--beam_size", 20, *more)
        assert ({*"cd"} & {*"".join(row[4] for row in rows)} == set()) == of_language
        query = ("--model", clean, "x", "ab", "--format", "json")
        ((cells,),) = printed(paradigm.main, *query, *more)
        forms = re.findall(r'"form": "(.*?)"', cells)
        assert ({*"cd"} & {*"".join(forms)} == set()) == of_language
        files = ("-model", clean, "-src", source, "-output", tmp_path / "output")
        printed(
            translate.main,
            *files,
            "-exactness_report",
            report,
            *(w[1:] for w in more[:1]),
            *more[1:],
        )
        excluded[option] = json.loads(report.read_text(encoding="utf-8"))["excluded"]
    assert excluded[None] == excluded["any"] < excluded["language"]


@pytest.mark.parametrize("option", ["any", "language"])
@pytest.mark.parametrize("seen", ["a", "ab"])
def test_what_is_excluded_is_warned_of_and_never_only(tmp_path, option: str, seen: str) -> None:
    """A single output of those allowed is not the only one that the model can write."""
    folder = written(tmp_path / "model", seen={"lang=x": seen})
    transducer = Transducer(folder, n_best=0, max_length=LONGEST, target_symbols=option)
    (found,) = transducer.predictions([Query("a", ("V",), "x")])
    warned = any(text.startswith("excluded with symbols") for text in found.warnings)
    assert warned is (option == "language")


def test_the_only_allowed_output_is_not_called_the_only_one(model: Path, monkeypatch) -> None:
    """By a search that ended with one output and excluded others."""
    transducer = Transducer(model, n_best=0, max_length=LONGEST, target_symbols="language")
    (found,) = transducer.predictions([Query("a", ("V",), "x")])
    certificate = replace(found.certificate, level="exhaustive")
    single = found.outputs[:1], certificate, 1
    for name in ("_single", "_average"):
        monkeypatch.setattr(transducer, name, lambda answers: single)
    (again,) = transducer.predictions([Query("a", ("V",), "x")])
    assert not again.only
    monkeypatch.setattr(transducer, "_of_language", False)
    (again,) = transducer.predictions([Query("a", ("V",), "x")])
    assert again.only
