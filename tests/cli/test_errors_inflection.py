"""`tools/errors_inflection.py`: kinds of words and errors, the page, and bad input."""

import json
from pathlib import Path

import pytest

from onmt_entmax.data.inflection import encode_source, encode_word
from tests.commands import run
from tests.ended import ended, refused
from tools import errors_inflection
from tools.errors_inflection import (
    Training,
    Word,
    certificate_kind,
    character_kind,
    confusions,
    error_kind,
    lemma_kind,
    place_kind,
    probability_kind,
    tags_kind,
)


def word(form: str, prediction: str, lemma: str = "gehen", **more: object) -> Word:
    values = {"language": "german", "tags": ("V", "PST"), "level": "only", "prob": 1.0, **more}
    return Word(lemma=lemma, form=form, prediction=prediction, **values)


@pytest.fixture
def training() -> Training:
    training = Training()
    training.add("german", ("V", "PST"), "gehen", "ging")
    training.add("german", ("V", "NFIN"), "gehen", "gehen")
    training.add("french", ("V", "PST"), "aimer", "aimé")
    for _ in range(29):
        training.add("french", ("V", "PST"), "xyz", "xyz")
    return training


@pytest.mark.parametrize(
    ("form", "prediction", "kind"),
    [
        ("ging", "", "nothing predicted"),
        ("ging", "gehen", "the lemma itself"),
        ("geht", "ging", "another form of the lemma that training has"),
        ("zöge", "zoge", "accents and other marks only"),
        ("é", "e\u0300", "accents and other marks only"),
        ("Ging", "ging!"[:-1].upper(), "small and capital letters only"),
        ("gingst", "gingt", "one character missing"),
        ("gingt", "gingd", "one character another"),
        ("gingt", "gingtt", "one character too many"),
        ("gingt", "gixgd", "two characters"),
        ("gingt", "geht", "three characters or more"),
    ],
)
def test_kinds_of_errors(training, form, prediction, kind):
    assert error_kind(word(form, prediction), training).split(" ", 1)[1] == kind


def test_kinds_of_words(training):
    assert character_kind(word("ging", "ging"), training).startswith("0")
    assert character_kind(word("gimg", "ging"), training).startswith("1")  # French has an m
    assert character_kind(word("göng", "ging"), training).startswith("2")
    assert lemma_kind(word("ging", "ging"), training).startswith("0")
    assert lemma_kind(word("ging", "ging", language="french"), training).startswith("1")
    counts = {("german", ("V", "PST")): "3 1 or 2", ("french", ("V", "PST")): "0 30 or more"}
    counts["french", ("V",)] = "4 never"
    for (language, tags), kind in counts.items():
        assert tags_kind(word("a", "b", language=language, tags=tags), training) == kind
    kinds = [certificate_kind(word("a", "a", level=level)) for level in ("only", "none", "optimal")]
    assert [kind[0] for kind in kinds] == ["0", "3", "2"]


@pytest.mark.parametrize(
    ("count", "kind"),
    [
        *[(0, "4 never"), (1, "3 1 or 2"), (2, "3 1 or 2"), (3, "2 3 to 9"), (9, "2 3 to 9")],
        *[(10, "1 10 to 29"), (29, "1 10 to 29"), (30, "0 30 or more")],
    ],
)
def test_how_often_tags_were_trained(count, kind):
    training = Training()
    for _ in range(count):
        training.add("german", ("V", "PST"), "gehen", "ging")
    training.add("french", ("V", "PST"), "aimer", "aimé")  # of another language
    assert tags_kind(word("sah", "sah"), training) == kind


@pytest.mark.parametrize(
    ("prob", "kind"),
    [
        *[(1.0, "0 0.9 or more"), (0.9, "0 0.9 or more"), (0.899, "1 0.7 to 0.9")],
        *[(0.5, "2 0.5 to 0.7"), (0.3, "3 0.3 to 0.5"), (0.0, "4 less than 0.3")],
    ],
)
def test_how_probable_the_form_was(prob, kind):
    assert probability_kind(word("ging", "ging", prob=prob)) == kind


