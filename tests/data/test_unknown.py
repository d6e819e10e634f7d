"""Tokens that a vocabulary does not have: what is counted, and which cause is named."""

from collections import Counter
from pathlib import Path

import pytest

from onmt_entmax.cli import report, serve, translate
from onmt_entmax.data.unknown import UnknownTokens, likely_cause, readable
from onmt_entmax.data.vocabulary import SOURCE_SPECIALS, TARGET_SPECIALS, Vocabularies, Vocabulary
from onmt_entmax.search import LineConstraints, SearchTask
from onmt_entmax.translator import TranslationError, Translator
from tests.inflection_models import write_model

LETTERS = Vocabulary((*SOURCE_SPECIALS, "lang=german", "+V", *"abcdeghilmnstuäö"))
NFD_LETTERS = Vocabulary((*SOURCE_SPECIALS, *"abcou", "\u0308"))
WORDS = Vocabulary((*SOURCE_SPECIALS, "ein", "haus", "schön", "a", "."))
SUBWORDS = Vocabulary((*SOURCE_SPECIALS, "ein", "￭es", "haus￭", "￭.", "b"))


@pytest.mark.parametrize(
    ("vocabulary", "unknown", "said"),
    [
        (LETTERS, ["\u0308", "\u0308", "?"], "marks stand alone"),
        (NFD_LETTERS, ["ö", "ü"], "normal form NFD"),
        (WORDS, ["scho\u0308n"], "normal form NFC"),
        (WORDS, ["ｈａｕｓ"], "normal form NFKC"),
        (WORDS, ["Ein", "Haus", "Mond"], "lower case"),
        (SUBWORDS, ["Hunde", "bellen."], "-transforms"),
        (SUBWORDS, ["Καλημέρα", "κόσμε"], "most have GREEK letters, the training data LATIN"),
        (SUBWORDS, ["Mal￭", "Dorothea", "esi"], None),  # split already
        (LETTERS, ["das", "ist", "genug", "Haus"], "reads characters"),
        (LETTERS, ["д", "о", "?"], "most have CYRILLIC letters, the training data LATIN"),
        (WORDS, ["дом", "мост"], "CYRILLIC"),
        (WORDS, ["h", "u", "s", "xyz"], "reads words"),
        (LETTERS, ["x", "?"], None),
        (LETTERS, ["<blank>"], None),  # no output has it, though the vocabulary does
        (LETTERS, ["\u0327"], None),  # a mark of no known letter
        (WORDS, ["mond", "?", "baum"], None),
        (WORDS, [], None),
    ],
)
def test_the_likely_cause(vocabulary: Vocabulary, unknown: list[str], said: str | None) -> None:
    cause = likely_cause(Counter(unknown), vocabulary)
    assert cause is None if said is None else cause is not None and said in cause


def test_splitting_is_no_cause_if_a_transform_has_split_the_text() -> None:
    for vocabulary, unknown in ((SUBWORDS, "Hunde"), (LETTERS, "das"), (WORDS, "h")):
        assert likely_cause({unknown: 1}, vocabulary) is not None
        assert likely_cause({unknown: 1}, vocabulary, split=True) is None
        counted = UnknownTokens()
        counted.add(9, (unknown,))
        assert counted.warnings(vocabulary, split=True)[0].endswith(f"instead of {unknown!r}")
    assert likely_cause({"д": 1}, WORDS, split=True) is not None


@pytest.mark.parametrize("split", [True, False])
def test_commands_know_whether_they_split_the_text(
    tmp_path: Path, capsys: pytest.CaptureFixture, split: bool
) -> None:
    options = {"transforms": ["onmt_tokenize"] if split else []}
    options |= {f"{side}_onmttok_kwargs": "{'mode': 'space'}" for side in ("src", "tgt")}
    target = Vocabulary((*TARGET_SPECIALS, "a", "a￭", "￭a"))
    model = write_model(tmp_path / "m", 1, Vocabularies(SUBWORDS, target), options=options)
    (tmp_path / "source").write_text("Hunde\n")
    files = ["-src", str(tmp_path / "source"), "-output", str(tmp_path / "output")]
    kept = str(tmp_path / "report")
    translate.main(["-model", str(model), *files, "-max_length", "3", "-exactness_report", kept])
    page = ["-report", kept, "-output", f"{kept}.html", "-details", "0"]
    report.main(["-model", str(model), *page])
    answered = serve.Answering(model, SearchTask()).answer({"sentence": "Hunde"})
    told = [line for line in capsys.readouterr().err.splitlines() if "unk" in line]
    translator = Translator.from_folders([model])
    with pytest.raises(TranslationError, match="'Hunde' is not in the target") as prefixed:
        list(translator.answers(["ein"], prefixes=["Hunde"]))
    with pytest.warns(UserWarning, match="no output has 'Hunde'") as constrained:
        list(translator.answers(["ein"], constraints=[LineConstraints((("Hunde",),))]))
    told += [str(prefixed.value), *(str(each.message) for each in constrained)]
    assert len(told) == 4
    for each in (*told, str(answered["causes"]["unknown"])):
        assert ("-transforms" in each) != split


