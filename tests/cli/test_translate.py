"""translate.py, end to end: answers, their report, requests, and bad input."""

import json
import math
import shutil
from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.files.checksums import write_list
from onmt_entmax.report.reading import read_report
from onmt_entmax.search import decide
from tests.commands import ROOT, fail, json_lines, succeed, toy_ende


def translate(trained: Path, folder: Path, text: str, *options: object) -> list[dict]:
    """Translate `text`; returns the records of the exactness report."""
    (folder / "in").write_text(text)
    output, report = folder / "out", folder / "report.jsonl"
    succeed(
        "translate.py", "-model", trained / "run", "-src", folder / "in", "-output", output,
        "-exactness_report", report, *options,
    )  # fmt: skip
    return json_lines(report)


def test_translations_and_their_report(trained: Path, tmp_path: Path) -> None:
    source = (trained / "valid.src").read_text()
    records = translate(trained, tmp_path, source, "-beam_size", 10)
    references = (trained / "valid.tgt").read_text().splitlines()
    outputs = (tmp_path / "out").read_text().splitlines()
    assert len(outputs) == len(references) == len(records)
    right = sum(a == b for a, b in zip(outputs, references, strict=True))
    assert right / len(references) > 0.5
    for record, output, line in zip(records, outputs, source.splitlines(), strict=True):
        assert record["source"] == line
        best = record["hypotheses"][0]
        assert best["text"] == output
        assert math.isclose(math.exp(best["log_prob"]), best["prob"], rel_tol=1e-6)
        assert 0 < best["prob"] <= record["mass"] + 1e-9 <= 1 + 1e-5
        assert (record["proven"] > 0) == (record["certificate"] != "none")
        assert (record["gap"] is None) == (record["bound"] == 0)
        if record["certificate"] == "optimal":
            assert math.isclose(record["gap"], best["log_prob"] - math.log(record["bound"]))
        if record["certificate"] == "exhaustive":
            assert math.isclose(record["mass"], 1, abs_tol=1e-5)
            assert record["bound"] == record["dropped"] == record["truncated"] == 0
        if record["certificate"] != "none":
            assert best["prob"] >= record["bound"]
    summary = json.loads((tmp_path / "report.jsonl.summary.json").read_text())
    counts = [record["certificate"] for record in records]
    assert summary["certificates"] == {
        level: counts.count(level) for level in ("exhaustive", "optimal", "none")
    }
    assert summary["certificates"]["exhaustive"] > 0


def test_blank_lines_keep_their_place(trained: Path, tmp_path: Path) -> None:
    records = translate(trained, tmp_path, "a b c\n\n   \nb a\n", "-n_best", 2)
    lines = (tmp_path / "out").read_text().split("\n")
    assert len(lines) == 4 * 2 + 1
    assert lines[2:6] == [""] * 4
    assert [bool(record["hypotheses"]) for record in records] == [True, False, False, True]


