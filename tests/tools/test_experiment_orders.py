"""`reversed_source` of a matrix: both orders of writing are decoded, and averaged."""

import json
from pathlib import Path

import combine
import experiment
import yaml
from experiments.matrix import translations
from experiments.measures import figures_of

from onmt_entmax.reports.mixing import mixed
from onmt_entmax.reports.reading import read_report
from onmt_entmax.text.morphology import ask_forward, ask_reversed
from tests.matrices import command, read, write_matrix


def test_both_orders_are_decoded_and_averaged(tmp_path: Path) -> None:
    asked = tmp_path / "valid.reversed.src"
    path = write_matrix(tmp_path, seeds=[1], reversed_source=str(asked))
    lines = (tmp_path / "valid.src").read_text().splitlines()
    asked.write_text("".join(" ".join(ask_reversed(line.split())) + "\n" for line in lines))
    done = command("run", path)
    assert done.returncode == 0, done.stderr

    folder = tmp_path / "runs" / "one" / "seed-1"
    parts = [list(read_report(folder / f"{name}.report.jsonl")) for name in ("forward", "reversed")]
    assert [record["source"] for record in parts[0]] == lines
    assert [" ".join(ask_forward(record["source"].split())) for record in parts[1]] == lines
    # The tests of combine.py and of mixtures say that this is right.
    expected = [mixed(pair, [False, True], [0.5, 0.5]) for pair in zip(*parts, strict=True)]
    assert list(read_report(folder / "dev.report.jsonl")) == expected
    assert (folder / "dev.pred").read_text().splitlines() == list(map(combine.best, expected))

    options = yaml.safe_load((folder / "translate.reversed.yaml").read_text())
    assert (options["n_best"], options["beam_size"], options["src"]) == (3, 3, str(asked))
    (training,) = read(path).trainings()
    figures = figures_of(training)
    assert figures == json.loads((folder / "figures.json").read_text())
    assert figures["exhaustive"] == 100 * sum(
        record["certificate"] == "exhaustive" for record in expected
    ) / len(expected)
    assert command("table", path).stdout.count("| one |") == 1
    asked.write_text(asked.read_text() + "lang=a order=reversed +V a\n")
    assert figures_of(training) is None  # other questions


def test_the_questions_of_the_other_order_are_those_of_this_one(tmp_path: Path, capsys) -> None:
    asked = tmp_path / "valid.reversed.src"
    path = write_matrix(tmp_path, seeds=[1], reversed_source=str(asked))
    lines = (tmp_path / "valid.src").read_text().splitlines()
    marked = [" ".join(ask_reversed(line.split())) for line in lines]
    other = marked[2].replace("+V", "+N")
    for text, message in (
        (None, "no such file"),
        (lines, ".src:1: reversed_source: not line 1 of"),  # without the mark
        ([*marked[:2], other, *marked[3:]], ".src:3: reversed_source: not line 3 of"),
        (marked[:-1], f".src:{len(lines)}: reversed_source"),
        ([*marked, marked[0]], f".src:{len(lines) + 1}: reversed_source"),
    ):
        if text is not None:
            asked.write_text("".join(line + "\n" for line in text))
        assert experiment.main(["run", str(path)]) == 2
        assert message in capsys.readouterr().err
        assert not list((tmp_path / "runs").rglob("log.txt"))


def test_an_enumeration_lists_what_there_is(tmp_path: Path) -> None:
    asked = str(tmp_path / "valid.reversed.src")
    path = write_matrix(tmp_path, reversed_source=asked, translate={"search": "enumerate"})
    for options in translations(read(path).trainings()[0]).values():
        assert "n_best" not in options


def test_without_a_beam_size_each_order_lists_five(tmp_path: Path) -> None:
    asked = str(tmp_path / "valid.reversed.src")
    path = write_matrix(tmp_path, reversed_source=asked, translate={})
    for options in translations(read(path).trainings()[0]).values():
        assert (options["beam_size"], options["n_best"]) == (5, 5)
