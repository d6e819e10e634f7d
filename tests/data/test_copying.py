"""copychars: unknown characters get placeholders, which training hides known ones behind."""

import json
import random
from argparse import Namespace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.data.corpus import (
    CorpusConfig,
    DataConfig,
    all_pairs,
    extra_specials,
    numericalise,
)
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.data.transforms import CopyCharacters, build_transforms, copying
from onmt_entmax.data.vocabulary import (
    SOURCE_SPECIALS,
    TARGET_SPECIALS,
    Vocabularies,
    Vocabulary,
    VocabularyConfig,
    build_vocabularies,
)
from tests.commands import fail, succeed
from tests.toy import write_config

SYMBOLS = ("<copy1>", "<copy2>")
KNOWN = ("a", "b", "c", "+V", "lang=x")


def vocabularies(symbols: tuple[str, ...] = SYMBOLS) -> Vocabularies:
    source = Vocabulary((*SOURCE_SPECIALS, *symbols, *KNOWN, "s"))
    return Vocabularies(source, Vocabulary((*TARGET_SPECIALS, *symbols, *KNOWN, "t")))


def transform(rate: float = 1.0, symbols: int = 2, known: Vocabularies | None = None):
    options = Namespace(copy_symbols=symbols, copy_rate=rate)
    return build_transforms(["copychars"], options, known or vocabularies())


@pytest.mark.parametrize(
    ("source", "hidden"),
    [
        ("a b", "a b"),
        ("a X b Y X", "a <copy1> b <copy2> <copy1>"),
        ("Y X", "<copy1> <copy2>"),
        ("X Y Z", "<copy1> <copy2> Z"),  # no placeholder is left: unknown
        ("+NEW word X", "+NEW word <copy1>"),  # tags and words stay unknown
        ("s t X", "s t <copy1>"),  # known on one side: no second name
        ("<copy1> X", "<copy1> <copy2>"),
    ],
)
def test_unknown_characters_are_numbered_in_order(source: str, hidden: str) -> None:
    copied = copying(source.split(), vocabularies())
    assert " ".join(copied.hide(source.split())) == hidden
    assert " ".join(copied.show(hidden.split())) == source


def test_without_placeholders_nothing_changes() -> None:
    source = "a X Y".split()
    assert copying(source, vocabularies(())).hide(source) == source


def test_a_placeholder_of_nothing_stays() -> None:
    assert copying(["a", "X"], vocabularies()).show(["<copy2>", "<copy1>"]) == ["<copy2>", "X"]


@given(st.lists(st.sampled_from([*KNOWN, "s", "t", *"XYZ", "word"]), max_size=8))
def test_hiding_is_one_to_one(source: list[str]) -> None:
    copied = copying(source, vocabularies())
    hidden = copied.hide(source)
    assert copied.show(hidden) == source
    assert len(set(hidden)) == len(set(source))


def test_both_sides_of_a_pair_get_the_same_names() -> None:
    names = vocabularies()
    example = numericalise((["a", "X", "Y"], ["Y", "b", "X", "Z"]), names, 7)
    assert names.source.decode(example.source) == ["a", "<copy1>", "<copy2>"]
    assert names.target.decode(example.target or ()) == ["<copy2>", "b", "<copy1>", "<unk>"]


LETTERS = "abcdefghij"
SIDES = st.lists(st.sampled_from([*LETTERS, "+V"]), min_size=1, max_size=9)


@given(SIDES, SIDES, st.integers(0, 1 << 30), st.integers(1, 3))
def test_hidden_characters_could_have_been_copied(
    source: list[str], target: list[str], seed: int, count: int
) -> None:
    names = tuple(f"<copy{i}>" for i in range(1, count + 1))
    known = Vocabularies(
        Vocabulary((*SOURCE_SPECIALS, *names, *LETTERS, "+V")),
        Vocabulary((*TARGET_SPECIALS, *names, *LETTERS)),
    )
    random.seed(seed)
    pair = {"src": source, "tgt": target}
    changed = transform(symbols=count, known=known).apply(dict(pair), is_train=True)
    hidden = {s: c for c, s in zip(source, changed["src"], strict=True) if s != c}
    assert len(hidden) <= count
    assert set(hidden) == {f"<copy{i}>" for i in range(1, len(hidden) + 1)}
    assert list(dict.fromkeys(s for s in changed["src"] if s in hidden)) == sorted(hidden)
    assert "+V" not in hidden.values()
    for side in ("src", "tgt"):
        assert [hidden.get(token, token) for token in changed[side]] == pair[side]
        assert not set(hidden.values()) & set(changed[side])
    for character in hidden.values():
        assert source.count(character) == target.count(character)
    # Whatever could be hidden is, for a start, one of them.
    assert bool(hidden) == any(
        source.count(c) == target.count(c) for c in source if c in known.target
    )


def test_rare_characters_are_hidden_more_and_the_rate_holds() -> None:
    random.seed(1)
    known = Vocabularies(
        Vocabulary((*SOURCE_SPECIALS, *SYMBOLS, *LETTERS)),
        Vocabulary((*TARGET_SPECIALS, *SYMBOLS, *LETTERS)),
    )
    pipe, pair = transform(0.25, 2, known), {"src": list(LETTERS), "tgt": list(LETTERS)}
    results = [pipe.apply(dict(pair), is_train=True)["src"] for _ in range(4000)]
    changed = [result for result in results if "<copy1>" in result]
    assert 0.22 < len(changed) / 4000 < 0.28
    assert 0.4 < sum("<copy2>" in result for result in changed) / len(changed) < 0.6
    often, seldom = (sum(letter not in result for result in changed) for letter in "aj")
    assert seldom > 1.5 * often > 0


