"""`onmt-entmax score`: what it writes for a small model, and every kind of bad input."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from onmt_entmax.checkpoint import save
from onmt_entmax.cli import score
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.model import build_model
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tests.commands import json_lines
from tests.ended import ended, refused
from tests.models import small, small_transformer, words

VOCABULARIES = words("ab", "xyz")


def write_model(folder: Path, seed: int, vocabularies: Vocabularies = VOCABULARIES, **options: Any):
    torch.manual_seed(seed)
    config = small(generator_alpha=1.5, param_init=0.7)
    model = build_model(config, vocabularies).eval()
    save(folder, model, config, vocabularies, options)
    return model


def write_lines(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def run(folder: Path, *models: Path, source: list[str], target: list[str]) -> list[dict]:
    files = write_lines(folder / "src", source), write_lines(folder / "tgt", target)
    output = folder / "scores.jsonl"
    arguments = ["-src", files[0], "-tgt", files[1], "-output", output, "-model", *models]
    assert ended(score.main, list(map(str, arguments))) == 0
    return json_lines(output)


@pytest.mark.usefixtures("pyonmttok")
@pytest.mark.parametrize("order", ["left_to_right", "right_to_left"])
def test_texts_are_read_as_translate_writes_them(tmp_path, order) -> None:
    letters = words(["a", "b", "a￭", "b￭"], ["x", "y", "x￭", "y￭"])
    kwargs = "{'mode': 'char', 'joiner_annotate': True}"
    options = {f"{side}_onmttok_kwargs": kwargs for side in ("src", "tgt")}
    options |= {"target_order": order, "transforms": ["onmt_tokenize"]}
    write_model(tmp_path / "model", 3, letters, **options)
    task = SearchTask(SearchConfig(n_best=20, beam_size=20, max_length=6))
    (answer,) = Translator.from_folders(tmp_path / "model", task).answers(["ab ba"])
    found = [each for each in answer.hypotheses if "￭" not in each.text and each.text]
    assert len(found) > 1
    target = [each.text for each in found]
    records = run(tmp_path, tmp_path / "model", source=["ab ba"] * len(found), target=target)
    same = 0
    for each, record in zip(found, records, strict=True):
        tokens = letters.target.decode(each.hypothesis.tokens)
        # Joiners at the end of a text are lost.
        if [step["token"] for step in record["steps"]] == [*tokens, "</s>"]:
            assert record["log_prob"] == pytest.approx(each.hypothesis.log_prob, abs=1e-5)
            same += 1
    assert same > 1


def test_scores_are_those_of_training_in_the_order_of_the_file(tmp_path, capsys) -> None:
    model = write_model(tmp_path / "model", 0)
    source = ["a b a", "b", "a a a a", "b a"]
    target = ["x y", "z", "", "x x y z"]
    records = run(tmp_path, tmp_path / "model", source=source, target=target)
    assert [record["id"] for record in records] == [0, 1, 2, 3]
    possible = 0
    for src, tgt, record in zip(source, target, records, strict=True):
        ids = VOCABULARIES.target.encode(tgt.split())
        batch = make_batch([Example(VOCABULARIES.source.encode(src.split()), ids, 0)], VOCABULARIES)
        with torch.no_grad():
            hidden, gold = model.hidden_states(batch)
            log_probs = model.generator.log_probs(hidden)
        expected = log_probs.gather(1, gold[:, None])[:, 0].tolist()
        assert [step["token"] for step in record["steps"]] == [*tgt.split(), "</s>"]
        for step, value in zip(record["steps"], expected, strict=True):
            if value == -math.inf:
                assert step["log_prob"] is None
            else:
                assert step["log_prob"] == pytest.approx(value, abs=1e-5)
        excluded = [i for i, value in enumerate(expected) if value == -math.inf]
        assert record["excluded_at"] == (excluded[0] if excluded else None)
        assert (record["log_prob"] is None) == bool(excluded)
        possible += not excluded
    assert f"possible {possible} " in capsys.readouterr().out


def test_a_token_that_no_output_has_cannot_be_produced(tmp_path, capsys) -> None:
    write_model(tmp_path / "model", 0)
    target = ["x ö", "<s> y", "x"]
    records = run(tmp_path, tmp_path / "model", source=["a b"] * 3, target=target)
    for record, place, token in zip(records, (1, 0), ("ö", "<s>"), strict=False):
        assert (record["log_prob"], record["excluded_at"]) == (None, place)
        step = record["steps"][place]
        assert (step["token"], step["log_prob"], step["rank"]) == (token, None, step["support"] + 1)
        assert record["unknown_target"] == {token: 1}
    assert "unknown_target" not in records[2]
    printed = capsys.readouterr()
    assert "possible 1 (33.33%)" in printed.out
    assert "target tokens" in printed.err


OTHER_ORDER = words("ba", "zxy")


@pytest.mark.parametrize("second", [VOCABULARIES, OTHER_ORDER], ids=["same ids", "other ids"])
def test_an_ensemble_is_scored_by_the_mean_of_the_probabilities(tmp_path, second) -> None:
    write_model(tmp_path / "0", 0)
    write_model(tmp_path / "1", 1, second)
    single = [run(tmp_path, tmp_path / str(s), source=["a b"], target=["x"])[0] for s in (0, 1)]
    both = run(tmp_path, tmp_path / "0", tmp_path / "1", source=["a b"], target=["x"])[0]
    for step, one, other in zip(*(record["steps"] for record in (both, *single)), strict=True):
        values = [p["log_prob"] for p in (one, other)]
        mean = sum(math.exp(value) for value in values if value is not None) / 2
        assert math.exp(-math.inf if step["log_prob"] is None else step["log_prob"]) == (
            pytest.approx(mean, abs=1e-5)
        )


def test_what_does_not_fit_is_refused(tmp_path) -> None:
    check_refused(tmp_path, "model")
    write_model(tmp_path / "model", 0)
    check_refused(tmp_path, "src: cannot be read (No such file")
    for source, target, message in (
        (["a", "b"], ["x"], "they must correspond"),
        (["a"], ["x", "y"], "they must correspond"),
        (["a", ""], ["x", "y"], ":2: the line is blank"),
    ):
        write_lines(tmp_path / "src", source)
        write_lines(tmp_path / "tgt", target)
        check_refused(tmp_path, message)
    write_model(tmp_path / "other", 0, words("ab", "xyw"))
    check_refused(tmp_path, "the target vocabulary of model", "other")


def check_refused(folder: Path, message: str, *more: str) -> None:
    files = ["-src", folder / "src", "-tgt", folder / "tgt", "-output", folder / "out"]
    models = [folder / name for name in ("model", *more)]
    assert message in refused(score.main, [*files, "-model", *models])
    assert not (folder / "out").exists(), "nothing half-written is left"


def test_the_line_of_an_error_is_that_of_the_file(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(score, "WINDOW", 2)
    config = small_transformer(position_encoding=True)
    save(tmp_path / "model", build_model(config, VOCABULARIES), config, VOCABULARIES, {})
    write_lines(tmp_path / "src", ["a", "b", "a", "a " * 5002])
    write_lines(tmp_path / "tgt", ["x"] * 4)
    check_refused(tmp_path, "line 4 (5,002 tokens): is longer than a Transformer model reads")
