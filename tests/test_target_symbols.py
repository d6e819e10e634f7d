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
from tests.in_process import Main, exit_status
from tests.inflection_models import write_model
from tests.models import words
from tests.string_models import task_options

LANGUAGES = ("lang=x", "lang=y", "lang=z")
TARGET = "abcd"
SEEN = {"lang=x": "ab", "lang=y": "cd"}
SOURCES = ("lang=x +V a a", "lang=x +V d", "lang=y +V b c", "lang=z +V c")
LONGEST = 3
UNKNOWN = "\ufffd"  # how a text shows `<unk>`


def record_symbols(folder: Path, seen: dict[str, str] | None) -> Path:
    """Record the target symbols of languages in a folder, or none."""
    content = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    content.pop("seen_targets", None)
    if seen is not None:
        content["seen_targets"] = {name: " ".join(symbols) for name, symbols in seen.items()}
    (folder / "vocab.json").write_text(json.dumps(content), encoding="utf-8")
    write_list(folder)
    return folder


def write_letters(
    folder: Path, seed: int = 12, seen: dict[str, str] | None = SEEN, **options: object
) -> Path:
    """Write a random model of three languages, one of which records no symbols."""
    options = task_options(["source", "target", "tags"], **options)
    vocabularies = words([*LANGUAGES, "+V", *TARGET], TARGET)
    return record_symbols(write_model(folder, seed, vocabularies, 1, options), seen)


def write_copying_letters(folder: Path, seed: int) -> Path:
    """Write such a model that copies symbols; its source vocabulary lacks the last letter."""
    options = task_options(["source", "target", "tags"], copy_frequency=2)
    placeholders = PLACEHOLDERS[:2]
    source, target = [*LANGUAGES, "+V", *TARGET[:-1], *placeholders], [*TARGET, *placeholders]
    return record_symbols(write_model(folder, seed, words(source, target), 1, options), SEEN)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_letters(tmp_path_factory.mktemp("letters") / "model")


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Fail at warnings, which tests that expect one catch.

    All but those of the language without recorded symbols.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", ".*of z")
        yield


def allowed_symbols(source: str) -> set[str]:
    """Return the symbols of a source and its language; all outputs may have `<unk>`."""
    language, _, *units = source.split()
    return {*SEEN.get(language, TARGET), *units, "<unk>"}


def log_probs_of(translator: Translator, source: str) -> dict[tuple[str, ...], float]:
    """Return the log-probabilities of outputs, each as its symbols."""
    (answer,) = translator.answers([source])
    outputs = answer.hypotheses
    return {(*output.text.split(),): output.hypothesis.log_prob for output in outputs}


def translator_of(folder: Path, symbols: str, **more: object) -> Translator:
    """Return a translator that lists all outputs within the length limit."""
    config = SearchConfig(200, 0, LONGEST)
    return Translator.from_folders(folder, SearchTask(config, target_symbols=symbols, **more))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("method", ["beam", "enumerate"])
def test_outputs_are_those_of_allowed_symbols(model: Path, source: str, method: str) -> None:
    """With unchanged probabilities; a symbol of the source itself is allowed."""
    of_language = log_probs_of(translator_of(model, "language", method=method), source)
    of_any = log_probs_of(translator_of(model, "any", method=method), source)
    allowed = allowed_symbols(source)
    expected = {output: p for output, p in of_any.items() if {*output} <= allowed}
    assert of_language == pytest.approx(expected, abs=1e-5)
    assert len(expected) > 10


@pytest.mark.parametrize(("source", "fewer"), zip(SOURCES, (True, True, True, False), strict=True))
def test_a_language_of_recorded_symbols_has_fewer_outputs(
    model: Path, source: str, fewer: bool
) -> None:
    of_language = log_probs_of(translator_of(model, "language"), source)
    of_any = log_probs_of(translator_of(model, "any"), source)
    assert (len(of_language) < len(of_any)) is fewer


@pytest.mark.parametrize(
    ("source", "restricted_by"), zip(SOURCES, [("target_symbols",)] * 3 + [()], strict=True)
)
def test_the_option_restricts_languages_of_recorded_symbols(
    model: Path, source: str, restricted_by: tuple[str, ...]
) -> None:
    (answer,) = translator_of(model, "language").answers([source])
    assert answer.restricted_by == restricted_by