def test_tokens_that_training_never_saw_are_named(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a b\nfed x\n")
    files = ("-src", tmp_path / "in", "-output", tmp_path / "out", "-exactness_report")
    said = succeed("translate.py", "-model", trained / "run", *files, tmp_path / "report.jsonl")
    assert "2 of 4 source tokens (50.00 %), in 1 of 2 lines, not" in said
    assert "'fed', 'x'" in said
    records = json_lines(tmp_path / "report.jsonl")
    assert [record.get("unknown") for record in records] == [None, {"fed": 1, "x": 1}]
    summary = json.loads((tmp_path / "report.jsonl.summary.json").read_text())
    assert (summary["unknown_tokens"], summary["unknown_percent"]) == (2, 50.0)


@pytest.mark.parametrize("more", [[], ["-random_sampling_topk", 2], ["-length_penalty", "avg"]])
def test_scores_behind_the_outputs_are_those_of_the_report(
    trained: Path, tmp_path: Path, more: list[object]
) -> None:
    text = "\n" + (trained / "valid.src").read_text()
    records = translate(trained, tmp_path, text, "-with_score", "-n_best", 2, *more)
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines[:2] == ["", ""]
    written = [line for line in lines if line]
    outputs = [each for r in records for each in (r.get("hypotheses") or r.get("samples", []))[:2]]
    expected = [each.get("score", each["log_prob"]) for each in outputs]
    assert written == [f"{o['text']}\t{s}" for o, s in zip(outputs, expected, strict=True)]
    scored = any(s != o["log_prob"] for o, s in zip(outputs, expected, strict=True))
    assert scored == ("avg" in more)


def test_exact_search_proves_every_answer(trained: Path, tmp_path: Path) -> None:
    source = (trained / "valid.src").read_text()
    narrow = translate(trained, tmp_path, source, "-beam_size", 1, "-stop", "first")
    exact = translate(trained, tmp_path, source, "-beam_size", 1, "-search", "exact")
    assert all(record["certificate"] != "none" for record in exact)
    for one, other in zip(narrow, exact, strict=True):
        assert other["hypotheses"][0]["prob"] >= one["hypotheses"][0]["prob"] - 1e-6


def test_enumeration_lists_the_support(trained: Path, tmp_path: Path) -> None:
    whole = translate(trained, tmp_path, "a b c\nd e\n", "-search", "enumerate")
    for record in whole:
        assert record["certificate"] == "exhaustive"
        assert len(record["hypotheses"]) == record["finished"]
        assert math.isclose(sum(h["prob"] for h in record["hypotheses"]), 1, abs_tol=1e-5)
    part = translate(trained, tmp_path, "a b c\nd e\n", "-search", "enumerate", "-mass", 0.5)
    assert all(record["mass"] >= 0.5 for record in part)


def test_certified_answers_are_verified_in_float64(trained: Path, tmp_path: Path) -> None:
    source = (trained / "valid.src").read_text()
    records = translate(trained, tmp_path, source, "-beam_size", 10, "-verify")
    certified = [record for record in records if record["certificate"] != "none"]
    assert certified
    assert all(record["verified"] for record in certified)
    summary = json.loads((tmp_path / "report.jsonl.summary.json").read_text())
    assert (summary["verified"], summary["disagreements"]) == (len(certified), 0)


def test_requests_are_kept(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "prefixes").write_text("c\n\n")
    forced = translate(
        trained, tmp_path, "a b c\nd e\n", "-tgt", tmp_path / "prefixes", "-tgt_prefix"
    )
    assert forced[0]["hypotheses"][0]["text"].startswith("c")
    (longer,) = translate(trained, tmp_path, "a b\n", "-min_length", 5, "-beam_size", 20)
    assert (longer["hypotheses"], longer["excluded"]) == ([], pytest.approx(1, abs=1e-5))
    requests = ["-block_ngram_repeat", 1, "-ban_unk_token", "-length_penalty", "avg"]
    blocked = translate(trained, tmp_path, "a a b\n", *requests)
    for hypothesis in blocked[0]["hypotheses"]:
        tokens = hypothesis["text"].split()
        assert len(set(tokens)) == len(tokens)
    arguments = translation(trained / "run", tmp_path, tgt=tmp_path / "prefixes")
    assert "tgt (without tgt_prefix; for its prob" in succeed("translate.py", *arguments)
    (tmp_path / "prefixes").write_text("Q\n")
    message = fail("translate.py", *arguments, "-tgt_prefix")
    assert "prefix of line 1: 'Q' is not in the target vocabulary" in message
    (tmp_path / "prefixes").write_text("a\nb\nc\n")
    assert "has 1; they must correspond" in fail("translate.py", *arguments, "-tgt_prefix")


@pytest.fixture
def broken(trained: Path, tmp_path: Path) -> Path:
    """A copy of the trained model that a test may damage."""
    return Path(shutil.copytree(trained / "run" / "step_400", tmp_path / "model"))


def translation(model: Path, folder: Path, **changes: object) -> list[object]:
    (folder / "in").write_text("a b\n")
    arguments = {"model": model, "src": folder / "in", "output": folder / "out"} | changes
    return [word for key, value in arguments.items() for word in (f"-{key}", value)]


def test_an_ensemble_of_different_vocabularies(trained: Path, broken: Path, tmp_path: Path) -> None:
    tokens = json.loads((broken / "vocab.json").read_text())
    tokens["target"][-1] = "Q"
    (broken / "vocab.json").write_text(json.dumps(tokens))
    write_list(broken)
    arguments = translation(trained / "run", tmp_path)
    message = fail("translate.py", *arguments[:2], broken, *arguments[2:])
    assert "the target vocabulary of model 2 has 'Q', that of model 1 has not" in message


def test_an_empty_file_and_bytes_that_are_not_text(trained: Path, tmp_path: Path) -> None:
    arguments = translation(trained / "run", tmp_path)
    (tmp_path / "in").write_text("")
    assert "the file is empty" in fail("translate.py", *arguments)
    (tmp_path / "in").write_bytes(b"a b\n\xff\xfe\n")
    assert ":2: not UTF-8 text" in fail("translate.py", *arguments)
    assert not (tmp_path / "out").exists()


def test_a_line_too_long_for_a_transformer(tmp_path: Path) -> None:
    toy_ende(tmp_path)
    small = ["-enc_layers", 1, "-dec_layers", 1, "-transformer_ff", 8, "-heads", 2]
    sizes = ["-rnn_size", 8, "-word_vec_size", 8, "-batch_size", 64, "-train_steps", 1]
    config = ROOT / "tests" / "stock" / "transformer.yaml"
    succeed("train.py", "-config", config, "-gpu_ranks", *small, *sizes, cwd=tmp_path)
    arguments = translation(tmp_path / "toy-ende/run/transformer", tmp_path)
    (tmp_path / "in").write_text("a b\n" + "a " * 10_000 + "\n")
    for method in ("beam", "enumerate"):
        message = fail("translate.py", *arguments, "-search", method)
        assert "line 2 (10,000 tokens): is longer than a Transformer" in message


def test_outputs_may_be_devices_and_links_but_not_the_same_file(
    trained: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "linked")
    (tmp_path / "linked").write_text("before")
    arguments = translation(trained / "run", tmp_path, output=tmp_path / "link")
    succeed("translate.py", *arguments, "-exactness_report", "/dev/stdout")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "linked").read_text() not in ("", "before")
    assert not Path("/dev/stdout.summary.json").exists()
    message = fail("translate.py", *arguments, "-exactness_report", tmp_path / "linked")
    assert "is to be written twice" in message


