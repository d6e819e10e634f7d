"""`Inflector` and `onmt-entmax inflect`: answers of small models, and bad input."""

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
from onmt_entmax.inflector import Form, Inflection, InflectionError, Question
from onmt_entmax.report.output_lines import output_texts
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.strings.units import decode_word
from onmt_entmax.translator import Translator
from tests.commands import json_lines
from tests.ended import ended, refused
from tests.inflection_models import VOCABULARIES, write_model
from tests.models import words

WITHOUT_TAGS = words(("lang=ady", "a"), "a")
NORMAL = "the lemma is not in Unicode's normal form {}, in which training has {}: normalise it"
COMPOSED, DECOMPOSED = NORMAL.format("NFC", "ä"), NORMAL.format("NFD", "U+0308, o")


# --- from Python ---


def test_a_form_is_what_translating_the_source_gives(inflection_model: Path) -> None:
    answer = Inflector([inflection_model]).inflect("german", "a b", "V;PST")
    task = SearchTask(SearchConfig(beam_size=5))
    translator = Translator.from_folders([inflection_model], task)
    (translated,) = translator.answers(["lang=german +V +PST a ▁ b"])
    (form,) = answer.forms
    assert form.text == decode_word(output_texts(translated, 1)[0].split())
    assert form.prob == pytest.approx(translated.hypotheses[0].hypothesis.prob, abs=1e-6)
    assert answer.certificate.level == translated.result.certificate.level
    assert answer.warnings == ()


def test_tags_may_be_a_list(inflection_model: Path) -> None:
    inflector = Inflector([inflection_model])
    expected = inflector.inflect("german", "a b", "V;PST")
    assert inflector.inflect("german", "a b", ["V", "PST"]) == expected


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
def test_a_tag_that_is_near_is_named(
    tmp_path: Path, language: str, tags: str, warnings: list[str]
) -> None:
    """Among those that training saw in the language."""
    tokens = dict.fromkeys((*VOCABULARIES.source.tokens, "+V", "+PST", "+SBJV", "+SUBJ"))
    seen = {
        "lang=german": frozenset({"+V", "+PST", "+SBJV", "a"}),
        "lang=english": frozenset({"+V", "+PST", "+SUBJ", "a"}),
    }
    source = Vocabulary(tuple(tokens), seen)
    model = write_model(tmp_path / "tags", 3, Vocabularies(source, VOCABULARIES.target))
    assert list(Inflector([model]).inflect(language, "a", tags).warnings) == warnings


def test_without_a_model_it_names_the_pretrained_one() -> None:
    with pytest.raises(InflectionError, match=r"no model is named.*released.pretrained\(\)"):
        Inflector()


def test_a_form_that_never_ends_is_no_form(tmp_path: Path) -> None:
    endless = write_model(tmp_path / "endless", 1, end=-100)
    answer = Inflector([endless], max_length=5).inflect("german", "ab", "V")
    assert answer.forms == ()
    assert answer.level == "none"
    assert answer.warnings == ("no form ended within the length limit",)


def test_only_is_said_of_all_possible_forms_not_of_those_listed(tmp_path: Path) -> None:
    """With one form asked for, as by default."""
    model = write_model(tmp_path / "model", 3, end=4)
    questions = [Question("german", lemma, ("V",)) for lemma in ("a", "b", "ab", "ba", "bb")]
    everything = list(Inflector([model], 0).answers(questions))
    assert {answer.level for answer in everything} == {"only", "exhaustive"}
    for answer, all_forms in zip(Inflector([model]).answers(questions), everything, strict=True):
        assert len(answer.forms) == 1
        assert answer.only == (len(all_forms.forms) == 1)
        assert answer.level == all_forms.level


@pytest.fixture
def answers(inflection_model: Path, tmp_path: Path) -> dict[str, Inflection]:
    """Answers without a form, with several, and with an impossible one."""
    endless = write_model(tmp_path / "endless", 1, end=-100)
    several = Inflector([inflection_model], n_best=3).inflect("german", "ab", "V;PST")
    impossible = Form("b", -math.inf, 0.0)
    return {
        "none": Inflector([endless], max_length=5).inflect("german", "ab", "V"),
        "several": several,
        "impossible": replace(several, forms=(*several.forms, impossible)),
    }


@pytest.mark.parametrize("name", ["none", "several", "impossible"])
def test_an_answer_is_json(answers: dict[str, Inflection], name: str) -> None:
    """Which has neither infinity nor NaN."""
    answer = answers[name]
    content = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
    assert content == json.loads(as_json(answer)) == answer.to_dict()
    assert [form["form"] for form in content["forms"]] == [form.text for form in answer.forms]


