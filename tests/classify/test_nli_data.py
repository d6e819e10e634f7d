"""Files of sentence pairs."""

import json
from pathlib import Path

import pytest

from onmt_entmax.classify.nli_data import (
    LABELS,
    Pair,
    PairsError,
    count_words,
    encode,
    hold_out,
    make_batch,
    read_pairs,
)

HEAD = "pair_ID\tsentence_A\tsentence_B\tentailment_judgment\n"
SNLI = {
    "gold_label": "contradiction",
    "sentence1": "Two dogs aren't (here).",
    "sentence1_binary_parse": "( ( Two dogs ) ( ( are n't ) ( -LRB- here -RRB- ) ) . )",
    "sentence2_binary_parse": "( Dogs sit )",
}


def written(tmp_path: Path, text: str, name: str = "pairs.tsv") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table(tmp_path: Path) -> None:
    path = written(tmp_path, f"{HEAD}7\tA man, alone\tHe isn't a child’s\tNEUTRAL\r\n")
    (pair,), unlabelled = read_pairs(path, lowercase=False)
    assert pair.premise == ("A", "man", ",", "alone")
    assert pair.hypothesis == ("He", "isn't", "a", "child’s")
    assert (LABELS[pair.label], pair.line, unlabelled) == ("neutral", 2, 0)
    path.write_text(path.read_text().replace("entailment_judgment", "entailment_label"))
    assert read_pairs(path, lowercase=True).pairs[0].premise == ("a", "man", ",", "alone")


def test_lines_of_snli(tmp_path: Path) -> None:
    lines = [SNLI, {**SNLI, "gold_label": "-"}, {**SNLI, "gold_label": "entailment"}]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    pairs, unlabelled = read_pairs(written(tmp_path, text, "snli.jsonl"), lowercase=False)
    assert unlabelled == 1
    assert pairs == [
        Pair(("Two", "dogs", "are", "n't", "-LRB-", "here", "-RRB-", "."), ("Dogs", "sit"), 2, 1),
        Pair(("Two", "dogs", "are", "n't", "-LRB-", "here", "-RRB-", "."), ("Dogs", "sit"), 0, 3),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEAD}1\ta\tb\tNEUTRAL\n1\ta\tb\n", ":3: 3 columns, but line 1 has 4"),
        (f"{HEAD}1\ta\tb\tMAYBE\n", ":2: label 'MAYBE', not entailment, neutral, contradiction"),
        (f"{HEAD}1\t \tb\tNEUTRAL\n", ":2: a sentence without words"),
        ("sentence_A\tsentence_B\n", ":1: no single column entailment_judgment among"),
        ("", ":1: no single column sentence_A"),
        (HEAD, ": no pair with a label"),
    ],
)
def test_a_bad_table(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(PairsError) as caught:
        read_pairs(path, lowercase=True)
    assert str(caught.value).startswith(f"{path}{message}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", ":2: not valid JSON"),
        ("[1]", ":2: [1], not an object of SNLI"),
        ("{}", ":2: gold_label is missing, or is no text"),
        (json.dumps({**SNLI, "sentence2_binary_parse": None}), ":2: sentence2_binary_parse is"),
        (json.dumps({**SNLI, "sentence2_binary_parse": "( )"}), ":2: a sentence without words"),
        (json.dumps({**SNLI, "gold_label": "-x"}), ":2: label '-x'"),
    ],
)
def test_a_bad_line_of_snli(tmp_path: Path, line: str, message: str) -> None:
    path = written(tmp_path, f"{json.dumps(SNLI)}\n{line}\n", "snli.jsonl")
    with pytest.raises(PairsError) as caught:
        read_pairs(path, lowercase=True)
    assert str(caught.value).startswith(f"{path}{message}")


def test_premises_are_held_out_whole() -> None:
    pairs = [Pair((f"w{n // 3}",), ("h",), 0, n) for n in range(60)]
    kept, held = hold_out(pairs, 0.1)
    assert len(held) == 6
    assert sorted(kept + held, key=lambda pair: pair.line) == pairs
    assert not {pair.premise for pair in kept} & {pair.premise for pair in held}
    assert hold_out(pairs, 0.1) == (kept, held)


def test_words_and_ids() -> None:
    pairs = [Pair(("b", "a", "a"), ("b", "c", "a"), 1, 1), Pair(("d",), ("a",), 2, 2)]
    vocabulary = count_words(pairs, min_frequency=2)
    assert vocabulary.tokens[3:] == ("a", "b")
    batch = make_batch(encode(pairs, vocabulary))
    assert batch.premises.tolist() == [[4, 3, 3], [0, 0, 0]]  # `d` is unknown, and padding is 0
    assert batch.premise_lengths.tolist() == [3, 1]
    assert batch.hypotheses.tolist() == [[2, 4, 0, 3], [2, 3, 0, 0]]
    assert batch.hypothesis_lengths.tolist() == [4, 2]
    assert batch.labels.tolist() == [1, 2]