def test_no_output_takes_the_place_of_what_is_read_or_of_another(
    trained: Path, tmp_path: Path
) -> None:
    source = tmp_path / "src"
    source.write_text("a b\n")
    asked = ["translate.py", "-model", trained / "run", "-src", source, "-output"]
    report = tmp_path / "x"
    for more, message in (
        ([source], f"{source}: is read, and would be overwritten"),
        ([tmp_path / "o", "-exactness_report", source], f"{source}: is read"),
        ([source, "-tgt_subword_model", source, "-src", trained / "valid.src"], "is read"),
        ([f"{report}.summary.json", "-exactness_report", report], "is to be written twice"),
        (
            [tmp_path / "o", "-min_length", 5, "-max_length", 3],
            "min_length: is above max_length, 3",
        ),
    ):
        assert message in fail(*asked, *more)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["src"]
    assert source.read_text() == "a b\n"
    (tmp_path / "x.summary.json").mkdir()
    fail(*asked, tmp_path / "o", "-exactness_report", report)
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("search", ["beam", "exact"])
def test_a_length_reward_counts_tokens_as_the_report_does(
    trained: Path, tmp_path: Path, search: str
) -> None:
    text = "a b c\nd e\na\n"
    plain = ["-beam_size", 4, "-n_best", 3, "-search", search, "-verify"]
    options = [*plain, "-length_reward", 0.7, "-length_ratio", 1.4]
    records = translate(trained, tmp_path, text, *options)
    for record in records:
        assert record["penalties"]["length_reward"] == 0.7
        assert record["verified"] in (True, None)
        for hypothesis in record["hypotheses"]:
            tokens = hypothesis.get("tokens", hypothesis["text"]).split()
            reward = 0.7 * min(len(tokens) + 1, 1.4 * record["source_tokens"])
            assert hypothesis["score"] == pytest.approx(hypothesis["log_prob"] + reward)
    none = translate(trained, tmp_path, text, *plain, "-length_reward", 0)
    assert none == translate(trained, tmp_path, text, *plain)


@pytest.mark.parametrize("search", ["beam", "enumerate"])
def test_the_output_of_minimum_bayes_risk(trained: Path, tmp_path: Path, search: str) -> None:
    records = translate(
        trained, tmp_path, "a b c\n\nd e\n", "-mbr", "edit_distance", "-search", search,
        "-n_best", 2,
    )  # fmt: skip
    written = (tmp_path / "out").read_text().splitlines()
    assert len(written) == 6
    for place, record in enumerate(records):
        if place == 1:
            assert "mbr" not in record
            continue
        assert len(record["hypotheses"]) == record["finished"]
        texts = {hypothesis["text"]: hypothesis["prob"] for hypothesis in record["hypotheses"]}
        decision = decide("edit_distance", texts, record["mbr"]["slack"], 0.0, 0.0)
        ranking = record["mbr"]["ranking"]
        assert [each["text"] for each in ranking] == list(decision.texts)
        assert [each["expected_utility"] for each in ranking] == list(decision.expected)
        assert record["mbr"]["certificate"] == decision.level
        assert (decision.level == "exact") == (record["certificate"] == "exhaustive")
        assert written[2 * place : 2 * place + 2] == [*decision.texts, "", ""][:2]
    summary = json.loads((tmp_path / "report.jsonl.summary.json").read_text())
    assert sum(summary["mbr"].values()) == 2