def test_the_logarithm_of_an_impossible_form_is_null(answers: dict[str, Inflection]) -> None:
    forms = answers["impossible"].to_dict()["forms"]
    assert forms[-1] == {"form": "b", "prob": 0.0, "log_prob": None}


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
def test_a_lemma_in_other_letters_is_named(
    tmp_path: Path, lemma: str, warnings: tuple[str, ...]
) -> None:
    source = ("lang=german", "+V", "a", "b", "x", "o", "ä", "\u0308")
    model = write_model(tmp_path / "model", 3, words(source, "ab"), end=3)
    answer = Inflector([model]).inflect("german", lemma, "V")
    texts = tuple(text for text in answer.warnings if "its lemma" not in text)
    assert texts == warnings


@pytest.fixture
def mixed_scripts(tmp_path: Path) -> Inflection:
    """An answer with forms in Latin, in Cyrillic, and in both."""
    model = write_model(tmp_path / "model", 4, words(("lang=x", "+V", "a", "б"), "aб"), end=1)
    return Inflector([model], n_best=10, beam_size=10).inflect("x", "aa", "V")


def test_a_form_that_mixes_scripts_is_named(mixed_scripts: Inflection) -> None:
    """The best of them, with the number of others; so is a form in another script."""
    strange = [form.text for form in mixed_scripts.forms if "б" in form.text]
    assert len(strange) > len([text for text in strange if "a" in text]) > 1
    (warning,) = mixed_scripts.warnings
    assert warning.startswith(repr(strange[0]))
    assert warning.endswith(f" (and {len(strange) - 1} other forms)")


def test_a_warning_of_scripts_is_in_every_format(mixed_scripts: Inflection) -> None:
    (warning,) = mixed_scripts.warnings
    assert json.loads(as_json(mixed_scripts))["warnings"] == [warning]
    assert as_tsv(mixed_scripts).splitlines()[0].endswith(f"\t{warning}")


@pytest.fixture(params=["only language", "beside another language"])
def untagged(request: pytest.FixtureRequest, tmp_path: Path) -> Inflector:
    """A model of a language without tags, ady."""
    vocabularies = WITHOUT_TAGS
    if request.param == "beside another language":
        tokens = words(("lang=ady", "lang=x", "+V", "a"), "a").source.tokens
        seen = {"lang=ady": frozenset("a"), "lang=x": frozenset({"+V", "a"})}
        vocabularies = Vocabularies(Vocabulary(tuple(tokens), seen), WITHOUT_TAGS.target)
    return Inflector([write_model(tmp_path / "model", 3, vocabularies, end=3)])


def test_a_language_without_tags_is_queried_without(untagged: Inflector) -> None:
    assert untagged.untagged == ["ady"]
    answer = untagged.inflect("ady", "a", "")
    assert (answer.question.tags, answer.warnings) == ((), ())
    assert answer == untagged.inflect("ady", "a", ())


@pytest.mark.parametrize("untagged", ["beside another language"], indirect=True)
def test_a_language_with_tags_is_not_queried_without(untagged: Inflector) -> None:
    with pytest.raises(InflectionError, match="a tag is empty"):
        untagged.inflect("x", "a", "")


@pytest.mark.parametrize("untagged", ["only language"], indirect=True)
def test_tags_of_a_language_without_any_are_refused(untagged: Inflector) -> None:
    with pytest.raises(InflectionError, match="ady has none: leave them out"):
        untagged.inflect("ady", "a", "V")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (("germann", "a", "V"), "knows no language 'germann'; did you mean 'german'?"),
        (("geralt", "a", "V"), "knows no language 'geralt'; it knows english, german"),
        (("german", "", "V"), "the lemma is empty"),
        (("german", "a", "V;;PST"), "a tag is empty in 'V;;PST'"),
        (("german", "ab", "v;pst"), "no tag of 'v;pst'; did you mean V;PST?"),
        (("german", "ab", "V PST"), "no tag of 'V PST'; did you mean V;PST?"),
    ],
)
def test_a_malformed_query_is_refused_in_one_line(
    inflection_model: Path, query: tuple[str, str, str], message: str
) -> None:
    with pytest.raises(InflectionError) as raised:
        Inflector([inflection_model]).inflect(*query)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


# --- the command ---


