"""`Transducer`: predictions and scores of models of strings, compared with enumeration."""

import itertools
import json
import math
from pathlib import Path

import pytest

from onmt_entmax import Inflector, Query, Transducer, load, train_model
from onmt_entmax.data.batch import make_batch
from onmt_entmax.files.checksums import write_list
from onmt_entmax.inflector import InflectionError
from onmt_entmax.search import score_targets
from onmt_entmax.strings.cells import cells_text
from onmt_entmax.strings.copying import PLACEHOLDERS
from onmt_entmax.strings.task import TRANSLATION
from onmt_entmax.transducer import TransducerError
from onmt_entmax.translator import make_stepper
from tests.inflection_models import write_model
from tests.models import words
from tests.string_models import LETTERS, PHONES, task_options, write_phones

LONGEST = 3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_phones(tmp_path_factory.mktemp("phones") / "model", 3)


def every(phones: tuple[str, ...] = PHONES, longest: int = LONGEST) -> list[str]:
    """All texts of so many phones, between spaces."""
    return [
        " ".join(some)
        for length in range(longest + 1)
        for some in itertools.product(phones, repeat=length)
    ]


def test_an_exhaustive_prediction_lists_every_text_of_positive_probability(model) -> None:
    transducer = Transducer(model, n_best=0, beam_size=200, max_length=LONGEST)
    found = transducer.predict("abd")
    scores = {text: transducer.score("abd", text) for text in every()}
    expected = {text: score for text, score in scores.items() if score > -math.inf}
    assert len(expected) > 5
    listed = {each.text: each.log_prob for each in found.outputs if "\ufffd" not in each.text}
    assert listed.keys() == expected.keys()
    for text, log_prob in listed.items():
        assert log_prob == pytest.approx(expected[text], abs=1e-5)
        assert log_prob <= 0


@pytest.mark.parametrize("same", [True, False], ids=["token-level", "sequence-level"])
def test_a_score_of_an_ensemble_is_the_mean_of_probabilities(model, tmp_path, same) -> None:
    """Of tokens with the same vocabularies, of texts with others or of both directions."""
    right = {} if same else {"target_order": "right_to_left"}
    other = write_phones(tmp_path / "other", 4, **right)
    third = write_phones(tmp_path / "third", 5)
    both = Transducer([model, other, third])
    if same:
        texts = [each.text for each in both.predict("abd").outputs]
        assert math.exp(both.score("abd", texts[0])) == pytest.approx(
            both.predict("abd").outputs[0].prob, abs=1e-6
        )
        return
    token_level = Transducer([model, third])
    for text in every(longest=2):
        parts = (2 / 3, token_level), (1 / 3, Transducer(other))
        expected = sum(weight * math.exp(each.score("abd", text)) for weight, each in parts)
        assert math.exp(both.score("abd", text)) == pytest.approx(expected, abs=1e-9)


def test_models_of_other_symbols_are_averaged_by_whole_texts(model, tmp_path) -> None:
    options = task_options(separators={"target": " "})
    other = write_model(tmp_path / "other", 4, words(LETTERS, (*PHONES, "x")), 2, options)
    both = Transducer([model, other], n_best=3, beam_size=50, max_length=2)
    for output in both.predict("abd").outputs:
        if "\ufffd" not in output.text:
            score = both.score("abd", output.text)
            assert math.log(output.prob) == pytest.approx(score, abs=1e-5)


def test_a_right_to_left_model_writes_the_same_text(tmp_path) -> None:
    """A network's first token is the last of the text."""
    folders = {
        order: write_phones(tmp_path / order, 3, end=1, target_order=order)
        for order in ("left_to_right", "right_to_left")
    }
    left, right = (Transducer(each, n_best=5) for each in folders.values())
    for one, other in zip(left.predict("ab").outputs, right.predict("ab").outputs, strict=True):
        assert one.text.split(" ") == other.text.split(" ")[::-1]
        assert left.score("ab", one.text) == pytest.approx(right.score("ab", other.text))


def test_many_queries_are_predicted_like_each(model) -> None:
    transducer = Transducer(model)
    queries = [Query("".join(letters)) for letters in itertools.product("abc", repeat=2)]
    found = list(transducer.predictions(iter(queries), batch_size=4))
    assert [each.query for each in found] == queries
    assert [each.text for each in found] == [transducer.predict(q.source).text for q in queries]


def test_results_are_json_and_tables_for_notebooks(tmp_path) -> None:
    """Also if nothing finished: JSON has no infinity."""
    endless = write_phones(tmp_path / "endless", 1, end=-100)
    found = Transducer(endless, max_length=3).predict("ab<")
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["outputs"] == []
    assert content["source"] == "ab<"
    assert content["certificate"] == "none"
    assert "no output ended within the length limit" in content["warnings"]
    assert "ab&lt;" in found._repr_html_()


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        ("", {}, "the source is empty"),
        ("ab", {"tags": "V;PST"}, "has tags, and the model reads none"),
        ("ab", {"language": "german"}, "'german' is the language of a query"),
    ],
)
def test_a_query_that_the_task_has_not(model, source, more, message) -> None:
    with pytest.raises(TransducerError, match=message):
        Transducer(model).predict(source, **more)