@pytest.mark.parametrize(("symbols", "possible"), [("any", True), ("language", False)])
def test_a_target_that_the_option_excludes_has_no_score(
    model: Path, symbols: str, possible: bool
) -> None:
    score = Transducer(model, target_symbols=symbols).score("aa", "cd", "V", "x")
    assert (score > -math.inf) is possible


@pytest.mark.parametrize("source", SOURCES[:3])
def test_excluded_outputs_count_as_excluded_probability(model: Path, source: str) -> None:
    """Each of them starts with an excluded prefix."""
    allowed = allowed_symbols(source)
    outputs = log_probs_of(translator_of(model, "any"), source).items()
    outside = sum(math.exp(p) for output, p in outputs if not {*output} <= allowed)
    assert outside > 0.01
    (of_any,) = translator_of(model, "any").answers([source])
    (of_language,) = translator_of(model, "language").answers([source])
    certificate = of_language.result.certificate
    assert certificate.excluded >= outside - 1e-6
    assert certificate.excluded > of_any.result.certificate.excluded
    assert certificate.mass + certificate.excluded <= 1 + 1e-6


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("beam_size", [1, 2, 5])
@pytest.mark.parametrize("method", ["beam", "exact"])
def test_certificates_are_about_allowed_outputs(
    model: Path, source: str, beam_size: int, method: str
) -> None:
    """Excluded outputs have at most the probability that the certificate says."""
    outputs = log_probs_of(translator_of(model, "any"), source)
    allowed = {output: p for output, p in outputs.items() if {*output} <= allowed_symbols(source)}
    config = SearchConfig(beam_size, max_length=LONGEST)
    task = SearchTask(config, method, verify=True, target_symbols="language")
    (answer,) = Translator.from_folders(model, task).answers([source])
    (best,), certificate = answer.hypotheses, answer.result.certificate
    output = (*best.text.split(),)
    assert output in allowed
    if certificate.level != "none":
        assert math.exp(allowed[output]) == pytest.approx(math.exp(max(allowed.values())), abs=1e-6)
        assert answer.verification.agrees
    excluded = max((p for output, p in outputs.items() if output not in allowed), default=-math.inf)
    bound = max(certificate.log_bound, certificate.log_excluded_bound)
    assert math.exp(excluded) <= math.exp(bound) + 1e-6


def test_samples_have_allowed_symbols(model: Path) -> None:
    source, config = SOURCES[0], SearchConfig(n_best=50, max_length=LONGEST)

    def sampled_symbols(target_symbols: str) -> set[str]:
        sampling = Sampling(topk=0, topp=0.99)
        task = SearchTask(config, sampling=sampling, target_symbols=target_symbols)
        (answer,) = Translator.from_folders(model, task).answers([source])
        return {symbol for sample in answer.samples for symbol in sample.text.split()}

    assert sampled_symbols("language") <= allowed_symbols(source)
    assert not sampled_symbols("any") <= allowed_symbols(source)


def test_a_symbol_that_is_copied_is_written_by_its_placeholder_alone(tmp_path: Path) -> None:
    """The source's own symbol, which is rare, stays excluded as itself."""
    model = write_copying_letters(tmp_path / "copying", 1)
    source = "lang=x +V d a"  # the source vocabulary lacks d
    translator = translator_of(model, "language")
    (answer,) = translator.answers([source])
    tokens = [
        translator.vocabularies.target.decode(output.hypothesis.tokens)
        for output in answer.hypotheses
    ]
    assert {*itertools.chain(*tokens)} - {"<unk>"} == {"a", "b", "<copy1>"}
    texts = [output.text for output in answer.hypotheses]
    assert len({*texts}) == len(texts)


