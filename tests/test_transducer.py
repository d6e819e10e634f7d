"""`Transducer`: predictions and scores of models of strings, compared with enumeration."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax import Inflector, Query, Transducer, load, train_model
from onmt_entmax.data.batch import make_batch
from onmt_entmax.ensembles import make_stepper
from onmt_entmax.files.checksums import write_list
from onmt_entmax.inflector import InflectionError
from onmt_entmax.paradigm import Paradigm
from onmt_entmax.search import SearchConfig, SearchTask, score_targets
from onmt_entmax.strings.cells import cells_text
from onmt_entmax.strings.copying import PLACEHOLDERS
from onmt_entmax.strings.task import TRANSLATION
from onmt_entmax.transducer import Prediction, TransducerError
from onmt_entmax.translator import Translator
from tests.inflection_models import write_model
from tests.models import words
from tests.string_models import LETTERS, PHONES, task_options, write_phones

LONGEST = 3
UNKNOWN = "\ufffd"  # how a text shows `<unk>`


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_phones(tmp_path_factory.mktemp("phones") / "model", 3)


def all_texts(longest: int = LONGEST) -> list[str]:
    """Return all texts of so many phones, between spaces."""
    return [
        " ".join(phones)
        for length in range(longest + 1)
        for phones in itertools.product(PHONES, repeat=length)
    ]


def test_an_exhaustive_prediction_lists_every_text_of_positive_probability(model: Path) -> None:
    transducer = Transducer(model, n_best=0, beam_size=200, max_length=LONGEST)
    scores = {text: transducer.score("abd", text) for text in all_texts()}
    expected = {text: score for text, score in scores.items() if score > -math.inf}
    assert len(expected) > 5
    outputs = transducer.predict("abd").outputs
    listed = {output.text: output.log_prob for output in outputs if UNKNOWN not in output.text}
    assert listed == pytest.approx(expected, abs=1e-5)


def test_no_output_is_more_probable_than_1(model: Path) -> None:
    outputs = Transducer(model, n_best=0, beam_size=200, max_length=LONGEST).predict("abd").outputs
    assert all(output.log_prob <= 0 for output in outputs)


def test_a_score_of_models_with_the_same_vocabularies_is_that_of_the_prediction(
    model: Path, tmp_path: Path
) -> None:
    """They are averaged token by token."""
    others = [write_phones(tmp_path / str(seed), seed) for seed in (4, 5)]
    ensemble = Transducer([model, *others])
    best = ensemble.predict("abd").outputs[0]
    assert math.exp(ensemble.score("abd", best.text)) == pytest.approx(best.prob, abs=1e-6)


def test_a_score_of_both_directions_is_the_mean_of_probabilities(
    model: Path, tmp_path: Path
) -> None:
    """The two models of one direction count twice as much as the one of the other."""
    right_to_left = write_phones(tmp_path / "other", 4, target_order="right_to_left")
    third = write_phones(tmp_path / "third", 5)
    all_three = Transducer([model, right_to_left, third])
    two, one = Transducer([model, third]), Transducer(right_to_left)
    for text in all_texts(longest=2):
        expected = (2 * math.exp(two.score("abd", text)) + math.exp(one.score("abd", text))) / 3
        assert math.exp(all_three.score("abd", text)) == pytest.approx(expected, abs=1e-9)


def test_models_of_other_symbols_are_averaged_by_whole_texts(model: Path, tmp_path: Path) -> None:
    options = task_options(separators={"target": " "})
    other = write_model(tmp_path / "other", 4, words(LETTERS, (*PHONES, "x")), 2, options)
    both = Transducer([model, other], n_best=3, beam_size=50, max_length=2)
    for output in both.predict("abd").outputs:
        if UNKNOWN not in output.text:
            score = both.score("abd", output.text)
            assert math.log(output.prob) == pytest.approx(score, abs=1e-5)


def test_a_right_to_left_model_writes_the_same_text(tmp_path: Path) -> None:
    """A network's first token is the last of the text."""
    left, right = (
        Transducer(write_phones(tmp_path / order, 3, end=1, target_order=order), n_best=5)
        for order in ("left_to_right", "right_to_left")
    )
    for one, other in zip(left.predict("ab").outputs, right.predict("ab").outputs, strict=True):
        assert one.text.split(" ") == other.text.split(" ")[::-1]
        assert left.score("ab", one.text) == pytest.approx(right.score("ab", other.text))


