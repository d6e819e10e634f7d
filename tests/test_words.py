"""Word-level translation by the commands: BLEU, and source words in place of unknown ones."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sacrebleu.metrics import BLEU

from onmt_entmax.translator import Translator
from tests.commands import json_lines, succeed
from tests.toy import toy_ende
from tests.word_task import lines_of, train

PHRASE_TABLE = {"a": "AAA", "b": "BBB"}  # source words, with the target words to write for them


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpora and a run, `run`, for which most target words are unknown."""
    folder = tmp_path_factory.mktemp("words")
    toy_ende(folder)
    train(folder)
    return folder


@pytest.mark.parametrize("tokenize", ["none", "char"])
def test_the_bleu_of_training_is_that_of_the_translation(
    folder: Path, tmp_path: Path, tokenize: str
) -> None:
    """Validation of all lines (`-valid_decode_size 0`) searches as `translate.py` does here."""
    run = tmp_path / "run"
    validation = ["-valid_decode_size", 0, "-valid_beam_size", 2, "-valid_bleu_tokenize", tokenize]
    train(folder, *validation, "-train_steps", 20, run=str(run))
    output = tmp_path / "out"
    files = ["-src", "toy-ende/src-val.txt", "-output", output]
    search = ["-beam_size", 2, "-stop", "first"]
    succeed("translate.py", "-model", run, *files, *search, cwd=folder)
    bleu = BLEU(tokenize=tokenize, force=True)
    score = bleu.corpus_score(lines_of(output), [lines_of(folder / "toy-ende" / "tgt-val.txt")])
    (measured,) = [row for row in json_lines(run / "metrics.jsonl") if row["kind"] == "valid"]
    assert measured["bleu"] == score.score


# --- unknown words ---------------------------------------------------------------------------


def translate(folder: Path, output: Path, *options: object) -> Sequence[str]:
    """Translate the development set; return the lines of the output."""
    files = ["-model", "run", "-src", "toy-ende/src-val.txt", "-output", output]
    succeed("translate.py", *files, *options, cwd=folder)
    return lines_of(output)


class Translations(NamedTuple):
    """The lines of one translation, written in three ways."""

    plain: Sequence[str]
    """With `<unk>` for each unknown word."""
    replaced: Sequence[str]
    """With source words in place of unknown ones."""
    looked_up: Sequence[str]
    """With the target words of `PHRASE_TABLE`, where it has these source words."""


# A small budget: without certificates, an exact search would take long for this model.
SEARCHES = {"beam": ["-search", "beam"], "exact": ["-search", "exact", "-budget", 50]}


@pytest.fixture(scope="module", params=SEARCHES)
def translations(
    request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Translations:
    path = tmp_path_factory.mktemp("translations")
    rows = "\n".join(f"{source}|||{target}" for source, target in PHRASE_TABLE.items())
    (path / "table").write_text(f"\ufeff{rows}\n")  # with a byte order mark
    search = SEARCHES[request.param]
    replacing = [*search, "-replace_unk"]
    return Translations(
        translate(folder, path / "plain", *search),
        translate(folder, path / "replaced", *replacing),
        translate(folder, path / "looked_up", *replacing, "-phrase_table", path / "table"),
    )


def test_some_words_are_unknown(translations: Translations) -> None:
    """Otherwise the tests below would see no replacement."""
    assert any("<unk>" in line for line in translations.plain)


def test_unknown_words_are_replaced_and_no_others(translations: Translations) -> None:
    for plain, replaced in zip(translations.plain, translations.replaced, strict=True):
        assert "<unk>" not in replaced
        for word, after in zip(plain.split(), replaced.split(), strict=True):
            assert word in (after, "<unk>")


@pytest.mark.parametrize("translations", ["beam"], indirect=True)
def test_unknown_words_become_the_source_words_of_most_attention(
    translations: Translations, folder: Path
) -> None:
    translator = Translator.from_folders([folder / "run"], attention=True)
    answers = translator.answers(lines_of(folder / "toy-ende" / "src-val.txt"))
    lines = zip(answers, translations.plain, translations.replaced, strict=True)
    for answer, plain, replaced in lines:
        source, attention = answer.source.split(), answer.result.best.attention
        expected = [
            source[int(attention[step].argmax())] if word == "<unk>" else word
            for step, word in enumerate(plain.split())
        ]
        assert replaced.split() == expected


def test_source_words_are_looked_up_in_a_phrase_table(translations: Translations) -> None:
    for plain, replaced, looked_up in zip(*translations, strict=True):
        expected = [
            PHRASE_TABLE.get(source_word, source_word) if word == "<unk>" else word
            for word, source_word in zip(plain.split(), replaced.split(), strict=True)
        ]
        assert looked_up.split() == expected


# --- reports ---------------------------------------------------------------------------------


class RecordPair(NamedTuple):
    """The records of one line in two reports."""

    plain: dict[str, Any]
    replaced: dict[str, Any]
    """With `-replace_unk`."""


class TestReports:
    """Reports with three outputs for each line."""

    @pytest.fixture(scope="class")
    def records(self, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[RecordPair]:
        path = tmp_path_factory.mktemp("reports")
        reports = path / "plain.jsonl", path / "replaced.jsonl"
        for report, option in zip(reports, ([], ["-replace_unk"]), strict=True):
            options = ["-exactness_report", report, "-n_best", 3, *option]
            translate(folder, report.with_suffix(".out"), *options)
        return [RecordPair(*pair) for pair in zip(*map(json_lines, reports), strict=True)]

    def test_list_tokens_beside_replaced_texts(self, records: list[RecordPair]) -> None:
        for plain, replaced in records:
            texts = [hypothesis["text"] for hypothesis in plain["hypotheses"]]
            # Texts without an unknown word need no tokens.
            tokens = [
                hypothesis.get("tokens", hypothesis["text"])
                for hypothesis in replaced["hypotheses"]
            ]
            assert tokens == texts

    def test_have_no_unknown_word(self, records: list[RecordPair]) -> None:
        for _, replaced in records:
            assert not [h for h in replaced["hypotheses"] if "<unk>" in h["text"]]

    def test_have_slack_unless_all_possible_outputs_are_listed(
        self, records: list[RecordPair]
    ) -> None:
        """An output that is not listed may read the same as one that is."""
        for plain, replaced in records:
            lists_all = plain["certificate"] == "exhaustive" and plain["finished"] <= 3
            assert ("slack" in replaced) is not lists_all

    def test_have_the_same_certificates(self, records: list[RecordPair]) -> None:
        def without_texts(record: dict[str, Any]) -> dict[str, Any]:
            hypotheses = [
                {key: value for key, value in hypothesis.items() if key not in ("text", "tokens")}
                for hypothesis in record["hypotheses"]
            ]
            others = {key: value for key, value in record.items() if key != "slack"}
            return {**others, "hypotheses": hypotheses}

        for plain, replaced in records:
            assert without_texts(replaced) == without_texts(plain)