class TestEnsembles:
    """All models exclude the same symbols, so that their mean is over the same texts."""

    @pytest.fixture(
        params=["left_to_right", "right_to_left"], ids=["token-level", "sequence-level"]
    )
    def transducer(self, request: pytest.FixtureRequest, tmp_path: Path) -> Transducer:
        """An ensemble of models with other symbols recorded; one of the two writes in an order."""
        folders = [
            write_letters(tmp_path / "model", 0, {"lang=x": "a", "lang=y": "c"}),
            write_letters(tmp_path / "other", 1, {"lang=x": "b"}, target_order=request.param),
        ]
        return Transducer(folders, 0, 200, LONGEST, budget=0, target_symbols="language")

    def symbols(self, transducer: Transducer, language: str) -> set[str]:
        outputs = transducer.predict("a", "V", language).outputs
        return {*"".join(output.text for output in outputs)} - {UNKNOWN}

    def test_have_the_symbols_of_any_of_their_models(self, transducer: Transducer) -> None:
        assert self.symbols(transducer, "x") == {*"ab"}

    def test_have_texts_with_symbols_of_both_models(self, transducer: Transducer) -> None:
        outputs = transducer.predict("a", "V", "x").outputs
        assert any({*"ab"} <= {*output.text} for output in outputs)

    def test_have_all_symbols_where_a_model_records_none(self, transducer: Transducer) -> None:
        with pytest.warns(UserWarning, match="does not record the target symbols of y"):
            symbols = self.symbols(transducer, "y")
        assert symbols == {*TARGET}


