"""Word-level translation by the real commands: BLEU, unknown words, word vectors."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from sacrebleu.metrics import BLEU

from onmt_entmax.translator import Translator
from tests.commands import json_lines, succeed, toy_ende, weights

SMALL = {
    "layers": 1,
    "rnn_size": 16,
    "word_vec_size": 12,
    "optim": "adam",
    "learning_rate": 0.01,
    "param_init": 0.0,
    "train_steps": 60,
    "valid_steps": 20,
    "save_checkpoint_steps": 20,
    "generator_function": "entmax15",
    "global_attention_function": "entmax15",
    "tgt_vocab_size": 3,  # so most words are unknown
    "selection": "bleu",
    "valid_bleu_tokenize": "none",
    "valid_decode_size": 15,
}


def train(folder: Path, *more: object, run: str = "run") -> str:
    """Train on the corpora of a folder; return what is printed."""
    data = {
        name: {"path_src": f"toy-ende/src-{file}.txt", "path_tgt": f"toy-ende/tgt-{file}.txt"}
        for name, file in (("toy", "train"), ("valid", "val"))
    }
    flags = [argument for key, value in SMALL.items() for argument in (f"-{key}", value)]
    command = ["-data", json.dumps(data), "-save_model", run, *flags, *more]
    return succeed("train.py", *command, cwd=folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words")
    toy_ende(folder)
    train(folder)
    return folder


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def metrics(folder: Path, run: str) -> list[dict]:
    return [row for row in json_lines(folder / run / "metrics.jsonl") if row["kind"] == "valid"]


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
    (measured,) = metrics(folder, str(run))
    assert measured["bleu"] == score.score


def translate(folder: Path, output: Path, *more: object) -> list[str]:
    command = ["-model", "run", "-src", "toy-ende/src-val.txt", "-output", output, *more]
    succeed("translate.py", *command, cwd=folder)
    return lines(output)


TABLE = {"a": "AAA", "b": "BBB"}


class Outputs(NamedTuple):
    """Lines of the same translations."""

    plain: list[str]
    replaced: list[str]
    """With source words in place of unknown ones."""
    looked_up: list[str]
    """With words of TABLE in place of these."""


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


class TestReports:
    """With three outputs a line, `-replace_unk` changes texts and leaves certificates."""

    @pytest.fixture(scope="class")
    def records(
        self, folder: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Pairs of records, without and with replaced words."""
        path = tmp_path_factory.mktemp("reports")
        reports = path / "plain.jsonl", path / "replaced.jsonl"
        for report, more in zip(reports, ([], ["-replace_unk"]), strict=True):
            options = ["-exactness_report", report, "-n_best", 3, *more]
            translate(folder, report.with_suffix(".out"), *options)
        return list(zip(*map(json_lines, reports), strict=True))

    def test_list_tokens_beside_replaced_texts(
        self, records: list[tuple[dict[str, Any], dict[str, Any]]]
    ) -> None:
        for plain, replaced in records:
            texts = [hypothesis["text"] for hypothesis in plain["hypotheses"]]
            # Texts without an unknown word need no tokens.
            tokens = [
                hypothesis.get("tokens", hypothesis["text"])
                for hypothesis in replaced["hypotheses"]
            ]
            assert tokens == texts

    def test_have_no_unknown_word(
        self, records: list[tuple[dict[str, Any], dict[str, Any]]]
    ) -> None:
        for _, replaced in records:
            assert not [h for h in replaced["hypotheses"] if "<unk>" in h["text"]]

    def test_have_slack_where_another_output_may_read_the_same(
        self, records: list[tuple[dict[str, Any], dict[str, Any]]]
    ) -> None:
        for plain, replaced in records:
            whole = plain["certificate"] == "exhaustive" and plain["finished"] <= 3
            assert ("slack" in replaced) != whole

    def test_have_the_same_certificates(
        self, records: list[tuple[dict[str, Any], dict[str, Any]]]
    ) -> None:
        def without_texts(record: dict[str, Any]) -> dict[str, Any]:
            hypotheses = [
                {key: value for key, value in hypothesis.items() if key not in ("text", "tokens")}
                for hypothesis in record["hypotheses"]
            ]
            others = {key: value for key, value in record.items() if key != "slack"}
            return {**others, "hypotheses": hypotheses}

        for plain, replaced in records:
            assert without_texts(replaced) == without_texts(plain)


# --- word vectors ----------------------------------------------------------------------------

TWO_UPDATES = ("-train_steps", 2, "-save_checkpoint_steps", 2, "-valid_steps", 2)


def vector(letter: str) -> torch.Tensor:
    """Return the vector ``(12,)`` of a letter in the file."""
    return torch.tensor([ord(letter) + n / 10 for n in range(12)])


def word_vectors(run: Path) -> torch.Tensor:
    """Return the encoder's word vectors ``(words, 12)`` after two updates."""
    return weights(run, 2)["encoder.embeddings.make_embedding.emb_luts.0.weight"]


class TestWordVectors:
    @pytest.fixture(scope="class")
    def path(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """A file in GloVe's format, which begins with a byte order mark."""
        path = tmp_path_factory.mktemp("vectors") / "vectors"
        rows = [f"{letter} {' '.join(map(str, vector(letter).tolist()))}" for letter in "abcXYZA"]
        path.write_text("\ufeff" + "\n".join(rows) + "\n", encoding="utf-8")
        return path

    @pytest.fixture(scope="class")
    def options(self, path: Path) -> list[object]:
        return [*TWO_UPDATES, "-both_embeddings", path, "-embeddings_type", "GloVe"]

    @pytest.fixture(scope="class")
    def printed(self, folder: Path, path: Path, options: list[object]) -> str:
        """What a training with frozen vectors prints, which writes the folder `frozen`."""
        frozen = ["-freeze_word_vecs_enc", "-freeze_word_vecs_dec"]
        return train(folder, *options, *frozen, run=str(path.parent / "frozen"))

    @pytest.fixture(scope="class")
    def frozen(self, printed: str, path: Path) -> Path:
        return path.parent / "frozen"

    def test_are_counted(self, printed: str, path: Path) -> None:
        """Of a, b and c; of the target letters at most A is in the vocabulary."""
        assert f"{path}: vectors for 3 of" in printed

    def test_are_where_training_starts(self, frozen: Path) -> None:
        vocabulary = Translator.from_folders([frozen]).vocabularies.source
        for letter in "abc":
            (index,) = vocabulary.encode([letter])
            assert torch.equal(word_vectors(frozen)[index], vector(letter))

    def test_of_other_words_are_random(self, frozen: Path) -> None:
        vocabulary = Translator.from_folders([frozen]).vocabularies.source
        (index,) = vocabulary.encode(["d"])
        assert word_vectors(frozen)[index].abs().max() < 10

    def test_are_trained_unless_they_are_frozen(
        self, folder: Path, frozen: Path, options: list[object], tmp_path: Path
    ) -> None:
        train(folder, *options, run=str(tmp_path / "trained"))
        assert not torch.equal(word_vectors(tmp_path / "trained"), word_vectors(frozen))