def test_a_wrong_query_among_many_is_named(model) -> None:
    with pytest.raises(TransducerError, match="query 2: the source is empty"):
        list(Transducer(model).predictions([Query("a"), Query("")]))


def test_a_language_is_known_by_its_code(tmp_path) -> None:
    transducer = Transducer(write_model(tmp_path / "model", 22))
    assert transducer.predict("ab", "V", "deu").query == Query("ab", ("V",), "german")
    with pytest.raises(TransducerError, match="no language 'germn'; did you mean 'german'"):
        transducer.predict("ab", "V", "germn")
    with pytest.raises(TransducerError, match="no language is named"):
        transducer.predict("ab", "V")


def test_models_of_different_tasks_are_refused(model, tmp_path) -> None:
    characters = write_model(tmp_path / "m", 3, words(LETTERS, "ab"), 2, task_options())
    with pytest.raises(TransducerError, match=r"different tasks; target: symbols between ' '"):
        Transducer([model, characters])


def test_text_is_words_between_white_space(tmp_path) -> None:
    folder = write_model(tmp_path / "m", 3, words(("ein", "Haus"), ("a", "house")))
    transducer = Transducer(folder, n_best=0, beam_size=50, max_length=2)
    assert transducer.task == TRANSLATION
    found = transducer.predict("ein Haus")
    texts = {each.text for each in found.outputs}
    assert len(texts) > 1
    assert {word for text in texts for word in text.split()} <= {"a", "house", "<unk>"}
    assert found.text == transducer.predict(" ein  Haus ").text
    assert transducer.score("ein Haus", found.text) == pytest.approx(found.outputs[0].log_prob)


def test_an_impossible_target_has_no_probability(model) -> None:
    transducer = Transducer(model)
    assert transducer.score("ab", "ʘ") == -math.inf
    with pytest.raises(TransducerError, match="the target has an empty symbol"):
        transducer.score("ab", "p  a")


class TestCopying:
    """Placeholders in the vocabularies of a model that nobody trained."""

    @pytest.fixture(scope="class")
    def folder(self, tmp_path_factory) -> Path:
        vocabularies = words(("a", "b", *PLACEHOLDERS[:3]), ("a", "b", "x", *PLACEHOLDERS[:3]))
        folder = tmp_path_factory.mktemp("copies") / "model"
        return write_model(folder, 11, vocabularies, 0, task_options(copy_frequency=2))

    @pytest.mark.parametrize("source", ["ab", "axb", "xyx", "xyzw"])
    def test_texts_are_those_of_all_allowed_outputs(self, folder, source) -> None:
        """Each text of exactly one output, with its probability."""
        copied = [c for c in dict.fromkeys(source) if c not in "ab"][:3]
        stands_for = dict(zip(PLACEHOLDERS, copied, strict=False))
        loaded = load(folder)
        target = loaded.vocabularies.target
        allowed = [
            token
            for token in target.tokens
            if target.can_write(token)
            and token not in copied
            and (token in stands_for or token not in PLACEHOLDERS)
        ]
        outputs = [
            some for length in range(3) for some in itertools.product(allowed, repeat=length)
        ]
        transducer = Transducer(loaded, n_best=0, beam_size=500, max_length=2)
        reader = transducer._ensembles[0].translator.reader
        example = reader.encode(list(source)).example
        batch = make_batch([example] * len(outputs), loaded.vocabularies)
        scores = score_targets(
            make_stepper([loaded], False, 1.0), batch, [target.encode(some) for some in outputs]
        )
        expected = {
            "".join(stands_for.get(token, token) for token in some).replace("<unk>", "\ufffd"): (
                score.log_prob
            )
            for some, score in zip(outputs, scores, strict=True)
            if score.log_prob > -math.inf
        }
        found = transducer.predict(source)
        assert found.certificate.dropped == 0
        texts = [each.text for each in found.outputs]
        assert len(texts) == len(set(texts)) > 3
        assert set(texts) == expected.keys()
        for each in found.outputs:
            assert each.log_prob == pytest.approx(expected[each.text], abs=1e-5)
            assert "\ufffd" in each.text or (
                transducer.score(source, each.text) == pytest.approx(each.log_prob, abs=1e-5)
            )

    def test_what_is_copied_is_said_and_is_not_unknown(self, folder) -> None:
        warnings = Transducer(folder).predict("a彁").warnings
        said = "a placeholder stands for the character 彁, which training had rarely or never"
        assert said in warnings
        assert not [text for text in warnings if "unknown" in text]
        assert not Transducer(folder).predict("ab").warnings

    def test_a_symbol_that_the_source_copies_has_the_probability_of_its_placeholder(
        self, folder
    ) -> None:
        transducer = Transducer(folder)
        assert transducer.score("ax", "x") == pytest.approx(transducer.score("aw", "w"), abs=1e-6)
        assert transducer.score("a", "<copy1>") == -math.inf


