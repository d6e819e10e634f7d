"""`onmt_entmax.inflection` and `onmt-entmax inflect`: answers of small models, and bad input."""

import io
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax import Inflector
from onmt_entmax.cli import inflect
from onmt_entmax.cli.inflect import as_json, as_tsv
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary
from onmt_entmax.files.checksums import LIST_NAME, write_list
from onmt_entmax.inflector import Form, InflectionError, Question
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.strings.units import decode_word
from onmt_entmax.translator import Translator
from tests.commands import json_lines
from tests.ended import ended, refused
from tests.inflection_models import VOCABULARIES, write_model
from tests.models import words

A = words(("lang=ady", "a"), "a")
NORMAL = "the lemma is not in Unicode's normal form {}, in which training has {}: normalise it"
COMPOSED, DECOMPOSED = NORMAL.format("NFC", "ä"), NORMAL.format("NFD", "U+0308, o")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("inflect") / "model", 22)


class TestInflector:
    def test_a_form_is_what_translating_the_source_gives(self, model):
        answer = Inflector([model]).inflect("german", "a b", "V;PST")
        task = SearchTask(SearchConfig(5))
        (translated,) = Translator.from_folders([model], task).answers(
            ["lang=german +V +PST a ▁ b"]
        )
        (form,) = answer.forms
        assert form.text == decode_word(translated.lines(1)[0].split())
        assert form.prob == pytest.approx(translated.hypotheses[0].hypothesis.prob, abs=1e-6)
        assert answer.certificate.level == translated.result.certificate.level
        assert answer.warnings == ()
        assert answer == Inflector([model]).inflect("german", "a b", ["V", "PST"])

    @pytest.mark.parametrize(
        ("language", "tags", "warnings"),
        [
            ("german", "V;SBVJ", ["unknown tag SBVJ (did you mean SBJV?)"]),
            ("german", "V;sbjv", ["unknown tag sbjv (did you mean SBJV?)"]),
            ("german", "V;SUBJ", ["not seen in training for german: '+SUBJ' (did you mean SBJV?)"]),
            (
                "english",
                "V;SBJV",
                ["not seen in training for english: '+SBJV' (did you mean SUBJ?)"],
            ),
            ("english", "V;SUBJ", []),
        ],
    )
    def test_a_tag_that_is_near_is_named(self, tmp_path, language, tags, warnings):
        """Among those that training saw in the language."""
        tokens = dict.fromkeys((*VOCABULARIES.source.tokens, "+V", "+PST", "+SBJV", "+SUBJ"))
        seen = {
            "lang=german": frozenset({"+V", "+PST", "+SBJV", "a"}),
            "lang=english": frozenset({"+V", "+PST", "+SUBJ", "a"}),
        }
        source = Vocabulary(tuple(tokens), seen)
        model = write_model(tmp_path / "tags", 3, Vocabularies(source, VOCABULARIES.target))
        assert list(Inflector([model]).inflect(language, "a", tags).warnings) == warnings

    def test_without_a_model_it_names_the_pretrained_one(self):
        with pytest.raises(InflectionError, match=r"no model is named.*released.pretrained\(\)"):
            Inflector()

    def test_a_form_that_never_ends_is_no_form(self, tmp_path):
        endless = write_model(tmp_path / "endless", 1, end=-100)
        answer = Inflector([endless], max_length=5).inflect("german", "ab", "V")
        assert answer.forms == ()
        assert answer.level == "none"
        assert answer.warnings == ("no form ended within the length limit",)

    def test_only_is_said_of_all_possible_forms_not_of_those_listed(self, tmp_path):
        """With one form asked for, as by default."""
        model = write_model(tmp_path / "model", 3, end=4)
        questions = [Question("german", lemma, ("V",)) for lemma in ("a", "b", "ab", "ba", "bb")]
        everything = list(Inflector([model], 0).answers(questions))
        assert {answer.level for answer in everything} == {"only", "exhaustive"}
        for answer, all_forms in zip(
            Inflector([model]).answers(questions), everything, strict=True
        ):
            assert len(answer.forms) == 1
            assert answer.only == (len(all_forms.forms) == 1)
            assert answer.level == all_forms.level

    def test_its_fields_are_json(self, tmp_path):
        """Also if nothing is known: JSON has neither infinity nor NaN."""
        endless = write_model(tmp_path / "endless", 1, end=-100)
        model = write_model(tmp_path / "model", 22)
        impossible = Form("b", -math.inf, 0.0)
        answers = [
            Inflector([endless], max_length=5).inflect("german", "ab", "V"),
            Inflector([model], 3).inflect("german", "ab", "V;PST"),
        ]
        answers.append(replace(answers[1], forms=(*answers[1].forms, impossible)))
        for answer in answers:
            content = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
            assert content == json.loads(as_json(answer)) == answer.to_dict()
            assert [each["form"] for each in content["forms"]] == [f.text for f in answer.forms]
        assert content["forms"][-1] == {"form": "b", "prob": 0.0, "log_prob": None}

    @pytest.mark.parametrize(
        ("lemma", "warnings"),
        [
            ("a", ()),
            ("ä", ()),
            ("a\u0308", (COMPOSED,)),  # training saw the accent on another letter
            ("x\u0308", ()),
            ("ö", ("unknown character ö", DECOMPOSED)),
            ("а", ("unknown character а",)),
            ("bа", ("unknown character а", "'bа' mixes scripts: Latin with Cyrillic а (U+0430)")),
        ],
    )
    def test_a_lemma_in_other_letters_is_named(self, tmp_path, lemma, warnings):
        source = ("lang=german", "+V", "a", "b", "x", "o", "ä", "\u0308")
        model = write_model(tmp_path / "model", 3, words(source, "ab"), end=3)
        answer = Inflector([model]).inflect("german", lemma, "V")
        texts = tuple(text for text in answer.warnings if "its lemma" not in text)
        assert texts == warnings

    def test_a_form_that_mixes_scripts_is_named(self, tmp_path):
        """The best that is listed, with the number of others; once, if it is the lemma too."""
        model = write_model(tmp_path / "model", 4, words(("lang=x", "+V", "a", "б"), "aб"), end=1)
        answer = Inflector([model], 10, 10).inflect("x", "aa", "V")
        mixed = [each.text for each in answer.forms if {"a", "б"} <= {*each.text}]
        strange = [each.text for each in answer.forms if "б" in each.text]
        assert 1 < len(mixed) < len(strange)
        first = strange[0]
        (warning,) = answer.warnings
        assert warning.startswith(repr(first))
        assert warning.endswith(f" (and {len(strange) - 1} other forms)")
        record = json.loads(as_json(answer))
        assert record["warnings"] == [warning]
        assert as_tsv(answer).splitlines()[0].endswith(f"\t{warning}")

    def test_a_language_without_tags_is_queried_without(self, tmp_path):
        tokens = ("lang=ady", "lang=x", "+V", "a")
        seen = {"lang=ady": frozenset("a"), "lang=x": frozenset({"+V", "a"})}
        source = Vocabulary((*words(tokens, "a").source.tokens,), seen)
        both = Inflector([write_model(tmp_path / "both", 3, Vocabularies(source, A.target), end=3)])
        alone = Inflector([write_model(tmp_path / "alone", 3, A, end=3)])
        assert (both.untagged, alone.untagged) == (["ady"], ["ady"])
        for inflector in (both, alone):
            answer = inflector.inflect("ady", "a", "")
            assert (answer.question.tags, answer.warnings) == ((), ())
            assert answer == inflector.inflect("ady", "a", ())
        with pytest.raises(InflectionError, match="a tag is empty"):
            both.inflect("x", "a", "")
        with pytest.raises(InflectionError, match="ady has none: leave them out"):
            alone.inflect("ady", "a", "V")

    @pytest.mark.parametrize(
        ("question", "message"),
        [
            (("germann", "a", "V"), "knows no language 'germann'; did you mean 'german'?"),
            (("geralt", "a", "V"), "knows no language 'geralt'; it knows english, german"),
            (("german", "", "V"), "the lemma is empty"),
            (("german", "a", "V;;PST"), "a tag is empty in 'V;;PST'"),
            (("german", "ab", "v;pst"), "no tag of 'v;pst'; did you mean V;PST?"),
            (("german", "ab", "V PST"), "no tag of 'V PST'; did you mean V;PST?"),
        ],
    )
    def test_a_question_that_cannot_be_asked(self, model, question, message):
        with pytest.raises(InflectionError) as raised:
            Inflector([model]).inflect(*question)
        assert message in str(raised.value)
        assert "\n" not in str(raised.value)