def test_characters_of_the_lemma_count_too(training):
    assert character_kind(word("ging", "ging", lemma="gähen"), training).startswith("2")


def test_the_worst_languages_are_shown(training):
    words = [word("a", "a"), word("a", "b", language="french"), word("a", "a", language="zulu")]
    words += [word("c", "d"), word("e", "f", language="french")]
    shown = [row[0] for row in errors_inflection.language_table(words, training, 2)[1:]]
    assert shown == ["french", "german"]


@pytest.mark.parametrize(
    ("form", "prediction", "place"),
    [("abcdef", "xbcdef", 0), ("abcdef", "abxdef", 1), ("abcdef", "abcde", 2), ("ab", "abc", 2)],
)
def test_where_the_first_difference_is(form, prediction, place):
    assert place_kind(word(form, prediction)).startswith(str(place))


def test_confusions_count_what_stands_for_what():
    words = [word("abcd", "abxd"), word("abcd", "abd"), word("aad", "ad"), word("abcd", "dcba")]
    counts = confusions([*words, word("x", "x" * 9), word("abcd", "abxd")])
    assert counts == {("c", "x"): 2, ("c", "(nothing)"): 1, ("a", "(nothing)"): 1}


def files(folder: Path, levels: list[str]) -> list[str]:
    """A training pair, three development words (two right), and the command's arguments."""
    rows = [("german", "gehen", "ging"), ("german", "sehen", "sah"), ("french", "öter", "öta")]
    for name, used in (("train", rows[:1]), ("dev", rows)):
        sources = [" ".join(encode_source(r[0], r[1], ["V", "PST"])) for r in used]
        targets = [" ".join(encode_word(r[2])) for r in used]
        (folder / f"{name}.src").write_text("\n".join(sources) + "\n", encoding="utf-8")
        (folder / f"{name}.tgt").write_text("\n".join(targets) + "\n", encoding="utf-8")
    outputs = ["g i n g", "s a h", "o t a"]
    (folder / "dev.pred").write_text("\n".join(outputs) + "\n", encoding="utf-8")
    records = [
        {"id": 0, "certificate": level, "finished": 1, "source": source, "bound": 0.0, "mass": 1.0}
        | {"hypotheses": [{"text": output, "prob": 1.0}]}
        for level, source, output in zip(levels, sources, outputs, strict=True)
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "report.jsonl").write_text(lines, encoding="utf-8")
    named = {"train": "train", "dev": "dev", "predictions": "dev.pred", "report": "report.jsonl"}
    named["output"] = "errors.md"
    return [part for key, name in named.items() for part in (f"--{key}", str(folder / name))]


def test_the_page_of_a_small_set(tmp_path, capsys, monkeypatch):
    figures, draw = [], errors_inflection.draw
    monkeypatch.setattr(
        errors_inflection, "draw", lambda *of: figures.append(draw(*of)) or figures[0]
    )
    arguments = files(tmp_path, ["exhaustive", "optimal", "none"])
    picture = ["--picture", str(tmp_path / "errors")]
    assert ended(errors_inflection.main, [*arguments, *picture]) == 0
    head = "3 words of 2 languages: 66.67 % right, 50.00 % averaged over languages, 1 error."
    assert capsys.readouterr().out == head + "\n"
    page = (tmp_path / "errors.md").read_text(encoding="utf-8")
    for line in (
        head,
        "| one that no language has in training | 2 | 50.0 | 100.0 |",
        "| all known in its language | 1 | 100.0 | 0.0 |",
        "| one form has all the probability | 1 | 100.0 | 0.0 |",
        "| nothing proven | 1 | 0.0 | 100.0 |",
        "| french | 0 | 1 | 0.0 | 0.0 | - | accents and other marks only (1) |",
        "| german | 1 | 2 | 100.0 | 50.0 | 100.0 | - (0) |",
        "| accents and other marks only | 1 | 100.0 |",
        "| ö | o | 1 |",
        "| french | öter | V;PST | öta | ota | none |",
    ):
        assert line in page.splitlines()
    assert (tmp_path / "errors.png").stat().st_size > 1000
    assert [max(axes.get_xticks()) for axes in figures[0].axes[1:]] == [100] * 3  # percent


