"""`onmt-entmax bleu` gives what sacrebleu's own command gives."""

import json
import math
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sacrebleu import corpus_bleu

from onmt_entmax.cli import bleu
from tests.commands import succeed
from tests.ended import ended, refused
from tests.reports import record


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reference and two systems that make mistakes, the second one more of them."""
    folder = tmp_path_factory.mktemp("texts")
    generator = random.Random(4)
    words = "a the man woman dog cat runs sits , . 's quickly over under".split()
    reference = [generator.choices(words, k=generator.randint(4, 14)) for _ in range(60)]
    for name, errors in (("ref", 0.0), ("one", 0.1), ("two", 0.3)):
        lines = [
            " ".join(w if generator.random() > errors else generator.choice(words) for w in line)
            for line in reference
        ]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def sacrebleu(folder: Path, *arguments: str) -> str:
    """Return what sacrebleu's command prints."""
    command = [sys.executable, "-m", "sacrebleu", "ref", *arguments, "--force"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    return done.stdout


@pytest.mark.parametrize(
    ("tokenize", "lowercase"), [("13a", []), ("char", ["--lowercase"]), ("none", [])]
)
def test_scores_and_signatures_are_those_of_the_command(
    texts: Path,
    tmp_path: Path,
    tokenize: str,
    lowercase: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "scores.json"
    arguments = [str(texts / "one"), "--reference", str(texts / "ref"), "--output", str(output)]
    assert ended(bleu.main, [*arguments, "--tokenize", tokenize, *lowercase]) == 0
    ours = json.loads(output.read_text())
    wide = ["-i", "one", "-m", "bleu", "chrf", "ter", "-w", "10", "-f", "json"]
    case = ["--lowercase", "--chrf-lowercase"] if lowercase else []
    theirs = json.loads(sacrebleu(texts, *wide, "--tokenize", tokenize, *case))
    shown = capsys.readouterr().out
    for (name, value), expected in zip(
        ours["systems"][str(texts / "one")].items(), theirs, strict=True
    ):
        assert round(value["value"], 10) == expected["score"]
        assert ours["signatures"][name] == expected["signature"]
        assert f" {expected['score']:.2f}" in shown


def test_the_bootstrap_is_that_of_the_command(texts: Path) -> None:
    table = succeed(
        "onmt_entmax", "bleu", "one", "two", "--reference", "ref", "--resamples", 100, cwd=texts
    )
    theirs = sacrebleu(
        texts,
        *["-i", "one", "two", "-m", "bleu", "chrf", "ter", "-w", "2", "-f", "text"],
        *["--paired-bs", "--paired-bs-n", "100"],
    )
    rows = [line for line in table.splitlines() if line.startswith(("one ", "two "))]
    for row in rows:
        for cell in row.split("  ")[1:]:
            numbers = cell.replace("+-", "").replace("(p", "").replace(")", "").split()
            assert all(number in theirs for number in numbers), (cell, theirs)
    assert "(p 0.0099)" in rows[1]
    assert "(p " not in rows[0]


def test_the_same_scores_differ_by_chance(
    texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sacrebleu's own comparison, which asks for a larger difference than 0, has p at its least."""
    copies = [tmp_path / "copy", tmp_path / "capitals"]
    for copy, change in zip(copies, (str, str.upper), strict=True):
        copy.write_text(change((texts / "one").read_text()))
    systems = [str(texts / "one"), *map(str, copies), str(texts / "two")]
    arguments = [*systems, "--reference", str(texts / "ref"), "--resamples", "100"]
    assert ended(bleu.main, [*arguments, "--metrics", "bleu", "--lowercase"]) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if "+-" in line}
    for system, p in zip(systems[1:], ("1.0000", "1.0000", "0.0099"), strict=True):
        assert f"(p {p})" in rows[system]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing", "--reference", "ref"], "missing: no such file"),
        (["report", "--reference", "ref"], "report: an -exactness_report, not text; name the file"),
        (["short", "--reference", "ref"], "short: has 1 line, expected 60"),
        (["five", "--reference", "ref"], "has 300 lines, expected 60, as in the reference (n-best"),
        (["five", "--reference", "ref", "--nbest", "4"], "expected 240, 4 for each of 60 lines of"),
    ],
)
def test_errors_are_one_line(
    texts: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(texts)
    (texts / "short").write_text("a\n")
    (texts / "report").write_text(f"{record('s', 'optimal', ('a', 0.5))}\n" * 60)
    (texts / "five").write_text("a\n" * 300)
    line = refused(bleu.main, arguments)
    assert message in line


class Lists(NamedTuple):
    """Scores of n-best lists of two systems, which begin with the same hypotheses."""

    first: dict[str, float]
    """Values of these first hypotheses alone, by measure."""
    better: dict[str, float]
    """Values of lists whose second hypotheses have fewer errors."""
    best: dict[str, float]
    """Values of lists whose second hypotheses are the references."""
    printed: str


@pytest.fixture
def lists(
    texts: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Lists:
    """Lists of two, which blank lines fill up to three."""
    monkeypatch.chdir(tmp_path)
    ref, one, two = ((texts / name).read_text().splitlines() for name in ("ref", "one", "two"))
    for name, second in (("better", one), ("best", ref)):
        pairs = zip(two, second, strict=True)
        Path(name).write_text("".join(f"{first}\n{other}\n\n" for first, other in pairs))
    Path("ref").write_text("\n".join(ref) + "\n")
    Path("first").write_text("\n".join(two) + "\n")
    assert ended(bleu.main, ["first", "--reference", "ref", "--output", "first.json"]) == 0
    options = ["--reference", "ref", "--nbest", "3", "--resamples", "20", "--output", "lists.json"]
    assert ended(bleu.main, ["better", "best", *options]) == 0
    systems = {}
    for file in ("first.json", "lists.json"):
        for system, measures in json.loads(Path(file).read_text())["systems"].items():
            systems[system] = {name: measure["value"] for name, measure in measures.items()}
    return Lists(**systems, printed=capsys.readouterr().out)


MEASURES = ("BLEU 13a", "chrF2", "TER")


@pytest.mark.parametrize("measure", MEASURES)
def test_the_first_hypotheses_of_lists_are_measured(lists: Lists, measure: str) -> None:
    assert lists.better[measure] == lists.best[measure] == lists.first[measure]


@pytest.mark.parametrize(("measure", "perfect"), [("BLEU 13a", 100), ("chrF2", 100), ("TER", 0)])
def test_the_best_of_each_list_is_measured(lists: Lists, measure: str, perfect: float) -> None:
    """TER counts errors: less is better."""
    assert lists.best[f"{measure}, best of 3"] == pytest.approx(perfect)
    first, better = lists.better[measure], lists.better[f"{measure}, best of 3"]
    assert abs(better - perfect) < abs(first - perfect)


def test_the_best_of_lists_is_printed(lists: Lists) -> None:
    assert "BLEU 13a, best of 3" in lists.printed


def test_bleu_of_the_sentences_that_are_kept(tmp_path: Path) -> None:
    lines = ["the cat sat on the mat today", "a dog ran over the green grass"]
    for name, texts in (("ref", lines), ("out", [lines[0], "nothing of the kind here now"])):
        (tmp_path / name).write_text("\n".join(texts) + "\n")
    chosen = {"ranking": [{"text": "t"}]}  # by minimum Bayes risk; its hypotheses count together
    with open(tmp_path / "report", "w") as file:
        for prob in (0.95, 0.4):
            listed = ("o", 0.04), ("t", prob / 2), ("t", prob / 2)
            print(record("s", "optimal", *listed, bound=0.1, mbr=chosen), file=file)
    options = ["--reference", tmp_path / "ref", "--report", tmp_path / "report"]
    succeed("onmt_entmax", "bleu", tmp_path / "out", *options, "--output", tmp_path / "json")
    curve = json.loads((tmp_path / "json").read_text())["coverage"]
    kept = {each["rule"]: (each["share"], each["quality"]) for each in curve}
    assert kept["p >= 0.9"] == (0.5, pytest.approx(100))
    assert kept["all"][0] == 1.0
    assert kept["exhaustive"] == (0.0, None)


Record = dict[str, Any]


def random_hypotheses(candidates: set[str], generator: random.Random) -> list[Record]:
    """Return three of the candidates with falling probabilities; the shorter ones tend to lead."""
    chosen = generator.sample(sorted(candidates), 3)
    chosen.sort(key=lambda text: len(text) + 20 * generator.random())
    probs = sorted((generator.uniform(0.01, 0.3) for _ in chosen), reverse=True)
    return [
        {"text": text.replace(" ", ""), "tokens": text, "prob": prob, "log_prob": math.log(prob)}
        for text, prob in zip(chosen, probs, strict=True)
    ]


def write_report(texts: Path, path: Path) -> list[Record]:
    """Write a report of lists of three, in which the longer hypotheses are right more often.

    The eighth sentence has none that ended.
    """
    generator, records = random.Random(9), []
    lines = [(texts / name).read_text().splitlines() for name in ("ref", "one", "two")]
    for number, (reference, one, two) in enumerate(zip(*lines, strict=True)):
        shorter = {reference[: len(reference) // 2], "", one[: 3 * len(one) // 4]}
        hypotheses = random_hypotheses({reference, one, two, *shorter}, generator)
        level, bound = generator.choice([("exhaustive", 0.0), ("none", 0.4), ("optimal", 0.005)])
        if number == 7:
            level, bound, hypotheses = "none", 0.5, []
        records.append(
            {
                "id": number,
                "source": "s",
                "certificate": level,
                "bound": bound,
                "mass": 0.5,
                "finished": len(hypotheses) + number % 2,
                "hypotheses": hypotheses,
                "unfinished": reference,
                "source_tokens": generator.randint(1, 14),
                "dropped": 0,
            }
        )
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return records


class Tuned(NamedTuple):
    """A report, references without spaces, and what the command measured and printed."""

    records: list[Record]
    references: list[str]
    rows: list[Record]
    printed: str


@pytest.fixture(scope="module")
def tuned(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Tuned:
    folder = tmp_path_factory.mktemp("tuned")
    records = write_report(texts, folder / "report")
    references = (texts / "ref").read_text().replace(" ", "").replace(".", " . ").splitlines()
    (folder / "ref").write_text("\n".join(references) + "\n")
    options = ["--tune", "length_reward", "--tokenize", "char", "--output", folder / "json"]
    files = ["bleu", folder / "report", "--reference", folder / "ref"]
    printed = succeed("onmt_entmax", *files, *options)
    return Tuned(records, references, json.loads((folder / "json").read_text())["rewards"], printed)


class Chosen(NamedTuple):
    """The output of a record under a length reward."""

    text: str
    is_proven: bool
    """Whether nothing that is not listed may have a higher score."""


def choose(record: Record, reward: float, ratio: float) -> Chosen:
    """Rank the hypotheses of a record, by the definition of the reward."""
    if not record["hypotheses"]:
        return Chosen(record["unfinished"], is_proven=False)
    largest_reward = reward * ratio * record["source_tokens"]
    scored = []
    for hypothesis in record["hypotheses"]:
        length = len(hypothesis["tokens"].split()) + 1  # with the end symbol
        score = hypothesis["log_prob"] + min(reward * length, largest_reward)
        scored.append((score, hypothesis["text"]))
    score, text = max(scored, key=lambda pair: pair[0])
    others = []  # probabilities that other outputs may have
    if record["certificate"] != "exhaustive":
        others.append(record["bound"])
    if record["finished"] > len(scored):
        others.append(record["hypotheses"][-1]["prob"])
    is_proven = all(score >= math.log(prob) + largest_reward - 1e-12 for prob in others)
    return Chosen(text, is_proven)


def choices(row: Record, records: list[Record]) -> list[Chosen]:
    return [choose(record, row["length_reward"], row["length_ratio"]) for record in records]


def test_rewards_are_tried_once_each_and_none_first(tuned: Tuned) -> None:
    assert tuned.rows[0]["length_reward"] == 0
    rewards = {(row["length_reward"], row["length_ratio"]) for row in tuned.rows}
    assert len(rewards) == len(tuned.rows) > 9


def test_a_reward_has_the_bleu_of_the_outputs_that_it_chooses(tuned: Tuned) -> None:
    for row in tuned.rows:
        texts = [chosen.text for chosen in choices(row, tuned.records)]
        expected = corpus_bleu(texts, [tuned.references], tokenize="char").score
        assert row["bleu"] == pytest.approx(expected, abs=1e-9)


def test_a_reward_has_the_share_of_proven_outputs(tuned: Tuned) -> None:
    for row in tuned.rows:
        proven = sum(chosen.is_proven for chosen in choices(row, tuned.records))
        assert row["proven"] == proven / len(tuned.records)
    assert len({row["proven"] for row in tuned.rows}) > 1


def test_the_best_reward_is_printed(tuned: Tuned) -> None:
    best = max(tuned.rows, key=lambda row: row["bleu"])
    assert best["length_reward"] > 0
    assert f"best: -length_reward {best['length_reward']:g} -length_ratio" in tuned.printed


@pytest.mark.parametrize(
    ("change", "more", "message"),
    [
        ({"penalties": {"length_penalty": "avg"}}, [], "report:1: not a record of `translate` w"),
        ({"hypotheses": [{"text": "a", "prob": 0.5}]}, [], "report:1: not a record of `transl"),
        ({"gap": 1e400}, [], "report:1: not JSON"),
        ({"gap": "1e400"}, [], "report:1: not JSON"),
        ({"mbr": {}}, [], "report:1: not a record"),
        ({"hypotheses": []}, [], "report: has no n-best lists: translate with -n_best 30"),
        ({}, ["--metrics", "ter"], "and no --nbest, --report"),
        ({}, ["one"], "--tune takes one report as SYSTEM"),
    ],
)
def test_what_cannot_be_tuned_is_refused(
    texts: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Record,
    more: list[str],
    message: str,
) -> None:
    """Also a number that is too large for a float, which JSON may have."""
    monkeypatch.chdir(tmp_path)
    first, *_ = write_report(texts, tmp_path / "report")
    Path("report").write_text(json.dumps(first | change).replace('"1e400"', "1e400"))
    Path("ref").write_text("a\n")
    command = ["report", *more, "--reference", "ref", "--tune", "length_reward", "--output", "o"]
    assert message in refused(bleu.main, command)
    assert not Path("o").exists()
