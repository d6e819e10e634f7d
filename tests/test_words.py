"""Word-level translation by the real commands: BLEU, unknown words and their replacements."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sacrebleu.metrics import BLEU

from onmt_entmax.translator import Translator
from tests.commands import json_lines, succeed
from tests.toy import toy_ende
from tests.word_task import lines, train

TABLE = {"a": "AAA", "b": "BBB"}  # a phrase table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpora and a run, `run`, that was trained on them; most target words are unknown."""
    folder = tmp_path_factory.mktemp("words")
    toy_ende(folder)
    train(folder)
    return folder


@pytest.mark.parametrize("tokenize", ["none", "char"])
def test_bleu_is_that_of_the_translations(folder: Path, tmp_path: Path, tokenize: str) -> None:
    """The BLEU logged while training is sacrebleu's for the output of `translate.py`."""
    run = tmp_path / "run"
    more = ["-valid_decode_size", 0, "-valid_beam_size", 2, "-train_steps", 20]
    train(folder, *more, "-valid_bleu_tokenize", tokenize, run=str(run))
    output = tmp_path / "out"
    command = ["-src", "toy-ende/src-val.txt", "-output", output, "-beam_size", 2]
    succeed("translate.py", "-model", run, *command, "-stop", "first", cwd=folder)
    bleu = BLEU(tokenize=tokenize, force=True)
    score = bleu.corpus_score(lines(output), [lines(folder / "toy-ende" / "tgt-val.txt")])
    (measured,) = [row for row in json_lines(run / "metrics.jsonl") if row["kind"] == "valid"]
    assert measured["bleu"] == score.score


# --- unknown words ---------------------------------------------------------------------------


def translate(folder: Path, output: Path, *more: object) -> Sequence[str]:
    """Translate the development set; return the lines of the output."""
    command = ["-model", "run", "-src", "toy-ende/src-val.txt", "-output", output, *more]
    succeed("translate.py", *command, cwd=folder)
    return lines(output)


class Outputs(NamedTuple):
    """Lines of the same translations."""

    plain: Sequence[str]
    replaced: Sequence[str]
    """The translations with source words in place of unknown ones."""
    looked_up: Sequence[str]
    """The translations with words of `TABLE` in place of these source words."""


@pytest.fixture(scope="module", params=["beam", "exact"])
def outputs(
    request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Outputs:
    path = tmp_path_factory.mktemp("outputs")
    rows = "\n".join(f"{source}|||{target}" for source, target in TABLE.items())
    (path / "table").write_text(f"\ufeff{rows}\n")
    search = ["-search", request.param, *(["-budget", 50] if request.param == "exact" else [])]
    replacing = [*search, "-replace_unk"]
    return Outputs(
        translate(folder, path / "plain", *search),
        translate(folder, path / "replaced", *replacing),
        translate(folder, path / "looked_up", *replacing, "-phrase_table", path / "table"),
    )


def test_unknown_words_are_replaced_and_no_others(outputs: Outputs) -> None:
    assert any("<unk>" in line for line in outputs.plain)
    for plain, replaced in zip(outputs.plain, outputs.replaced, strict=True):
        assert "<unk>" not in replaced
        for word, after in zip(plain.split(), replaced.split(), strict=True):
            assert word in (after, "<unk>")


@pytest.mark.parametrize("outputs", ["beam"], indirect=True)
def test_unknown_words_become_the_source_words_of_most_attention(
    outputs: Outputs, folder: Path
) -> None:
    translator = Translator.from_folders([folder / "run"], attention=True)
    answers = translator.answers(lines(folder / "toy-ende" / "src-val.txt"))
    for answer, plain, replaced in zip(answers, outputs.plain, outputs.replaced, strict=True):
        source, attention = answer.source.split(), answer.result.best.attention
        expected = [
            source[int(attention[step].argmax())] if word == "<unk>" else word
            for step, word in enumerate(plain.split())
        ]
        assert replaced.split() == expected


def test_source_words_are_looked_up_in_a_phrase_table(outputs: Outputs) -> None:
    for plain, replaced, looked_up in zip(*outputs, strict=True):
        expected = [
            TABLE.get(source_word, source_word) if word == "<unk>" else word
            for word, source_word in zip(plain.split(), replaced.split(), strict=True)
        ]
        assert looked_up.split() == expected


# --- reports ---------------------------------------------------------------------------------


class RecordPair(NamedTuple):
    """What reports say of one line, without and with replaced words."""

    plain: dict[str, Any]
    replaced: dict[str, Any]


class TestReports:
    """With three outputs a line, `-replace_unk` changes texts and leaves certificates."""

    @pytest.fixture(scope="class")
    def records(self, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[RecordPair]:
        path = tmp_path_factory.mktemp("reports")
        reports = path / "plain.jsonl", path / "replaced.jsonl"
        for report, more in zip(reports, ([], ["-replace_unk"]), strict=True):
            options = ["-exactness_report", report, "-n_best", 3, *more]
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

    def test_have_slack_where_another_output_may_read_the_same(
        self, records: list[RecordPair]
    ) -> None:
        for plain, replaced in records:
            is_listed_whole = plain["certificate"] == "exhaustive" and plain["finished"] <= 3
            assert ("slack" in replaced) != is_listed_whole

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
