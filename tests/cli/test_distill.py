"""`onmt-entmax distill`: from trained models to pairs for another, in one command."""

import os
from pathlib import Path

import pytest

from onmt_entmax import Inflector
from onmt_entmax.report.reading import read_report
from onmt_entmax.strings.task import INFLECTION
from tests.commands import run, succeed
from tests.inflection_models import write_model

QUESTIONS = [
    "lang=english +V +PST a b",
    "lang=english +V b",
    "lang=german +V a",
    "lang=german +V b a",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Training questions, and a model of each direction."""
    folder = tmp_path_factory.mktemp("distill")
    (folder / "train.src").write_text("".join(line + "\n" for line in QUESTIONS))
    write_model(folder / "forward", 1)
    write_model(folder / "backward", 2, options={"target_order": "right_to_left"})
    return folder


def distilled(folder: Path, *more: object, out: str = "distilled") -> str:
    """The command in the folder, which must succeed; returns what it printed."""
    return succeed(
        "onmt_entmax",
        "distill",
        *("--train", "train.src", "--models", "forward", "backward"),
        *("--each", 1, "--beam", 3, "--prob", 0.01, "--out", out, *more),
        cwd=folder,
    )


def refused(folder: Path, *given: object) -> str:
    """The one line of a command that must be refused."""
    done = run("onmt_entmax", "distill", *given, cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("onmt-entmax distill: error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_from_models_to_pairs(folder: Path) -> None:
    """The pairs are what the average of the two models answers; once answered, always answered."""
    printed = distilled(folder)
    assert printed.count("$ onmt-entmax") == 3  # two models, combine
    work = folder / "distilled.work"
    asked = (work / "queries.src").read_text().splitlines()
    assert asked
    assert not set(asked) & set(QUESTIONS)
    best = {
        record["source"]: record["hypotheses"][0]
        for record in read_report(work / "combined.jsonl")
        if record["certificate"] != "none" and record["hypotheses"]
    }

    def likely(least: float) -> set[tuple[str, str]]:
        return {
            (source, answer["text"])
            for source, answer in best.items()
            if least <= answer["prob"] <= 0.95 and "<unk>" not in answer["text"]
        }

    wanted = likely(0.01)
    largest = max(best[source]["prob"] for source, _ in wanted)

    def pairs() -> set[tuple[str, str]]:
        sides = ((folder / f"distilled.{side}").read_text().splitlines() for side in ("src", "tgt"))
        return set(zip(*sides, strict=True))

    assert pairs() == wanted
    # Both directions are averaged by the texts, which stand in natural order.
    both = Inflector([folder / "forward", folder / "backward"], n_best=3, beam_size=3)
    for source, best_text in best.items():
        query = INFLECTION.decode_source(source.split())
        form = both.inflect(query.language, query.source, query.tags).forms[0]
        assert form.text == INFLECTION.target.decode(best_text["text"].split())
        assert form.prob == pytest.approx(best_text["prob"])
    os.utime(work / "1.jsonl", (0, 0))
    printed = distilled(folder, "--prob", largest)
    assert printed.count("$ onmt-entmax") == 1  # combine
    assert printed.count("is done already") == 2
    assert (work / "1.jsonl").stat().st_mtime == 0
    assert pairs() == likely(largest) < wanted
    (work / "2.jsonl").unlink()  # as if it had been stopped before the second model had answered
    assert distilled(folder).count("$ onmt-entmax") == 2
    assert pairs() == wanted
    first = (work / "1.jsonl").read_text()
    (work / "1.jsonl").write_text(first[: first.rindex("\n", 0, -1) + 1])  # as by a full disk
    given = ["--train", "train.src", "--models", "forward", "backward", "--each", 1]
    said = refused(folder, *given, "--beam", 3, "--out", "distilled")
    assert "1.jsonl: cut or damaged, " in said
    (work / "1.jsonl").write_text(first)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--out", "train"], "train.src"),
        (["--out", "x", "--weights", 1], "--weights has 1 number for 2 models"),
        (["--out", "x", "--each", 0], "--each: must be a whole number from 1 to 10,000"),
        (["--out", "x", "--prob", "nan"], "--prob: must be above 0 and at most 1, not 'nan'"),
        (["--out", "x", "--prob", 0.5, "--at-most", 0.4], "--prob 0.5 is above --at-most 0.4"),
        (["--out", "x", "--models", "nowhere"], "nowhere"),
        (["--out", "x", "--reversed", "backward"], "--reversed: no such option; the model folder"),
        (["--out", "x", "--train", "none.src"], "none.src: cannot be read"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(folder: Path, more: list, message) -> None:
    before = sorted(folder.rglob("*"))
    given = ["--train", "train.src", "--models", "forward", "backward", *more]
    assert message in refused(folder, *given)
    assert sorted(folder.rglob("*")) == before


def test_a_model_that_was_trained_anew_answers_anew(folder: Path) -> None:
    write_model(folder / "other", 3)
    given = ["--train", "train.src", "--models", "other", "--each", 1, "--beam", 3]
    succeed("onmt_entmax", "distill", *given, "--prob", 0.01, "--out", "anew", cwd=folder)
    write_model(folder / "other", 4)
    assert "are for other values of models; delete it" in refused(folder, *given, "--out", "anew")
