"""`onmt-entmax prepare files`: from parallel text to subwords and the YAML that goes with them."""

import functools
import gzip
import random
import shlex
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.cli import prepare_files
from onmt_entmax.data.parallel import Subwords, hold_out, normalise
from onmt_entmax.errors import UserError
from tests.commands import succeed
from tests.ended import ended, refused

WORDS = {
    "de": "der Hund läuft über die Straße und bellt , weil er Katzen jagt .".split(),
    "en": "the dog runs across the street and barks , because it hunts cats .".split(),
    "ro": "câinele aleargă peste stradă şi latră , pentru că vânează pisici .".split(),
}


def sentences(language: str, count: int) -> list[str]:
    """Lines that correspond over languages: as many words as in any other."""
    generator = random.Random(3)
    return [
        " ".join(generator.choices(WORDS[language], k=generator.randint(3, 9)))
        for _ in range(count)
    ]


@pytest.fixture
def own(tmp_path: Path, monkeypatch) -> list[str]:
    """Arguments for 300 training and 20 development pairs in the current folder."""
    monkeypatch.chdir(tmp_path)
    for language in ("ro", "en"):
        lines = [f"{line}\n" for line in sentences(language, 320)]
        Path(f"train.{language}").write_text("".join(lines[:300]), encoding="utf-8")
        Path(f"dev.{language}").write_text("".join(lines[300:]), encoding="utf-8")
    files = "--languages ro en --train train.ro train.en --val dev.ro dev.en --symbols 60"
    return [*files.split(), "--out", "data"]


def content(folder: str) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(Path(folder).rglob("*")) if p.is_file()}


@pytest.mark.parametrize(
    ("line", "language", "tokens", "expected"),
    [
        ("  a\u00a0b \t c\u200b ", "en", False, "a b c"),
        ("u\u0308ber", "de", False, "über"),
        ("it &apos;s &quot; &amp;amp; &quot;", "en", True, 'it \'s " &amp; "'),
        ("it &apos;s", "en", False, "it &apos;s"),
        ("Ştiinţă Țară şi când în", "ro", False, "Stiinta Tara si cand in"),
        ("（全角）", "ja", False, "（全角）"),
        ("k\x96l\x85m ￭￨▁ ｟５０％｠", "ja", False, "k l m ■│_ ⦅５０％⦆"),
    ],
)
def test_normalise(line: str, language: str, tokens: bool, expected: str) -> None:
    assert normalise(line, language, tokens) == expected


def test_a_held_out_set_shares_no_sentence_with_training() -> None:
    pairs = [(f"s{n % 40}", f"t{n % 30}") for n in range(200)] + [("", "t1")]
    train, chosen = hold_out(pairs, 5, seed=1)
    assert len(chosen) == len(set(chosen)) == 5
    for side in range(2):
        assert not {pair[side] for pair in train} & {pair[side] for pair in chosen}
    assert (train, chosen) == hold_out(pairs, 5, seed=1) != hold_out(pairs, 5, seed=2)
    with pytest.raises(UserError, match=r"cannot hold out 500 .* lower --val_size"):
        hold_out(pairs, 500, seed=1)


@functools.cache
def learned(kind: str, tokens: bool, folder: Path):
    if kind == "bpe":
        pytest.importorskip("pyonmttok")
    lines = sentences("de", 300)
    return Subwords(kind, 70, True, tokens).learn([lines], folder / f"{kind}-{tokens}.model")


def test_a_small_text_has_fewer_pieces_than_asked_for(tmp_path: Path) -> None:
    segmenter = Subwords("sentencepiece", 5000, True, False).learn([["ab ab ab"]], tmp_path / "m")
    assert segmenter.divide("ab a") == ["▁ab", "▁a"]
    with pytest.raises(UserError, match=r"cannot learn 3 subwords: .* smaller than required"):
        Subwords("sentencepiece", 3, True, False).learn([["ab ab ab"]], tmp_path / "m")


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.mark.parametrize(
    ("kind", "tokens"), [("bpe", True), ("bpe", False), ("sentencepiece", False)]
)
@given(line=st.text(alphabet="aäzAZ09 .,!?'\"()-%&犬走吠。、％：＃￭￨▁｟", max_size=40))
def test_what_is_divided_is_put_together_again(kind, tokens, line, models) -> None:
    segmenter, text = learned(kind, tokens, models), normalise(line, "de", tokens)
    pieces = segmenter.divide(text)
    assert segmenter.join(pieces) == text
    assert not any(" " in piece for piece in pieces)