def test_many_queries_are_predicted_like_each(model: Path) -> None:
    transducer = Transducer(model)
    queries = [Query("".join(letters)) for letters in itertools.product("abc", repeat=2)]
    predictions = list(transducer.predictions(iter(queries), batch_size=4))
    assert [prediction.query for prediction in predictions] == queries
    expected = [transducer.predict(query.source).text for query in queries]
    assert [prediction.text for prediction in predictions] == expected


class TestAPredictionWithoutOutput:
    """Of a model that never ends."""

    @pytest.fixture
    def prediction(self, tmp_path: Path) -> Prediction:
        endless = write_phones(tmp_path / "endless", 1, end=-100)
        return Transducer(endless, max_length=3).predict("ab<")

    def test_is_json(self, prediction: Prediction) -> None:
        """Which has no infinity."""
        content = json.loads(json.dumps(prediction.to_dict(), allow_nan=False))
        assert content["outputs"] == []
        assert content["source"] == "ab<"
        assert content["certificate"] == "none"
        assert "no output ended within the length limit" in content["warnings"]

    def test_is_a_table_for_notebooks(self, prediction: Prediction) -> None:
        assert "ab&lt;" in prediction._repr_html_()


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        ("", {}, "the source is empty"),
        ("ab", {"tags": "V;PST"}, "has tags, and the model reads none"),
        ("ab", {"language": "german"}, "'german' is the language of a query"),
    ],
)
def test_a_query_that_does_not_fit_the_task_is_refused(
    model: Path, source: str, more: dict[str, object], message: str
) -> None:
    with pytest.raises(TransducerError, match=message):
        Transducer(model).predict(source, **more)


def test_a_wrong_query_among_many_is_named(model: Path) -> None:
    with pytest.raises(TransducerError, match="query 2: the source is empty"):
        list(Transducer(model).predictions([Query("a"), Query("")]))


class TestLanguages:
    @pytest.fixture
    def transducer(self, tmp_path: Path) -> Transducer:
        return Transducer(write_model(tmp_path / "model", 22))

    def test_are_known_by_their_code(self, transducer: Transducer) -> None:
        assert transducer.predict("ab", "V", "deu").query == Query("ab", ("V",), "german")

    def test_that_are_misspelt_are_named(self, transducer: Transducer) -> None:
        with pytest.raises(TransducerError, match="no language 'germn'; did you mean 'german'"):
            transducer.predict("ab", "V", "germn")

    def test_are_required(self, transducer: Transducer) -> None:
        with pytest.raises(TransducerError, match="no language is named"):
            transducer.predict("ab", "V")


def test_models_of_different_tasks_are_refused(model: Path, tmp_path: Path) -> None:
    characters = write_model(tmp_path / "m", 3, words(LETTERS, "ab"), 2, task_options())
    with pytest.raises(TransducerError, match=r"different tasks; target: symbols between ' '"):
        Transducer([model, characters])


class TestWords:
    """A model of texts reads and writes words between white space."""

    @pytest.fixture
    def transducer(self, tmp_path: Path) -> Transducer:
        folder = write_model(tmp_path / "m", 3, words(("ein", "Haus"), ("a", "house")))
        return Transducer(folder, n_best=0, beam_size=50, max_length=2)

    def test_are_the_units_of_translation(self, transducer: Transducer) -> None:
        assert transducer.task == TRANSLATION

    def test_make_texts(self, transducer: Transducer) -> None:
        texts = {output.text for output in transducer.predict("ein Haus").outputs}
        assert len(texts) > 1
        assert {word for text in texts for word in text.split()} <= {"a", "house", "<unk>"}

    def test_may_have_any_white_space_between_them(self, transducer: Transducer) -> None:
        assert transducer.predict(" ein  Haus ").text == transducer.predict("ein Haus").text

    def test_are_scored_as_they_are_predicted(self, transducer: Transducer) -> None:
        best = transducer.predict("ein Haus").outputs[0]
        assert transducer.score("ein Haus", best.text) == pytest.approx(best.log_prob)