def test_a_picture_that_cannot_be_written_leaves_no_page(tmp_path):
    arguments = files(tmp_path, ["exhaustive", "optimal", "none"])
    (tmp_path / "place").write_text("")
    picture = tmp_path / "place" / "errors.png"
    line = refused(errors_inflection.main, [*arguments, "--picture", picture])
    assert line.count("cannot be written") == 1
    assert not (tmp_path / "errors.md").exists()


def test_one_form_is_the_only_one_where_nothing_was_excluded(tmp_path):
    arguments = files(tmp_path, ["exhaustive", "exhaustive", "none"])
    report = tmp_path / "report.jsonl"
    first, *others = report.read_text(encoding="utf-8").splitlines()
    excluded = json.dumps(json.loads(first) | {"excluded": 0.4})
    report.write_text("\n".join([excluded, *others]) + "\n", encoding="utf-8")
    assert ended(errors_inflection.main, arguments) == 0
    page = (tmp_path / "errors.md").read_text(encoding="utf-8")
    assert "| one form has all the probability | 1 | 100.0 | 0.0 |" in page.splitlines()


def turn_around(folder: Path) -> None:
    """Write all forms of `files` from right to left, as `prepare --reverse` and its models do."""
    for name in ("train.tgt", "dev.tgt", "dev.pred"):
        lines = (folder / name).read_text(encoding="utf-8").splitlines()
        turned = (" ".join(line.split()[::-1]) + "\n" for line in lines)
        (folder / name).write_text("".join(turned), encoding="utf-8")
    path = folder / "report.jsonl"
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for record in records:
        for hypothesis in record["hypotheses"]:
            hypothesis["text"] = " ".join(hypothesis["text"].split()[::-1])
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def test_forms_from_right_to_left_give_the_same_page(tmp_path):
    arguments = files(tmp_path, ["none"] * 3)
    assert ended(errors_inflection.main, arguments) == 0
    page = (tmp_path / "errors.md").read_text(encoding="utf-8")
    turn_around(tmp_path)
    assert ended(errors_inflection.main, [*arguments, "--reversed"]) == 0
    assert (tmp_path / "errors.md").read_text(encoding="utf-8") == page
    # Backwards: another place, another example.
    assert ended(errors_inflection.main, arguments) == 0
    assert (tmp_path / "errors.md").read_text(encoding="utf-8") != page


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("dev.pred", "a\n", "dev.pred: 1 line, but"),
        ("dev.pred", "g i n g\ns a h\nx\n", "report.jsonl:3: not of "),
        ("report.jsonl", "{}\n{}\n{}\n", "report.jsonl:1: not a record of an"),
        ("train.src", "a b\n", "train.src:1: expected a language first"),
        ("train.tgt", "a\nb\n", "train.tgt: 2 lines, but"),
    ],
)
def test_files_that_do_not_fit(tmp_path, name, content, message):
    arguments = files(tmp_path, ["none"] * 3)
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert message in refused(errors_inflection.main, arguments)
    assert not (tmp_path / "errors.md").exists()


def test_the_real_command_without_files(tmp_path):
    arguments = files(tmp_path, ["none"] * 3)
    (tmp_path / "dev.src").unlink()
    done = run("tools/errors_inflection.py", *arguments)
    assert done.returncode == 2
    assert "dev.src: cannot be read" in done.stderr