def test_samples_and_their_report(trained: Path, tmp_path: Path) -> None:
    options = ["-random_sampling_topk", -1, "-n_best", 3, "-seed", 3]
    lines = "a b c\n\nd e\n"
    records = translate(trained, tmp_path, lines, *options, "-random_sampling_temp", 2)
    written = (tmp_path / "out").read_text().splitlines()
    drawn = [[one["text"] for one in record["samples"]] for record in records]
    assert [len(each) for each in drawn] == [3, 0, 3]
    assert written == [*drawn[0], "", "", "", *drawn[2]]
    assert all(0 < one["prob"] <= 1 for record in records for one in record["samples"])
    summary = json.loads((tmp_path / "report.jsonl.summary.json").read_text())
    assert (summary["sentences"], summary["blank_lines"], summary["samples"]) == (2, 1, 6)
    settings = {"topk": -1, "topp": 0.0, "temp": 2.0, "distinct": False, "seed": 3}
    assert (summary["search"], summary["sampling"]) == ("sampling", settings)
    distinct = translate(trained, tmp_path, lines, *options, "-random_sampling_distinct")
    found = [one["text"] for one in distinct[2]["samples"]]
    assert len(set(found)) == len(found)
    with pytest.raises(UserError, match="1: a record of samples, which have no certificate"):
        next(read_report(tmp_path / "report.jsonl"))


def test_alignments_beside_the_output_and_in_the_report(trained, tmp_path) -> None:
    records = translate(
        trained, tmp_path, "a b c\n\nd e\n", "-n_best", 2, "-beam_size", 4, "-report_align"
    )
    lines = (tmp_path / "out.align").read_text().splitlines()
    assert len(lines) == 6
    assert lines[2:4] == ["", ""]
    for line, text in zip(lines, (tmp_path / "out").read_text().splitlines(), strict=True):
        pairs = [tuple(map(int, pair.split("-"))) for pair in line.split()]
        assert {j for _, j in pairs} == set(range(len(text.split())))
    found = records[0]["hypotheses"][0]
    assert lines[0] == " ".join(f"{i}-{j}" for i, j, _ in sorted(found["alignment"]["links"]))
    sums = [0.0] * len(found["alignment"]["target"])
    for _, j, weight in found["alignment"]["links"]:
        assert weight > 0
        sums[j] += weight
    assert all(math.isclose(total, 1, abs_tol=1e-5) for total in sums)


def test_outputs_below_a_probability_are_left_out(trained: Path, tmp_path: Path) -> None:
    source = (trained / "valid.src").read_text() + "\n"
    probs = sorted(r["hypotheses"][0]["prob"] for r in translate(trained, tmp_path, source)[:-1])
    least = (probs[9] + probs[10]) / 2
    records = translate(trained, tmp_path, source, "-abstain", least, "-report_align")
    outputs = (tmp_path / "out").read_text().splitlines()
    best = [each["hypotheses"][0] for each in records[:-1]]
    assert outputs == [each["text"] if each["prob"] >= least else "" for each in best] + [""]
    aligned = (tmp_path / "out.align").read_text().splitlines()
    assert list(map(bool, aligned)) == list(map(bool, outputs))
    assert [each.get("abstained", False) for each in records] == [
        *(each["prob"] < least for each in best), False,
    ]  # fmt: skip
    summary = json.loads((tmp_path / "report.jsonl.summary.json").read_text())
    assert (summary["abstained"], summary["blank_lines"]) == (10, 1)
    evaluated = ["bleu", tmp_path / "out", "--report", tmp_path / "report.jsonl"]
    (tmp_path / "ref").write_text((trained / "valid.tgt").read_text() + "\n")
    told = succeed("onmt_entmax", *evaluated, "--reference", tmp_path / "ref", "--tokenize", "none")
    assert f"{100 * (1 - 10 / len(best)):.2f} %" in told.split("all  ")[1].splitlines()[0]
