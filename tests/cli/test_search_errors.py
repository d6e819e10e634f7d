"""`tools/search_errors.py`: against the enumerated support of small models."""

import json
import math
from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import load, save
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.model import build_model
from onmt_entmax.search import ModelStepper
from tests.ended import ended, refused
from tests.models import small, small_transformer, words
from tests.search.enumeration import enumerate_support
from tools import search_errors

VOCABULARIES = words("ab", "xyzw")
SOURCES = ["a b a", "b", "a a", "b a a b", "a", "b b b", "a b b a", "b a"]

END = {1.0: 1.5, 1.5: -1.0}  # what makes search errors, and empty strings that are the best


def write_model(folder: Path, alpha: float, seed: int, end: float) -> Path:
    """A model folder; a larger `end` makes shorter strings more probable."""
    torch.manual_seed(seed)
    config = small(generator_alpha=alpha, param_init=2.5)
    model = build_model(config, VOCABULARIES)
    with torch.no_grad():
        model.generator.bias[VOCABULARIES.target.eos] += end
    save(folder, model, config, VOCABULARIES, {})
    return folder


def analyse(folder: Path, model: Path, sources: list[str], *more: str) -> list[dict]:
    (folder / "src").write_text("".join(f"{line}\n" for line in sources), encoding="utf-8")
    output = folder / "errors.jsonl"
    arguments = ["-model", model, "-src", folder / "src", "-output", output, *more]
    assert ended(search_errors.main, list(map(str, arguments))) == 0
    return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("alpha", [1.0, 1.5])
@pytest.mark.parametrize("stop", ["exhaustive", "first"])
def test_records_are_those_of_the_enumerated_support(tmp_path, alpha, stop, capsys) -> None:
    missed = empty_first = 0
    for seed in range(6):
        model = write_model(tmp_path / str(seed), alpha, seed, END[alpha])
        records = analyse(
            tmp_path, model, SOURCES, "-beam_size", "1", "-max_length", "4", "-stop", stop
        )
        loaded = load(model)
        stepper = ModelStepper(loaded.model, VOCABULARIES.target)
        for source, line in zip(SOURCES, records, strict=True):
            batch = make_batch(
                [Example(VOCABULARIES.source.encode(source.split()), None, 0)], VOCABULARIES
            )
            strings = enumerate_support(stepper, batch, 4, 1000).strings
            best = max(strings.values(), default=-math.inf)
            if line["argmax"] is None:
                assert not strings
                continue
            if line["proven"]:
                assert line["argmax"]["log_prob"] == pytest.approx(best, abs=1e-4)
                assert line["argmax"]["length"] == len(line["argmax"]["text"].split())
            own = -math.inf
            if line["beam"] is not None:
                own = strings[tuple(VOCABULARIES.target.encode(line["beam"]["text"].split()))]
                assert line["beam"]["log_prob"] == pytest.approx(own, abs=1e-4)
            if line["missed"] is not None:
                assert line["missed"] == (own < best - 1e-4)
            if () in strings:
                assert line["empty"]["log_prob"] == pytest.approx(strings[()], abs=1e-4)
                better = sum(value > strings[()] for value in strings.values())
                assert 1 <= line["empty"]["rank"] <= 1 + better
                assert (line["empty"]["rank"] == 1) == (better == 0) or not line["proven"]
            else:
                assert line["empty"] is None
            missed += line["missed"] is True
            empty_first += line["proven"] and line["argmax"]["length"] == 0
        printed = capsys.readouterr().out
        count = sum(line["missed"] is True for line in records)
        assert f"argmax missed by the beam   {count:>8}" in printed
    assert missed > 0
    assert empty_first > 0


def test_a_spent_budget_is_told(tmp_path, capsys) -> None:
    model = write_model(tmp_path / "model", 1.0, 3, -3.0)
    records = analyse(
        tmp_path, model, SOURCES, "-beam_size", "1", "-budget", "1", "-max_length", "20"
    )
    unknown = [line for line in records if line["missed"] is None]
    assert unknown
    assert not any(line["proven"] for line in unknown)
    assert f"not known whether missed    {len(unknown):>8}" in capsys.readouterr().out


def test_blank_lines_are_left_out_and_keep_their_numbers(tmp_path, capsys) -> None:
    model = write_model(tmp_path / "model", 1.5, 0, 1.0)
    assert [line["id"] for line in analyse(tmp_path, model, ["a", "", "b a"])] == [0, 2]
    capsys.readouterr()
    assert analyse(tmp_path, model, []) == []
    assert capsys.readouterr().out == "no sentences\n"


def test_the_line_of_an_error_is_that_of_the_file(tmp_path) -> None:
    config = small_transformer(position_encoding=True)
    model = tmp_path / "model"
    save(model, build_model(config, VOCABULARIES), config, VOCABULARIES, {})
    (tmp_path / "src").write_text("\n".join(["a", "", "", "b", "a " * 5002]) + "\n")
    arguments = ["-model", model, "-src", tmp_path / "src", "-output", tmp_path / "out"]
    assert "line 5: its 5,002 tokens" in refused(
        search_errors.main, [*arguments, "-max_length", "3"]
    )


def test_a_missing_file_is_one_line(tmp_path) -> None:
    model = write_model(tmp_path / "model", 1.5, 0, 1.0)
    arguments = ["-model", model, "-src", tmp_path / "none", "-output", tmp_path / "out"]
    assert f"{tmp_path / 'none'}: cannot be read (No such file" in refused(
        search_errors.main, arguments
    )
    assert not (tmp_path / "out").exists()


def test_the_table_counts_records() -> None:
    summary = search_errors.Summary()
    found = {"text": "x", "length": 1, "log_prob": -1.0}
    nothing = {"text": "", "length": 0, "log_prob": -0.5}
    empty = {"log_prob": math.log(0.25), "rank": 1}
    summary.add(
        {
            "level": "none",
            "proven": True,
            "missed": True,
            "beam": found,
            "argmax": nothing,
            "empty": empty,
        }
    )
    summary.add(
        {
            "level": "optimal",
            "proven": True,
            "missed": False,
            "beam": found,
            "argmax": found,
            "empty": None,
        }
    )
    lines = summary.text().splitlines()
    assert "argmax missed by the beam          1    50.00%" in lines
    assert "empty string is the argmax         1    50.00%" in lines
    assert "mean probability of empty       0.12" in lines
    assert "mean length, argmax proven  beam 1.00, argmax 0.50" in lines
    assert "mean length, missed         beam 1.00, argmax 0.00" in lines


def test_the_table_says_what_the_beam_has_proven_itself() -> None:
    """An exact search may prove what a beam has not; and lengths are compared where it is known."""
    summary = search_errors.Summary()
    short, long = ({"text": "", "length": n, "log_prob": -1.0} for n in (0, 4))
    for level, proven, best in (("none", 1, short), ("optimal", 1, long), ("none", 0, short)):
        line = {"level": level, "proven": bool(proven), "missed": None, "empty": None}
        summary.add(line | {"beam": best, "argmax": best})
    lines = summary.text().splitlines()
    assert "proven by the beam                 1    33.33%" in lines
    assert "argmax proven                      2    66.67%" in lines
    assert "empty string is the argmax         1    33.33%" in lines
    assert "mean length, argmax proven  beam 2.00, argmax 2.00" in lines