def test_an_impossible_target_has_no_probability(model: Path) -> None:
    assert Transducer(model).score("ab", "ʘ") == -math.inf


def test_a_target_with_an_empty_symbol_is_refused(model: Path) -> None:
    with pytest.raises(TransducerError, match="the target has an empty symbol"):
        Transducer(model).score("ab", "p  a")


class TestCopying:
    """Placeholders in the vocabularies of a model that nobody trained."""

    @pytest.fixture(scope="class")
    def folder(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        vocabularies = words(("a", "b", *PLACEHOLDERS[:3]), ("a", "b", "x", *PLACEHOLDERS[:3]))
        folder = tmp_path_factory.mktemp("copies") / "model"
        return write_model(folder, 11, vocabularies, 0, task_options(copy_frequency=2))

    def expected_texts(self, folder: Path, source: str) -> dict[str, float]:
        """Return the log-probability of each text of up to two symbols.

        By scoring all sequences of the tokens that the source allows: a symbol that it copies is
        written by its placeholder, and a placeholder stands for a symbol of it.
        """
        copied = [symbol for symbol in dict.fromkeys(source) if symbol not in "ab"][:3]
        stands_for = dict(zip(PLACEHOLDERS, copied, strict=False))
        model = load(folder)
        target = model.vocabularies.target
        allowed = [
            token
            for token in target.tokens
            if target.can_write(token)
            and token not in copied
            and (token in stands_for or token not in PLACEHOLDERS)
        ]
        outputs = [
            output for length in range(3) for output in itertools.product(allowed, repeat=length)
        ]
        task = SearchTask(SearchConfig(beam_size=1))
        reader = Translator([model], task).reader
        batch = make_batch([reader.encode(list(source)).example] * len(outputs), model.vocabularies)
        ids = [target.encode(output) for output in outputs]
        scores = score_targets(make_stepper([model], False, 1.0), batch, ids)
        texts = [
            "".join(stands_for.get(token, token) for token in output).replace("<unk>", UNKNOWN)
            for output in outputs
        ]
        return {
            text: score.log_prob
            for text, score in zip(texts, scores, strict=True)
            if score.log_prob > -math.inf
        }

    @pytest.mark.parametrize("source", ["ab", "axb", "xyx", "xyzw"])
    def test_texts_are_those_of_all_allowed_outputs(self, folder: Path, source: str) -> None:
        """Each text is of exactly one output, and has its probability."""
        prediction = Transducer(folder, n_best=0, beam_size=500, max_length=2).predict(source)
        assert prediction.certificate.dropped == 0
        log_probs = {output.text: output.log_prob for output in prediction.outputs}
        assert len(prediction.outputs) == len(log_probs) > 3
        assert log_probs == pytest.approx(self.expected_texts(folder, source), abs=1e-5)

    @pytest.mark.parametrize("source", ["ab", "axb", "xyx", "xyzw"])
    def test_texts_are_scored_as_they_are_predicted(self, folder: Path, source: str) -> None:
        transducer = Transducer(folder, n_best=0, beam_size=500, max_length=2)
        for output in transducer.predict(source).outputs:
            if UNKNOWN not in output.text:
                score = transducer.score(source, output.text)
                assert score == pytest.approx(output.log_prob, abs=1e-5)

    def test_a_copied_symbol_is_said_and_is_not_unknown(self, folder: Path) -> None:
        warnings = Transducer(folder).predict("a彁").warnings
        message = "a placeholder stands for the character 彁, which training had rarely or never"
        assert message in warnings
        assert not [text for text in warnings if "unknown" in text]

    def test_a_source_without_copied_symbols_gives_no_warning(self, folder: Path) -> None:
        assert not Transducer(folder).predict("ab").warnings

    def test_a_symbol_that_the_source_copies_has_the_probability_of_its_placeholder(
        self, folder: Path
    ) -> None:
        transducer = Transducer(folder)
        assert transducer.score("ax", "x") == pytest.approx(transducer.score("aw", "w"), abs=1e-6)
        assert transducer.score("a", "<copy1>") == -math.inf


def test_a_placeholder_that_the_source_lacks_is_no_output(tmp_path: Path) -> None:
    vocabularies = words(("a", *PLACEHOLDERS[:2]), ("a", *PLACEHOLDERS[:2]))
    options = task_options(separators={"source": " ", "target": " "}, copy_frequency=2)
    transducer = Transducer(write_model(tmp_path / "model", 8, vocabularies, 1, options))
    assert transducer.score("a x", "x") > -math.inf
    assert transducer.score("a x", "<copy2>") == -math.inf


def test_a_trained_model_copies_symbols_that_training_never_saw(tmp_path: Path) -> None:
    """All letters of the data are rare, so that the network learns to copy, in three lines."""
    letters = [chr(0x4E00 + number) for number in range(120)]
    pairs = [letters[n : n + 2] for n in range(0, 120, 2)]
    for name in ("train", "dev"):
        for side, order in (("src", 1), ("tgt", -1)):
            lines = (" ".join(pair[::order]) + "\n" for pair in pairs)
            (tmp_path / f"{name}.{side}").write_text("".join(lines), encoding="utf-8")
    corpus = "{{path_src: {0}/{1}.src, path_tgt: {0}/{1}.tgt}}".format
    (tmp_path / "train.yaml").write_text(
        f"data:\n  train: {corpus(tmp_path, 'train')}\n  valid: {corpus(tmp_path, 'dev')}\n"
        f"save_model: {tmp_path / 'model'}\ntask: {{columns: [source, target]}}\n"
        "copy_frequency: 5\nrnn_size: 16\nword_vec_size: 16\nlayers: 1\noptim: adam\n"
        "learning_rate: 0.02\ndropout: [0.0]\ngenerator_function: entmax15\nbatch_size: 20\n",
        encoding="utf-8",
    )
    steps = 60
    folder = train_model(
        tmp_path / "train.yaml", train_steps=steps, valid_steps=steps, save_checkpoint_steps=steps
    )
    transducer = Transducer(folder)
    assert transducer.task.copies
    prediction = transducer.predict("彁é")
    assert prediction.text == "é彁"
    score = transducer.score("彁é", "é彁")
    assert score == pytest.approx(prediction.outputs[0].log_prob, abs=1e-5)


class TestParadigm:
    @pytest.fixture(scope="class")
    def folder(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = write_model(tmp_path_factory.mktemp("paradigm") / "model", 4, end=4)
        cells = {"german": {("V",): 3, ("V", "PST"): 2}, "english": {("V", "PST"): 1}}
        (folder / "cells.tsv").write_text(cells_text(cells), encoding="utf-8")
        write_list(folder)
        return folder

    @pytest.fixture(scope="class")
    def paradigm(self, folder: Path) -> Paradigm:
        return Inflector(folder).paradigm("deu", "ab")

    def test_its_cells_have_all_forms_whatever_n_best_is(
        self, folder: Path, paradigm: Paradigm
    ) -> None:
        inflector = Inflector(folder, n_best=0, beam_size=10)
        for cell, tags in zip(paradigm.cells, ("V", "V;PST"), strict=True):
            assert cell.forms == inflector.inflect("german", "ab", tags).forms
        assert max(len(cell.forms) for cell in paradigm.cells) > 1
        assert paradigm.complete

    def cells_of(self, content: dict[str, Any]) -> list[dict[str, Any]]:
        return [cell for section in content["sections"] for cell in section["cells"]]

    def test_has_forms_within_the_length_limit(self, folder: Path) -> None:
        cells = Inflector(folder, max_length=1, budget=0).paradigm("deu", "ab").cells
        assert {len(form.text) for cell in cells for form in cell.forms} <= {0, 1}
        assert any(cell.certificate.truncated for cell in cells)

    def test_is_json_of_all_cells(self, paradigm: Paradigm) -> None:
        content = json.loads(json.dumps(paradigm.to_dict(), allow_nan=False))
        assert {cell["tags"] for cell in self.cells_of(content)} == {"V", "V;PST"}

    def test_is_json_of_the_first_forms(self, paradigm: Paradigm) -> None:
        cells, first = self.cells_of(paradigm.to_dict()), self.cells_of(paradigm.to_dict(1))
        assert [cell["forms"] for cell in first] == [cell["forms"][:1] for cell in cells]

    def test_is_a_table_for_notebooks_and_text(self, paradigm: Paradigm) -> None:
        assert "<table" in paradigm._repr_html_()
        assert paradigm.cells[0].forms[0].text in str(paradigm)

    class TestWithoutImprobableForms:
        @pytest.fixture(scope="class")
        def likely(self, paradigm: Paradigm) -> Paradigm:
            return paradigm.at_least(0.2)

        def test_has_the_probable_ones(self, paradigm: Paradigm, likely: Paradigm) -> None:
            for cell, whole in zip(likely.cells, paradigm.cells, strict=True):
                assert [*cell.forms] == [form for form in whole.forms if form.prob >= 0.2]

        def test_is_not_complete(self, likely: Paradigm) -> None:
            assert not likely.complete

        def test_counts_the_others(self, paradigm: Paradigm, likely: Paradigm) -> None:
            counts = [
                len(whole.forms) - len(cell.forms)
                for cell, whole in zip(likely.cells, paradigm.cells, strict=True)
            ]
            assert [cell.to_dict()["left_out"] for cell in likely.cells] == counts
            message = f"{sum(counts)} forms below 0.2 left out"
            assert message in str(likely)
            assert message in likely._repr_html_()

        def test_whole_ones_have_none_left_out(self, paradigm: Paradigm) -> None:
            assert "left out" not in str(paradigm) + paradigm._repr_html_()

        def test_adds_up_the_counts_if_it_is_cut_again(
            self, paradigm: Paradigm, likely: Paradigm
        ) -> None:
            assert likely.at_least(1).cells[0].left_out == len(paradigm.cells[0].forms)

    def test_a_language_without_cells_is_named(self, folder: Path) -> None:
        with pytest.raises(ValueError, match="no cells of the language 'klingon'"):
            Inflector(folder).paradigm("klingon", "ab")

    def test_a_part_of_speech_without_cells_is_named(self, folder: Path) -> None:
        with pytest.raises(ValueError, match="pos: german has V"):
            Inflector(folder).paradigm("german", "ab", "N")


class TestInflector:
    @pytest.fixture(scope="class")
    def inflector(self, tmp_path_factory: pytest.TempPathFactory) -> Inflector:
        return Inflector(write_model(tmp_path_factory.mktemp("inflector") / "model", 4, end=4))

    def test_is_a_transducer(self, inflector: Inflector) -> None:
        form = inflector.inflect("german", "ab", "V;PST").forms[0]
        assert inflector.predict("ab", "V;PST", "german").text == form.text
        score = inflector.score("ab", form.text, "V;PST", "german")
        assert score == pytest.approx(form.log_prob, abs=1e-5)

    def test_needs_a_lemma(self, inflector: Inflector) -> None:
        with pytest.raises(InflectionError, match="the lemma is empty"):
            inflector.inflect("german", " ", "V")


@pytest.mark.parametrize("sizes", [{"beam_size": 0}, {"beam_size": 0, "n_best": 3}, {"n_best": -1}])
def test_a_size_out_of_range_is_refused(tmp_path: Path, sizes: dict[str, object]) -> None:
    folder = write_phones(tmp_path / "model", 3)
    with pytest.raises(ValueError, match=f"{next(iter(sizes))}.*must be"):
        Transducer(folder, **sizes)