def warnings_of(work: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [str(warning.message) for warning in caught]


def test_a_language_without_recorded_symbols_is_warned_of_once(model: Path) -> None:
    transducer = Transducer(model, n_best=0, budget=0, target_symbols="language")
    queries = [Query("ab", ("V",), "z")] * 3

    def predict_twice() -> None:
        list(transducer.predictions(queries))
        list(transducer.predictions(queries))

    assert warnings_of(predict_twice) == [
        "target_symbols: the model does not record the target symbols of z: its outputs may have "
        "any"
    ]


def test_a_model_without_recorded_symbols_is_warned_of(tmp_path: Path) -> None:
    folder = write_letters(tmp_path / "old", seen=None)
    (line,) = warnings_of(
        lambda: Inflector(folder, target_symbols="language").inflect("x", "ab", "V")
    )
    assert re.search("old does not record .*: no symbols are excluded", line)


def test_a_model_without_recorded_symbols_gives_no_warning_if_all_are_allowed(
    tmp_path: Path,
) -> None:
    folder = write_letters(tmp_path / "old", seen=None)
    assert warnings_of(lambda: Transducer(folder).predict("ab", "V", "x")) == []


def test_a_folder_without_symbols_predicts_as_before(model: Path, tmp_path: Path) -> None:
    old = Transducer(write_letters(tmp_path / "old", seen=None))
    new = Transducer(model, target_symbols="any")
    for source in ("ab", "d"):
        assert old.predict(source, "V", "x") == new.predict(source, "V", "x")


# --- commands --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_languages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train with two languages: x has only a and b in its data, y only c and d."""
    folder = tmp_path_factory.mktemp("two-languages")
    for language, letters in (("x", "ab"), ("y", "cd")):
        lemmas = ["".join(pair) for pair in itertools.product(letters, repeat=2)]
        rows = "".join(f"{lemma}\t{lemma}{letters[0]}\tV\n" for lemma in lemmas)
        for split in ("train", "dev"):
            (folder / f"{language}-{split}").write_text(rows, encoding="utf-8")
    run = folder / "run"
    succeed("onmt_entmax", "prepare", "sigmorphon", "--data", folder, "--out", run)
    small = ("-train_steps", 2, "-rnn_size", 8, "-word_vec_size", 8, "-valid_steps", 2)
    succeed("onmt_entmax", "train", "-config", run / "train.yaml", *small)
    return run / "model"


@pytest.fixture(scope="module")
def exported(two_languages: Path) -> Path:
    folder = two_languages.parent / "exported"
    assert exit_status(export.main, [str(two_languages), str(folder)]) == 0
    return folder


def test_training_records_the_symbols_and_export_keeps_them(
    two_languages: Path, exported: Path
) -> None:
    for folder in (find_model(two_languages), exported):
        assert load(folder).vocabularies.target.seen == {
            "lang=x": frozenset("ab"),
            "lang=y": frozenset("cd"),
        }


Printed = Callable[..., list[list[str]]]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """Run a command and return the lines that it prints, as cells."""

    def run(main: Main, *arguments: object) -> list[list[str]]:
        capsys.readouterr()
        assert exit_status(main, [*map(str, arguments)]) == 0
        return [line.split("\t") for line in capsys.readouterr().out.splitlines()]

    return run


def has_symbols_of_y(outputs: str) -> bool:
    return bool({*"cd"} & {*outputs})


NO_OPTION: tuple[str, ...] = ()
options = pytest.mark.parametrize(
    ("option", "any_symbols"),
    [
        (NO_OPTION, True),
        (("--target_symbols", "any"), True),
        (("--target_symbols", "language"), False),
    ],
    ids=["default", "any", "language"],
)
SIZES = ("--n_best", 20, "--beam_size", 20)


@options
def test_predict_reads_the_symbols(
    exported: Path, tmp_path: Path, printed: Printed, option: tuple[str, ...], any_symbols: bool
) -> None:
    """A symbol of the source is allowed in any case."""
    table = tmp_path / "x.tsv"
    table.write_text("ab\t\tV\nc\t\tV\n", encoding="utf-8")
    rows = printed(predict.main, exported, table, *SIZES, *option)
    outputs = {lemma: "".join(row[1] for row in rows if row[0] == lemma) for lemma in ("ab", "c")}
    assert has_symbols_of_y(outputs["ab"]) is any_symbols
    assert "c" in outputs["c"]
    assert ("d" in outputs["c"]) is any_symbols


@options
def test_inflect_reads_the_symbols(
    exported: Path, printed: Printed, option: tuple[str, ...], any_symbols: bool
) -> None:
    rows = printed(inflect.main, "--model", exported, "x", "ab", "V", *SIZES, *option)
    assert has_symbols_of_y("".join(row[4] for row in rows)) is any_symbols


@options
def test_paradigm_reads_the_symbols(
    exported: Path, printed: Printed, option: tuple[str, ...], any_symbols: bool
) -> None:
    query = ("--model", exported, "x", "ab", "--format", "json")
    ((text,),) = printed(paradigm.main, *query, *option)
    assert has_symbols_of_y("".join(re.findall(r'"form": "(.*?)"', text))) is any_symbols


def test_translate_reads_the_symbols(exported: Path, tmp_path: Path, printed: Printed) -> None:
    source, report = tmp_path / "source", tmp_path / "report"
    source.write_text("lang=x +V a b\n", encoding="utf-8")
    files = ("-src", source, "-output", tmp_path / "output", "-exactness_report", report)

    def excluded(*option: str) -> float:
        printed(translate.main, "-model", exported, *files, *option)
        return json.loads(report.read_text(encoding="utf-8"))["excluded"]

    assert excluded() == excluded("-target_symbols", "any")
    assert excluded() < excluded("-target_symbols", "language")


# --- a single output -------------------------------------------------------------------------


@pytest.mark.parametrize(("option", "warned"), [("any", False), ("language", True)])
@pytest.mark.parametrize("seen", ["a", "ab"])
def test_excluded_probability_is_warned_of(
    tmp_path: Path, option: str, warned: bool, seen: str
) -> None:
    """A single output of those allowed is not the only one that the model can write."""
    folder = write_letters(tmp_path / "model", seen={"lang=x": seen})
    transducer = Transducer(folder, n_best=0, max_length=LONGEST, target_symbols=option)
    (prediction,) = transducer.predictions([Query("a", ("V",), "x")])
    warnings = [text for text in prediction.warnings if text.startswith("excluded with symbols")]
    assert bool(warnings) is warned


def test_the_only_allowed_output_is_not_called_the_only_one(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a search that ended with one output and excluded others; random models have more.

    So this replaces the result inside the transducer.
    """
    transducer = Transducer(model, n_best=0, max_length=LONGEST, target_symbols="language")
    query = Query("a", ("V",), "x")
    (prediction,) = transducer.predictions([query])
    certificate = replace(prediction.certificate, level="exhaustive")
    for name in ("_single", "_average"):
        single = prediction.outputs[:1], certificate, 1
        monkeypatch.setattr(transducer, name, lambda _, single=single: single)
    (of_language,) = transducer.predictions([query])
    assert not of_language.only
    monkeypatch.setattr(transducer, "_of_language", False)
    (of_any,) = transducer.predictions([query])
    assert of_any.only