@pytest.mark.usefixtures("pyonmttok")
def test_files_to_a_model_that_reads_and_writes_text(own: list[str]) -> None:
    """The commands that are printed train, and translations come back as text."""
    command = ["prepare", "files", *own, "--subwords", "separate"]
    done = succeed("onmt_entmax", *command)
    assert "data: 300 pairs to train on, 20 to validate on, 0 to test on; left out: 0 " in done
    first = content("data")
    assert succeed("onmt_entmax", *command) == done
    assert content("data") == first
    names = {f"{part}.{name}" for part in ("train", "val") for name in ("ro", "en")}
    names |= {"bpe.ro.model", "bpe.en.model", "prepare.json", "train.yaml"}
    assert {Path(name).name for name in first} == names
    assert not set("âăşîţ") & set(first["data/train.ro"].decode())
    lines = done[: done.index("learning")].splitlines()  # the standard output comes first
    train, translate, bleu = (shlex.split(line)[1:] for line in lines[1:])
    small = ["-rnn_size", 16, "-word_vec_size", 16, "-train_steps", 4, "-warmup_steps", 2]
    small += ["-valid_steps", 2, "-save_checkpoint_steps", 4]
    assert "  BLEU " in succeed("train.py", *train[1:], *small)
    succeed("translate.py", *translate[1:], "-stop", "first", "-beam_size", 2)
    assert "BLEU 13a" in succeed("onmt_entmax", "bleu", *bleu[1:])
    translations = Path("data/val.out").read_text(encoding="utf-8")
    assert translations.count("\n") == 20
    assert "￭" not in translations


@pytest.mark.usefixtures("pyonmttok")
def test_lengths_dev_sets_and_test_sets(own: list[str]) -> None:
    out = own[:5] + own[5:7] + ["--out", "it: is #1", "--symbols", "60"]
    arguments = [*out, "--val_size", "10", "--test", "dev.ro", "dev.en", "--max_ratio", "1.5"]
    assert ended(prepare_files.main, [a for a in arguments if a != "--val"]) == 0
    folder = Path("it: is #1")
    settings = yaml.safe_load((folder / "train.yaml").read_text())
    assert settings["src_subword_model"] == str(folder / "bpe.model")
    assert settings["data"]["valid"]["path_tgt"] == str(folder / "val.en")
    assert (settings["train_steps"], settings["valid_steps"]) == (2_000, 250)
    assert len((folder / "val.en").read_text().splitlines()) == 10
    assert (folder / "test" / "test.en").read_text() == Path("dev.en").read_text()
    kept = len((folder / "train.en").read_text().splitlines())
    record = yaml.safe_load((folder / "prepare.json").read_text())["pairs"]
    assert record["read"] - record["shared_with_val"] - record["unfit"] - 10 == kept < 290


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dev.en": b"one\n"}, "dev.en: 1 line, but dev.ro has 20;"),
        ({"dev.en": b"a\n" + b"\n" * 19}, "dev.en: line 2 is empty on one side"),
        ({"train.ro": None}, "no such file, nor with .xz or .gz"),
        ({"train.ro": None, "train.ro.gz": gzip.compress(b"a\n")[:-9]}, "train.ro.gz: cannot read"),
        ({"train.ro": b"a\n\xff\n"}, ":2: not UTF-8 text"),
        ({"data": b"a file"}, "data"),
    ],
)
def test_errors_are_one_line(change: dict, message: str, own: list[str]) -> None:
    for name, data in change.items():
        Path(name).unlink(missing_ok=True) if data is None else Path(name).write_bytes(data)
    assert message in refused(prepare_files.main, own, progress=True)
    assert not Path("data/train.ro").exists()
