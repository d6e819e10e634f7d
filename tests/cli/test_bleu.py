"""`onmt-entmax bleu` gives what sacrebleu's own command gives."""

import json
import math
import random
import subprocess
import sys
from pathlib import Path

import pytest
from sacrebleu import corpus_bleu

from onmt_entmax.cli import bleu
from tests.commands import succeed
from tests.ended import ended, refused
from tests.reports import record


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
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
    command = [sys.executable, "-m", "sacrebleu", "ref", *arguments, "--force"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    return done.stdout


@pytest.mark.parametrize(
    ("tokenize", "lowercase"), [("13a", []), ("char", ["--lowercase"]), ("none", [])]
)
def test_scores_and_signatures_are_those_of_the_command(
    texts: Path, tmp_path: Path, tokenize: str, lowercase: list[str], capsys
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


def test_the_same_scores_differ_by_chance(texts: Path, tmp_path: Path, capsys) -> None:
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
def test_errors_are_one_line(texts: Path, monkeypatch, arguments: list[str], message: str) -> None:
    monkeypatch.chdir(texts)
    (texts / "short").write_text("a\n")
    (texts / "report").write_text(f"{record('s', 'optimal', ('a', 0.5))}\n" * 60)
    (texts / "five").write_text("a\n" * 300)
    line = refused(bleu.main, arguments)
    assert message in line


def test_n_best_lists(texts: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    """The first hypotheses are measured, and the best of each list by each measure."""
    monkeypatch.chdir(tmp_path)
    sides = {name: (texts / name).read_text().splitlines() for name in ("ref", "one", "two")}
    (tmp_path / "ref").write_text((texts / "ref").read_text())
    (tmp_path / "first").write_text((texts / "two").read_text())
    lists = [  # worse, better, blank: a list of two
        "".join(f"{two}\n{one}\n\n" for one, two in zip(sides["one"], sides["two"], strict=True)),
        "".join(f"{two}\n{ref}\n\n" for ref, two in zip(sides["ref"], sides["two"], strict=True)),
    ]
    (tmp_path / "a").write_text(lists[0])
    (tmp_path / "b").write_text(lists[1])
    assert ended(bleu.main, ["first", "--reference", "ref", "--output", "first.json"]) == 0
    command = ["a", "b", "--reference", "ref", "--nbest", "3", "--resamples", "20"]
    assert ended(bleu.main, [*command, "--output", "lists.json"]) == 0
    assert "BLEU 13a, best of 3" in capsys.readouterr().out
    first = json.loads((tmp_path / "first.json").read_text())["systems"]["first"]
    lists = json.loads((tmp_path / "lists.json").read_text())["systems"]
    for name in ("BLEU 13a", "chrF2", "TER"):
        values = [lists[system][name]["value"] for system in "ab"]
        assert values == [first[name]["value"]] * 2
        best = [lists[system][f"{name}, best of 3"]["value"] for system in "ab"]
        assert best[1] == pytest.approx(0 if name == "TER" else 100)
        assert (best[0] < values[0]) == (name == "TER")


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


def n_best_report(texts: Path, path: Path) -> list[dict]:
    """Write a report of lists of three, in which the longer hypotheses are right more often."""
    generator, records = random.Random(9), []
    lines = [(texts / name).read_text().splitlines() for name in ("ref", "one", "two")]
    for n, (right, one, two) in enumerate(zip(*lines, strict=True)):
        listed = [right, one, two, right[: len(right) // 2], "", one[: 3 * len(one) // 4]]
        listed = generator.sample(sorted(set(listed)), 3)
        listed.sort(key=lambda text: len(text) + 20 * generator.random())
        probs = sorted((generator.uniform(0.01, 0.3) for _ in listed), reverse=True)
        hypotheses = [
            {"text": text.replace(" ", ""), "tokens": text, "prob": p, "log_prob": math.log(p)}
            for text, p in zip(listed, probs, strict=True)
        ]
        level, bound = generator.choice([("exhaustive", 0.0), ("none", 0.4), ("optimal", 0.005)])
        if n == 7:
            level, bound, hypotheses = "none", 0.5, []
        records.append(
            {"id": n, "source": "s", "certificate": level, "bound": bound, "mass": 0.5}
            | {"finished": len(hypotheses) + n % 2, "hypotheses": hypotheses, "unfinished": right}
            | {"source_tokens": generator.randint(1, 14), "dropped": 0}
        )
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return records


def test_a_length_reward_is_tuned_on_n_best_lists(texts: Path, tmp_path: Path) -> None:
    records = n_best_report(texts, tmp_path / "report")
    reference = (texts / "ref").read_text().replace(" ", "").replace(".", " . ").splitlines()
    (tmp_path / "ref").write_text("\n".join(reference) + "\n")
    shown = succeed(
        *("onmt_entmax", "bleu", tmp_path / "report", "--reference", tmp_path / "ref"),
        *("--tune", "length_reward", "--tokenize", "char", "--output", tmp_path / "json"),
    )
    rows = json.loads((tmp_path / "json").read_text())["rewards"]
    assert rows[0]["length_reward"] == 0
    assert len({(row["length_reward"], row["length_ratio"]) for row in rows}) == len(rows) > 9
    for row in rows:
        texts_chosen, proven = [], 0
        for each in records:
            most = row["length_reward"] * row["length_ratio"] * each["source_tokens"]
            scored = [
                (
                    h["log_prob"]
                    + min(row["length_reward"] * (len(h["tokens"].split()) + 1), most),
                    h,
                )
                for h in each["hypotheses"]
            ]
            if not scored:
                texts_chosen.append(each["unfinished"])
                continue
            score, best = max(scored, key=lambda pair: pair[0])
            texts_chosen.append(best["text"])
            rest = [each["bound"]] if each["certificate"] != "exhaustive" else []
            rest += [scored[-1][1]["prob"]] * (each["finished"] > len(scored))
            proven += all(score >= math.log(other) + most - 1e-12 for other in rest)
        expected = corpus_bleu(texts_chosen, [reference], tokenize="char").score
        assert row["bleu"] == pytest.approx(expected, abs=1e-9)
        assert row["proven"] == proven / len(records)
    best = max(rows, key=lambda row: row["bleu"])
    assert best["length_reward"] > 0
    assert f"best: -length_reward {best['length_reward']:g} -length_ratio" in shown
    assert {row["proven"] for row in rows} != {rows[0]["proven"]}


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
def test_what_cannot_be_tuned(texts, tmp_path, monkeypatch, change, more, message) -> None:
    monkeypatch.chdir(tmp_path)
    record = n_best_report(texts, tmp_path / "report")[0]
    Path("report").write_text(json.dumps(record | change).replace('"1e400"', "1e400"))
    Path("ref").write_text("a\n")
    command = ["report", *more, "--reference", "ref", "--tune", "length_reward", "--output", "o"]
    assert message in refused(bleu.main, command)
    assert not Path("o").exists()