class TestCommand:
    def run(self, model: Path, capsys, monkeypatch, text: str, *more: str) -> list[str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert ended(inflect.main, [*more, "--model", str(model)]) == 0
        return capsys.readouterr().out.splitlines()

    def test_columns(self, model, capsys, monkeypatch):
        text = "english ab V;PST\n\ngerman\ta b\tV;FUT\r\n"
        lines = self.run(model, capsys, monkeypatch, text, "--n_best", "2")
        rows = [line.split("\t") for line in lines]
        assert {len(row) for row in rows} == {8}
        assert [row[3] for row in rows if row[0] == "english"] in (["1"], ["1", "2"])
        german = [row for row in rows if row[0] == "german"]
        assert german[0][1:3] == ["a b", "V;FUT"]
        assert german[0][7] == "unknown tag FUT"
        best = Inflector([model], 2).inflect("english", "ab", "V;PST")
        assert rows[0][4] == best.forms[0].text
        assert float(rows[0][5]) == pytest.approx(best.forms[0].prob, rel=1e-4)
        assert rows[0][6] == best.level

    def test_the_first_warning_is_on_the_standard_error_too(self, tmp_path, capsys, monkeypatch):
        seen = {"lang=german": frozenset({"+V", "a"}), "lang=english": frozenset({"+V", "a", "b"})}
        source = Vocabulary(VOCABULARIES.source.tokens, seen)
        model = write_model(tmp_path / "model", 3, Vocabularies(source, VOCABULARIES.target))
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"german ab V\n" * 2)))
        for query in (["english", "ab", "V"], ["german", "bab", "V"], []):
            assert ended(inflect.main, [*query, "--model", str(model)]) == 0
        captured = capsys.readouterr()
        said = [line.split("\t")[7] for line in captured.out.splitlines()]
        assert said == ["", "not seen in training for german: 'b' (2)"] + 2 * [
            "not seen in training for german: 'b'"
        ]
        assert captured.err == (
            f"warning: {said[1]}\nwarning: ab: {said[2]} (words with warnings: 2 of 2)\n"
        )

    @pytest.mark.parametrize(
        ("cells", "tags", "more"),
        [
            ("german\tV;PST\t3\n", "V", '; a shell needs quotes around tags, such as "V;PST"'),
            ("german\tV;PST\t3\ngerman\tV\t1\n", "V", ""),  # a cell
            ("german\tV;PST;SG\t3\n", "V;PST", ""),  # was quoted
            ("english\tV;PST\t3\n", "V", ""),
            ("damaged\n", "V", ""),
        ],
    )
    def test_tags_that_a_shell_cut_are_warned_of(self, tmp_path, capsys, cells, tags, more):
        model = write_model(tmp_path / "model", 22)
        (model / "cells.tsv").write_text(cells)
        (model / LIST_NAME).unlink()
        write_list(model)
        assert ended(inflect.main, ["german", "ab", tags, "--model", str(model)]) == 0
        said = f"warning: no training source of german has the tag V alone{more}\n" if more else ""
        assert capsys.readouterr().err == said

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["ab", "V"], 'expected LANGUAGE LEMMA TAGS, found 2 words; quote tags: "V;PST"'),
            (["english", "ab", "V", "--input", "f"], "give a query or --input, not both"),
            (["english", "ab", "V", "--all", "--n_best", "3"], "--n_best: not allowed with"),
            (["germann", "ab", "V", "--model", "@"], "germann'; did you mean 'german'?"),
        ],
    )
    def test_a_command_line_that_is_no_query(self, model, capsys, arguments, message):
        words = [str(model) if word == "@" else word for word in arguments]
        assert ended(inflect.main, words) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        (line,) = captured.err.splitlines()
        assert message in line

    def test_json_with_one_language_to_a_file(self, capsys, monkeypatch, tmp_path):
        model = write_model(tmp_path / "model", 5, end=1)
        (tmp_path / "in.tsv").write_text("ab\tV;PST\nb\tV\n", encoding="utf-8")
        files = ["--input", str(tmp_path / "in.tsv"), "--output", str(tmp_path / "out.jsonl")]
        more = [*files, "--language", "german", "--json", "--beam_size", "1"]
        assert self.run(model, capsys, monkeypatch, "", *more) == []
        answers = json_lines(tmp_path / "out.jsonl")
        questions = [Question("german", "ab", ("V", "PST")), Question("german", "b", ("V",))]
        for found, each in zip(answers, Inflector([model], 1, 1).answers(questions), strict=True):
            (form,), proof = each.forms, each.certificate
            assert found == {
                "language": "german", "lemma": each.question.lemma, "tags": [*each.question.tags],
                "forms": [{"form": form.text, "prob": form.prob, "log_prob": form.log_prob}],
                "certificate": each.level, "proven": proof.proven, "bound": proof.bound,
                "mass": proof.mass, "warnings": [],
            }  # fmt: skip
        assert 0 < answers[0]["bound"] < answers[0]["mass"] < 0.99

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("english a V\nenglish a\n", "standard input:2: expected language lemma tags"),
            ("english\ta\t\n", "standard input:1: a tag is empty in ''"),
            ("\n", "standard input: no queries"),
            ("english a V\nenglis a V\n", "standard input:2: the model knows no language 'englis'"),
        ],
    )
    def test_bad_lines_give_one_line_and_no_answer(self, model, monkeypatch, text, message):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert message in refused(inflect.main, ["--model", model])

    def test_a_person_is_answered_line_by_line(self, model, capsys, monkeypatch):
        class Terminal(io.TextIOWrapper):
            def isatty(self):
                return True

        monkeypatch.setattr("sys.stdin", Terminal(io.BytesIO(b"english a\nenglish a V\n")))
        assert ended(inflect.main, ["--model", str(model)]) == 0
        captured = capsys.readouterr()
        assert captured.out.startswith("english\ta\tV\t1\t")
        hint, line = captured.err.splitlines()
        assert hint == "type language lemma tags, such as V;PST for tags; Ctrl-D ends"
        assert line.startswith("inflect.py: expected language lemma tags")
