"""What subwords are learned from, what is counted in them, and how parallel are divided."""

import json
from pathlib import Path

import pytest

from onmt_entmax.cli import prepare_mt
from onmt_entmax.data import parallel
from tests.ended import refused


@pytest.mark.parametrize("subwords", ["joint", "separate"])
def test_subwords_are_of_the_languages_they_are_for(tmp_path: Path, subwords: str) -> None:
    """And the length of a training sentence is counted in them."""
    words, names = ("abab", "xyxy"), ("aa", "xx")
    for word, name in zip(words, names, strict=True):
        rare = "qwertzuiop"  # a word, but more than three subwords
        (tmp_path / f"train.{name}").write_text(f"{word} {word}\n" * 20 + f"{rare}\n")
        (tmp_path / f"val.{name}").write_text(f"{word}\n")
    out = tmp_path / "out"
    given = ["files", "--languages", *names, "--subwords", subwords, "--symbols", 12]
    given += ["--max_tokens", 3, "--out", out]
    for part in parallel.PARTS:
        given += [f"--{part}", *(tmp_path / f"{part}.{name}" for name in names)]
    options = prepare_mt.parse_arguments(list(map(str, given)))
    prepare_mt.prepare(options)
    plan = prepare_mt.plan_of(options, prepare_mt.known(options))
    models = prepare_mt.model_paths(out, plan, names)
    for word, model in zip(words, models, strict=True):
        assert len(parallel.tokeniser(plan, model)(word)) == 1
    record = json.loads((out / "prepare.json").read_text())
    expected = {"read": 21, "shared_with_val": 0, "unfit": 1, "train": 20, "val": 1}
    assert record["pairs"] == expected


def test_every_pair_that_is_left_out_is_counted(tmp_path: Path, capsys) -> None:
    lines = {"de": [f"wort{n}" for n in range(30)], "en": [f"word{n // 3}" for n in range(30)]}
    lines["de"] += ["", "x " * 99]
    lines["en"] += ["nothing", "x"]
    for name in lines:
        (tmp_path / name).write_text("".join(line + "\n" for line in lines[name]))
    given = ["files", "--languages", *lines, "--train", *(tmp_path / name for name in lines)]
    given += ["--val_size", 1, "--symbols", 12, "--out", tmp_path / "out"]
    prepare_mt.prepare(prepare_mt.parse_arguments(list(map(str, given))))
    record = json.loads((tmp_path / "out" / "prepare.json").read_text())
    expected = {"read": 32, "shared_with_val": 2, "unfit": 2, "train": 27, "val": 1}
    assert record["pairs"] == expected
    told = capsys.readouterr()
    assert (
        "27 pairs to train on, 1 to validate on, 0 to test on; left out: 2 with a sentence of the "
        "development set, 2 empty, too long or too different in length"
    ) in told.out + told.err


def test_what_is_downloaded_has_the_size_that_its_makers_name(tmp_path: Path, monkeypatch) -> None:
    pairs = {part: [("ein Hund", "a dog")] for part in parallel.PARTS}
    monkeypatch.setattr(prepare_mt, "fetch", lambda *_: (pairs, {}))
    assert "train has 1 pair, expected 29,000" in refused(
        prepare_mt.main, ["multi30k", "--out", tmp_path / "out"]
    )


def test_a_held_out_set_depends_on_its_seed_alone() -> None:
    """And not on how Python hashes strings, which is another way each time."""

    class Text(str):
        salt = 0

        def __hash__(self) -> int:
            return hash((Text.salt, str(self)))

    chosen = []
    for Text.salt in range(3):
        pairs = [(Text(f"s{n}"), Text(f"t{n}")) for n in range(100)]
        chosen.append(parallel.hold_out(pairs, 10, seed=1)["val"])
    assert chosen[0] == chosen[1] == chosen[2]


def test_further_translations_of_the_last_sentence_are_left_out() -> None:
    lines = [f"e{n}\tg{n}.{m}" for n in range(300) for m in range(7)]
    parts = parallel.split_tatoeba(lines)
    assert len(parts["val"]) == 1500  # which 7 does not divide
    held_out, rest = ({english for _, english in parts[part]} for part in ("val", "train"))
    assert rest
    assert not held_out & rest