def type_lines(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let the standard input have a text."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


@pytest.fixture
def rows(
    inflection_model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> list[list[str]]:
    """The columns that the command prints for two queries, in both forms of a line."""
    type_lines(monkeypatch, "english ab V;PST\n\ngerman\ta b\tV;FUT\r\n")
    assert ended(inflect.main, ["--n_best", "2", "--model", str(inflection_model)]) == 0
    return [line.split("\t") for line in capsys.readouterr().out.splitlines()]


def test_rows_have_the_query_and_the_rank(rows: list[list[str]]) -> None:
    assert {len(row) for row in rows} == {8}
    queries = list(dict.fromkeys(tuple(row[:3]) for row in rows))
    assert queries == [("english", "ab", "V;PST"), ("german", "a b", "V;FUT")]
    for query in queries:
        ranks = [row[3] for row in rows if tuple(row[:3]) == query]
        assert ranks in (["1"], ["1", "2"])


def test_rows_have_the_form_its_probability_and_the_certificate(
    rows: list[list[str]], inflection_model: Path
) -> None:
    best = Inflector([inflection_model], n_best=2).inflect("english", "ab", "V;PST")
    _, _, _, _, form, prob, level, _ = rows[0]
    assert form == best.forms[0].text
    assert float(prob) == pytest.approx(best.forms[0].prob, rel=1e-4)
    assert level == best.level


def test_rows_have_warnings(rows: list[list[str]]) -> None:
    (first, *_) = (row for row in rows if row[0] == "german")
    assert first[7] == "unknown tag FUT"


def test_the_first_warning_is_on_the_standard_error_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = {"lang=german": frozenset({"+V", "a"}), "lang=english": frozenset({"+V", "a", "b"})}
    source = Vocabulary(VOCABULARIES.source.tokens, seen)
    model = write_model(tmp_path / "model", 3, Vocabularies(source, VOCABULARIES.target))
    type_lines(monkeypatch, "german ab V\n" * 2)
    for query in (["english", "ab", "V"], ["german", "bab", "V"], []):
        assert ended(inflect.main, [*query, "--model", str(model)]) == 0
    captured = capsys.readouterr()
    one, two = "not seen in training for german: 'b'", "not seen in training for german: 'b' (2)"
    assert [line.split("\t")[7] for line in captured.out.splitlines()] == ["", two, one, one]
    assert captured.err == (f"warning: {two}\nwarning: ab: {one} (words with warnings: 2 of 2)\n")


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
def test_tags_that_a_shell_cut_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cells: str, tags: str, more: str
) -> None:
    model = write_model(tmp_path / "model", 22)
    (model / "cells.tsv").write_text(cells)
    (model / LIST_NAME).unlink()
    write_list(model)
    assert ended(inflect.main, ["german", "ab", tags, "--model", str(model)]) == 0
    warning = f"warning: no training source of german has the tag V alone{more}\n" if more else ""
    assert capsys.readouterr().err == warning


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ab", "V"], 'expected LANGUAGE LEMMA TAGS, found 2 words; quote tags: "V;PST"'),
        (["english", "ab", "V", "--input", "f"], "give a query or --input, not both"),
        (["english", "ab", "V", "--all", "--n_best", "3"], "--n_best: not allowed with"),
        (["germann", "ab", "V", "--model", "@"], "germann'; did you mean 'german'?"),
    ],
)
def test_a_command_line_that_is_no_query(
    inflection_model: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    words = [str(inflection_model) if word == "@" else word for word in arguments]
    assert ended(inflect.main, words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert message in line


def test_json_with_one_language_to_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_model(tmp_path / "model", 5, end=1)
    (tmp_path / "in.tsv").write_text("ab\tV;PST\nb\tV\n", encoding="utf-8")
    files = ["--input", str(tmp_path / "in.tsv"), "--output", str(tmp_path / "out.jsonl")]
    options = ["--language", "german", "--json", "--beam_size", "1", "--model", str(model)]
    assert ended(inflect.main, [*files, *options]) == 0
    assert capsys.readouterr().out == ""
    records = json_lines(tmp_path / "out.jsonl")
    questions = [Question("german", "ab", ("V", "PST")), Question("german", "b", ("V",))]
    answers = Inflector([model], n_best=1, beam_size=1).answers(questions)
    for record, answer in zip(records, answers, strict=True):
        (form,), proof = answer.forms, answer.certificate
        assert record == {
            "language": "german",
            "lemma": answer.question.lemma,
            "tags": [*answer.question.tags],
            "forms": [{"form": form.text, "prob": form.prob, "log_prob": form.log_prob}],
            "certificate": answer.level,
            "proven": proof.proven,
            "bound": proof.bound,
            "mass": proof.mass,
            "warnings": [],
        }
    assert 0 < records[0]["bound"] < records[0]["mass"] < 0.99  # no number is trivial


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("english a V\nenglish a\n", "standard input:2: expected language lemma tags"),
        ("english\ta\t\n", "standard input:1: a tag is empty in ''"),
        ("\n", "standard input: no queries"),
        ("english a V\nenglis a V\n", "standard input:2: the model knows no language 'englis'"),
    ],
)
def test_bad_lines_give_one_line_and_no_answer(
    inflection_model: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    type_lines(monkeypatch, text)
    assert message in refused(inflect.main, ["--model", inflection_model])


def test_a_person_is_answered_line_by_line(
    inflection_model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(io.BytesIO(b"english a\nenglish a V\n")))
    assert ended(inflect.main, ["--model", str(inflection_model)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("english\ta\tV\t1\t")
    hint, line = captured.err.splitlines()
    assert hint == "type language lemma tags, such as V;PST for tags; Ctrl-D ends"
    assert line.startswith("inflect.py: expected language lemma tags")