def test_only_training_hides() -> None:
    pair = {"src": ["a"], "tgt": ["a"]}
    assert transform().apply(dict(pair), is_train=False) == pair
    counting = build_transforms(["copychars"], Namespace(copy_symbols=2, copy_rate=0.9), None)
    assert counting.apply(dict(pair), is_train=True) == pair
    assert transform().apply(dict(pair), is_train=True)["src"] == ["<copy1>"]
    assert CopyCharacters.get_specials(Namespace(copy_symbols=2)) == ({*SYMBOLS}, {*SYMBOLS})


def test_vocabularies_have_placeholders_and_batches_repeat(tmp_path: Path) -> None:
    for side in ("src", "tgt"):
        (tmp_path / side).write_text("".join(f"{' '.join(LETTERS[i:])}\n" for i in range(8)) * 4)
    corpus = CorpusConfig(
        "c", str(tmp_path / "src"), str(tmp_path / "tgt"), transforms=("copychars",)
    )
    options = {"copy_symbols": 3, "copy_rate": 0.5}
    data = DataConfig((corpus,), None, batch_size=4, transform_options=options)
    names = build_vocabularies(VocabularyConfig(), all_pairs(data), extra_specials(data))[0]
    assert (
        names.source.copy_symbols == names.target.copy_symbols == ("<copy1>", "<copy2>", "<copy3>")
    )
    runs = []
    for _ in range(2):
        batches = iter(TrainingBatches(data, names))
        runs.append([next(batches) for _ in range(16)])
        batches.close()
    first = names.source.encode(["<copy1>"])[0]
    assert any(bool((batch.source == first).any()) for batch in runs[0])
    assert all(one.source.equal(other.source) for one, other in zip(*runs, strict=True))


class TestCommands:
    """The toy task reverses letters: an unseen letter must come out at its place."""

    @pytest.fixture(scope="class")
    def trained(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("copychars")
        path = write_config(
            folder, transforms=["copychars"], copy_rate=0.5, train_steps=600, valid_steps=600,
            save_checkpoint_steps=600, dropout=[0.0], learning_rate=0.01,
        )  # fmt: skip
        succeed("train.py", "-config", path)
        return folder

    def test_unseen_characters_come_out(self, trained: Path, tmp_path: Path) -> None:
        lines = ["a b é", "ß c", "d é f ß", "ß a ß", "b c d"]
        (tmp_path / "in").write_text("".join(line + "\n" for line in lines))
        arguments = ["-model", trained / "run", "-src", tmp_path / "in"]
        succeed(
            "translate.py", *arguments, "-output", tmp_path / "out", "-verify",
            "-exactness_report", tmp_path / "report",
        )  # fmt: skip
        right = [" ".join(reversed(line.split())) for line in lines]
        found = (tmp_path / "out").read_text().splitlines()
        assert sum(a == b for a, b in zip(found, right, strict=True)) >= 4
        assert "<copy" not in "".join(found)
        records = [json.loads(line) for line in (tmp_path / "report").read_text().splitlines()]
        assert [record["source"] for record in records] == lines
        assert all(record["verified"] for record in records if record["certificate"] != "none")
        # Forced decoding of what was found gives the probabilities that the search gave.
        succeed(
            "onmt_entmax",
            "score",
            *arguments,
            "-tgt",
            tmp_path / "out",
            "-output",
            tmp_path / "scores",
        )
        scores = [json.loads(line) for line in (tmp_path / "scores").read_text().splitlines()]
        for score, record, text in zip(scores, records, found, strict=True):
            assert score["log_prob"] == pytest.approx(record["hypotheses"][0]["log_prob"], abs=1e-4)
            assert [step["token"] for step in score["steps"][:-1]] == text.split()

        # The page draws every one of them: it finds the report's probabilities again.
        printed = succeed(
            "onmt_entmax", "report", "-model", trained / "run", "-report", tmp_path / "report",
            "-output", tmp_path / "page.html",
        )  # fmt: skip
        assert "no pictures" not in printed

    def test_prefixes_and_suggestions_name_the_character(
        self, trained: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "in").write_text("a b é\n")
        (tmp_path / "prefix").write_text("é\n")
        succeed(
            "translate.py", "-model", trained / "run", "-src", tmp_path / "in", "-output",
            tmp_path / "out", "-tgt", tmp_path / "prefix", "-tgt_prefix",
        )  # fmt: skip
        assert (tmp_path / "out").read_text().split()[0] == "é"
        printed = succeed(
            "onmt_entmax", "suggest", trained / "run", "--source", "a b é", "--prefix", "é"
        )
        assert "<copy" not in printed

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"copy_rate": 1.0}, "copy_rate: must be at least 0 and below 1"),
            ({"copy_symbols": 0}, "copy_symbols: must be a whole number from 1"),
        ],
    )
    def test_bad_values(self, tmp_path: Path, changes: dict, message: str) -> None:
        path = write_config(tmp_path, transforms=["copychars"], **changes)
        assert message in fail("train.py", "-config", path)