def test_a_placeholder_that_the_source_lacks_is_no_output(tmp_path) -> None:
    vocabularies = words(("a", *PLACEHOLDERS[:2]), ("a", *PLACEHOLDERS[:2]))
    options = task_options(separators={"source": " ", "target": " "}, copy_frequency=2)
    transducer = Transducer(write_model(tmp_path / "model", 8, vocabularies, 1, options))
    assert transducer.score("a x", "x") > -math.inf
    assert transducer.score("a x", "<copy2>") == -math.inf


def test_a_trained_model_copies_symbols_that_training_never_saw(tmp_path) -> None:
    """All letters of the data are rare, so that the network learns to copy, in three lines."""
    letters = [chr(0x4E00 + number) for number in range(120)]
    pairs = [letters[n : n + 2] for n in range(0, 120, 2)]
    for name in ("train", "dev"):
        for side, turn in (("src", 1), ("tgt", -1)):
            lines = (" ".join(pair[::turn]) + "\n" for pair in pairs)
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
    found = transducer.predict("彁é")
    assert found.text == "é彁"
    assert transducer.score("彁é", "é彁") == pytest.approx(found.outputs[0].log_prob, abs=1e-5)


class TestParadigm:
    @pytest.fixture(scope="class")
    def folder(self, tmp_path_factory) -> Path:
        folder = write_model(tmp_path_factory.mktemp("paradigm") / "model", 4, end=4)
        cells = {"german": {("V",): 3, ("V", "PST"): 2}, "english": {("V", "PST"): 1}}
        (folder / "cells.tsv").write_text(cells_text(cells), encoding="utf-8")
        write_list(folder)
        return folder

    def test_its_cells_have_all_forms_whatever_n_best_is(self, folder) -> None:
        paradigm = Inflector(folder).paradigm("deu", "ab")
        everything = Inflector(folder, n_best=0, beam_size=10)
        for cell, tags in zip(paradigm.cells, ("V", "V;PST"), strict=True):
            assert cell.forms == everything.inflect("german", "ab", tags).forms
        assert max(len(cell.forms) for cell in paradigm.cells) > 1
        assert paradigm.complete
        content = json.loads(json.dumps(paradigm.to_dict(), allow_nan=False))
        shown = [cell for section in content["sections"] for cell in section["cells"]]
        assert {cell["tags"] for cell in shown} == {"V", "V;PST"}
        first = [cell for each in paradigm.to_dict(1)["sections"] for cell in each["cells"]]
        assert [cell["forms"] for cell in first] == [cell["forms"][:1] for cell in shown]
        assert "<table" in paradigm._repr_html_()
        assert paradigm.cells[0].forms[0].text in str(paradigm)

    def test_without_improbable_forms_it_is_not_complete(self, folder) -> None:
        paradigm = Inflector(folder).paradigm("deu", "ab")
        likely = paradigm.at_least(0.2)
        forms = [[form for form in cell.forms if form.prob >= 0.2] for cell in paradigm.cells]
        assert [[*cell.forms] for cell in likely.cells] == forms
        left_out = [
            len(cell.forms) - len(some) for cell, some in zip(paradigm.cells, forms, strict=True)
        ]
        assert [cell.to_dict()["left_out"] for cell in likely.cells] == left_out
        assert not likely.complete
        said = f"{sum(left_out)} forms below 0.2 left out"
        assert said in str(likely)
        assert said in likely._repr_html_()
        assert "left out" not in str(paradigm) + paradigm._repr_html_()
        # Cut again, the counts add up.
        assert likely.at_least(1).cells[0].left_out == len(paradigm.cells[0].forms)

    def test_a_language_without_cells_is_named(self, folder) -> None:
        with pytest.raises(ValueError, match="no cells of the language 'klingon'"):
            Inflector(folder).paradigm("klingon", "ab")
        with pytest.raises(ValueError, match="pos: german has V"):
            Inflector(folder).paradigm("german", "ab", "N")

    def test_an_inflector_is_a_transducer(self, folder) -> None:
        inflector = Inflector(folder)
        form = inflector.inflect("german", "ab", "V;PST").forms[0]
        assert inflector.predict("ab", "V;PST", "german").text == form.text
        score = inflector.score("ab", form.text, "V;PST", "german")
        assert score == pytest.approx(form.log_prob, abs=1e-5)
        with pytest.raises(InflectionError, match="the lemma is empty"):
            inflector.inflect("german", " ", "V")


@pytest.mark.parametrize("sizes", [{"beam_size": 0}, {"beam_size": 0, "n_best": 3}, {"n_best": -1}])
def test_a_size_out_of_range_is_refused(tmp_path, sizes) -> None:
    folder = write_phones(tmp_path / "model", 3)
    with pytest.raises(ValueError, match=f"{next(iter(sizes))}.*must be"):
        Transducer(folder, **sizes)