def test_a_cause_explains_at_least_half_of_what_occurs() -> None:
    assert likely_cause({"д": 2, "?": 2}, LETTERS) is not None
    assert likely_cause({"д": 2, "?": 3}, LETTERS) is None


def test_a_stray_letter_of_a_vocabulary_is_not_its_script() -> None:
    many = Vocabulary((*SOURCE_SPECIALS, *(f"word{'x' * n}" for n in range(30)), "д"))
    cause = likely_cause({"дом": 1}, many)
    assert cause is not None
    assert cause.endswith("LATIN, CYRILLIC")


def test_one_line_names_tokens_and_shares() -> None:
    unknown = UnknownTokens()
    unknown.add(6, ())
    assert unknown.warnings(LETTERS) == []
    unknown.add(4, ("x", "?", "x"))
    assert unknown.warnings(LETTERS) == [
        "3 of 10 source tokens (30.00 %), in 1 of 2 lines, not in the source vocabulary: the model "
        "reads <unk> instead of 'x' (2), '?'"
    ]
    assert unknown.as_dict() == {
        "source_tokens": 10,
        "unknown_tokens": 3,
        "unknown_percent": 30.0,
        "unknown_sentences": 1,
        "unknown": {"x": 2, "?": 1},
        "unseen_tokens": 0,
    }


def test_a_long_list_is_cut_and_a_mark_is_named_by_its_number() -> None:
    unknown = UnknownTokens()
    unknown.add(12, [f"{n}?" for n in range(11)])
    (warning,) = unknown.warnings(LETTERS, "target")
    assert "11 of 12 target tokens (91.67 %) not in the target vocabulary" in warning
    assert "no output has '0?', " in warning
    assert " and 3 more; is the text in the language" in warning
    assert [readable(token) for token in ("\u0308", "ö", "")] == ["U+0308", "ö", ""]


SPANISH, RUSSIAN = "lang=spanish", "lang=russian"
SEVERAL = Vocabulary(
    (*SOURCE_SPECIALS, SPANISH, RUSSIAN, "+V", *"abíАбв", "\u0301"),
    {SPANISH: frozenset({"+V", *"abí"}), RUSSIAN: frozenset({"+V", *"Абв"})},
)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("lang=spanish +V a b í", None),
        ("lang=spanish +V a x", None),  # not known at all
        ("lang=french +V б", None),  # nothing is known of the language
        ("a б", None),
        ("", None),
        (
            "lang=spanish +V б в б",
            "3 of 5 source tokens not seen in training for spanish: 'б' (2), 'в'; "
            "most have CYRILLIC letters, the training data LATIN",
        ),
        ("lang=russian +V a", "for russian: 'a'; most have LATIN letters, the training data CYRI"),
        ("lang=spanish +V i \u0301", "for spanish: 'U+0301'; the letters' marks stand alone"),
        ("lang=russian +V А", None),
        ("lang=russian lang=spanish", "for russian: 'lang=spanish'"),
    ],
)
def test_tokens_that_training_saw_in_other_languages_alone(source: str, said: str | None) -> None:
    tokens, counted = source.split(), UnknownTokens()
    counted.add(len(tokens), (), SEVERAL.unseen(tokens))
    warnings = counted.warnings(SEVERAL)
    assert len(warnings) == (said is not None)
    assert said is None or said in warnings[0]


def test_tokens_of_several_languages_are_named_in_one_line() -> None:
    counted = UnknownTokens()
    counted.add(4, ("x",), ((SPANISH, "б"), (RUSSIAN, "a")))
    unknown, unseen = counted.warnings(SEVERAL)
    assert "not in the source vocabulary" in unknown
    assert unseen == "2 of 4 source tokens not seen in training for spanish, russian: 'б', 'a'"
    assert counted.as_dict()["unseen_tokens"] == 2


def test_old_reports_do_not_say_how_many_tokens_there_are() -> None:
    unknown = UnknownTokens()
    unknown.add(0, {"x": 2})
    assert unknown.percent == 100
