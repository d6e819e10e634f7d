"""Word-level translation by the real commands: BLEU, unknown words, word vectors."""

import json
from pathlib import Path

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
    data = {
        name: {"path_src": f"toy-ende/src-{file}.txt", "path_tgt": f"toy-ende/tgt-{file}.txt"}
        for name, file in (("toy", "train"), ("valid", "val"))
    }
    flags = [word for key, value in SMALL.items() for word in (f"-{key}", value)]
    command = ["-data", json.dumps(data), "-save_model", run, *flags, *more]
    return succeed("train.py", *command, cwd=folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
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


@pytest.mark.parametrize("more", [(), ("-search", "exact", "-budget", 50)])
def test_unknown_words_become_those_of_the_source(folder: Path, tmp_path: Path, more) -> None:
    (tmp_path / "table").write_text("\ufeffa|||AAA\nb|||BBB\n")
    with_table = ["-replace_unk", "-phrase_table", tmp_path / "table", *more]
    plain = translate(folder, tmp_path / "plain", *more)
    replaced = translate(folder, tmp_path / "replaced", "-replace_unk", *more)
    looked_up = translate(folder, tmp_path / "looked_up", *with_table)
    assert any("<unk>" in line for line in plain)
    translator = Translator.from_folders([folder / "run"], attention=True)
    sources = lines(folder / "toy-ende" / "src-val.txt")
    for answer, before, after in zip(translator.answers(sources), plain, replaced, strict=True):
        source, best = answer.source.split(), answer.result.best
        expected = [
            source[int(best.attention[step].argmax())] if word == "<unk>" else word
            for step, word in enumerate(before.split())
        ]
        assert more or after.split() == expected
        assert "<unk>" not in after
        known = zip(before.split(), after.split(), strict=True)
        assert all(a == b or a == "<unk>" for a, b in known)
    table = {"a": "AAA", "b": "BBB"}
    for before, one, other in zip(plain, replaced, looked_up, strict=True):
        expected = [
            table.get(word, word) if unknown == "<unk>" else word
            for unknown, word in zip(before.split(), one.split(), strict=True)
        ]
        assert other.split() == expected


def test_certificates_are_of_tokens_and_stay_what_they_are(folder: Path, tmp_path: Path) -> None:
    records = []
    for name, more in (("plain", []), ("replaced", ["-replace_unk"])):
        report = tmp_path / f"{name}.jsonl"
        translate(folder, tmp_path / name, *more, "-exactness_report", report, "-n_best", 3)
        records.append(json_lines(report))
    for plain, replaced in zip(*records, strict=True):
        texts = [[h.pop("text") for h in record["hypotheses"]] for record in (plain, replaced)]
        known = [
            h.pop("tokens", text) for h, text in zip(replaced["hypotheses"], texts[1], strict=True)
        ]
        assert known == texts[0]
        # A word that was replaced may read like another output.
        whole = plain["certificate"] == "exhaustive" and plain["finished"] <= 3
        assert ("slack" in replaced) != whole
        replaced.pop("slack", None)
        assert plain == replaced
        assert len(texts[0]) == len(texts[1])
        assert not any("<unk>" in text for text in texts[1])


def vectors(path: Path, letters: str, size: int, head: bool) -> Path:
    rows = [f"{c} " + " ".join(f"{ord(c) + n / 10}" for n in range(size)) for c in letters]
    text = "\n".join(([f"{len(rows)} {size}"] if head else []) + rows) + "\n"
    path.write_text(text, encoding="utf-8")
    return path


def test_word_vectors_are_where_training_starts(folder: Path, tmp_path: Path) -> None:
    both = vectors(tmp_path / "vectors", "abcXYZA", 12, head=False)
    both.write_text("\ufeff" + both.read_text(encoding="utf-8"), encoding="utf-8")
    more = ["-train_steps", 2, "-save_checkpoint_steps", 2, "-valid_steps", 2]
    frozen = ["-freeze_word_vecs_enc", "-freeze_word_vecs_dec"]
    given = ["-both_embeddings", both, "-embeddings_type", "GloVe", *frozen]
    said = train(folder, *more, *given, run=str(tmp_path / "run"))
    assert f"{both}: vectors for 3 of" in said  # a, b and c; of the target letters at most A
    model = Translator.from_folders([tmp_path / "run"])
    table = weights(tmp_path / "run", 2)["encoder.embeddings.make_embedding.emb_luts.0.weight"]
    for letter in "abc":
        (index,) = model.vocabularies.source.encode([letter])
        expected = torch.tensor([ord(letter) + n / 10 for n in range(12)])
        assert torch.equal(table[index], expected)
    (d,) = model.vocabularies.source.encode(["d"])
    assert table[d].abs().max() < 10  # has a fresh vector, and a frozen one
    trained = train(folder, *more, *given[:4], run=str(tmp_path / "trained"))
    assert "vectors for" in trained
    moved = weights(tmp_path / "trained", 2)
    moved = moved["encoder.embeddings.make_embedding.emb_luts.0.weight"]
    assert not torch.equal(moved, table)
