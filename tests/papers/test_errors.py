"""`tools.papers.errors`: errors of words by kind, and of beam search against enumeration."""

import math
from pathlib import Path

import pytest

from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tests.ended import ended, refused
from tests.inflection_models import write_model
from tests.reports import record
from tools.papers import errors


def word(form: str, prediction: str, lemma: str = "lemma") -> errors.Word:
    return errors.Word("x", ("V",), lemma, form, prediction, "none", 0.5, form == prediction)


@pytest.mark.parametrize(
    ("form", "prediction", "kind"),
    [
        ("abc", "", 0),
        ("abc", "lemma", 1),
        ("ábc", "abc", 2),
        ("abc", "Abc", 3),
        ("abc", "abd", 4),
        ("abc", "bcd", 5),
        ("abc", "xyz", 6),
    ],
)
def test_kinds_of_errors(form: str, prediction: str, kind: int) -> None:
    assert errors.error_kind(word(form, prediction)) == errors.KINDS[kind]


def test_tables_of_words(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    queries = ["lang=x +V a b", "lang=x +V c", "lang=y +N a"]
    for name, lines in {
        "train.src": ["lang=x +V a b", "lang=y +V c"],
        "train.tgt": ["b a", "d"],
        "dev.src": queries,
        "dev.tgt": ["b a", "c d", "a"],
    }.items():
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    lines = [
        record(queries[0], "exhaustive", ("b a", 1.0)),
        record(queries[1], "optimal", ("c", 0.6), ("d", 0.3)),
        record(queries[2], "none", ("a", 0.2)),
    ]
    Path("report").write_text("\n".join(lines) + "\n")
    arguments = "words --train train --dev dev --report report".split()
    assert ended(errors.main, arguments) == 0
    text = capsys.readouterr().out
    assert text.startswith("3 words: 66.67 % right, 1 errors.")
    for line in (
        "| one form has all the probability | 1 | 100.0 | 0.0 |",
        "| the most probable form proven | 1 | 0.0 | 100.0 |",
        "| 0.5 to 0.7 | 1 | 0.0 | 100.0 |",
        "| 1 or 2 | 2 | 50.0 | 100.0 |",
        "| never | 1 | 100.0 | 0.0 |",
        "| unseen in its language | 2 | 50.0 | 100.0 |",
        "| the lemma itself | 1 | 100.0 |",
    ):
        assert line in text
    Path("report").write_text(lines[0] + "\n")
    assert "report: not of dev.src" in refused(errors.main, arguments)


def test_search_errors_are_those_of_the_most_probable_output(tmp_path: Path, capsys) -> None:
    model = write_model(tmp_path / "model", 5, end=0.5)
    sources = [f"lang=english +V {text}" for text in ("a", "b", "a b", "b a", "a a b", "b b")]
    (tmp_path / "src").write_text("".join(f"{line}\n" for line in sources))
    limit = {"max_length": 4}

    def best(width: int) -> list[float]:
        task = SearchTask(SearchConfig(width, **limit))
        answers = Translator.from_folders([model], task).answers(sources)
        return [a.hypotheses[0].hypothesis.log_prob if a.hypotheses else -math.inf for a in answers]

    missed = sum(one < all_ - 1e-5 for one, all_ in zip(best(1), best(500), strict=True))
    arguments = ["search", str(model), "--source", str(tmp_path / "src"), "--max_length", "4"]
    assert ended(errors.main, [*arguments, "--beam_size", "1"]) == 0
    text = capsys.readouterr().out
    assert f"| missed by the beam | {missed} |" in text
    assert "| beam 1 | of 6 |" in text
    assert ended(errors.main, [*arguments, "--beam_size", "500"]) == 0
    assert "| missed by the beam | 0 |" in capsys.readouterr().out
