"""`onmt-entmax suggest` and `onmt_entmax.suggest`: against the model's own distributions."""

import io
import math
from pathlib import Path

import pytest
import torch

import onmt_entmax
from onmt_entmax.checkpoint import load, save
from onmt_entmax.cli import suggest
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.model import build_model
from onmt_entmax.suggester import SuggestionError
from onmt_entmax.suggester import suggest as suggestions
from tests.ended import ended, refused
from tests.models import small, words

VOCABULARIES = words("ab", "xyz")


def write_model(folder: Path, certain: bool = False, alpha: float = 1.5) -> Path:
    """A model folder; where `certain`, every next token follows from the one before."""
    torch.manual_seed(2)
    config = small(generator_alpha=alpha, param_init=0.7)
    model = build_model(config, VOCABULARIES)
    with torch.no_grad():
        # No string has them, so that no probability is lost.
        model.generator.bias[[VOCABULARIES.target.pad, VOCABULARIES.target.bos]] = -100.0
        if certain:
            model.generator.weight.mul_(50)
    save(folder, model, config, VOCABULARIES, {})
    return folder


def next_tokens(folder: Path, source: str, prefix: str) -> dict[str, float]:
    """Probabilities after a prefix, from the pass that training takes."""
    loaded = load(folder)
    ids = VOCABULARIES.target.encode(prefix.split())
    batch = make_batch([Example(VOCABULARIES.source.encode(source.split()), ids, 0)], VOCABULARIES)
    with torch.no_grad():
        hidden, _ = loaded.model.hidden_states(batch)
        probabilities = loaded.model.generator.log_probs(hidden)[-1].exp().tolist()
    named = zip(VOCABULARIES.target.tokens, probabilities, strict=True)
    # A softmax gives padding and start symbol, which no string has, next to nothing.
    return {token: p for token, p in named if p > 0 and token not in ("<blank>", "<s>")}


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("prefix", ["", "x", "x y z"])
def test_every_possible_next_token_and_no_other_is_listed(tmp_path, prefix, alpha) -> None:
    folder = write_model(tmp_path / "model", alpha=alpha)
    found = suggestions(load(folder), "a b a", prefix)
    expected = next_tokens(folder, "a b a", prefix)
    assert {c.token: c.prob for c in found.continuations} == pytest.approx(expected, abs=1e-6)
    probabilities = [c.prob for c in found.continuations]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) == pytest.approx(1.0, abs=1e-5)


def test_the_completion_is_what_follows_for_certain(tmp_path) -> None:
    folder = write_model(tmp_path / "model", certain=True)
    forced = 0
    for prefix in ("", "x", "y", "z", "x x", "z y"):
        found = suggestions(load(folder), "a b", prefix, max_length=6)
        written = prefix.split()
        while len(possible := next_tokens(folder, "a b", " ".join(written))) == 1:
            if "</s>" in possible or len(written) == 6:
                break
            written += possible
        assert [*prefix.split(), *found.completion] == written
        assert found.complete == (list(possible) == ["</s>"])
        forced += len(found.completion)
    assert forced > 5, "the model leaves no choice somewhere"


def test_an_excluded_prefix_is_told_with_its_place(tmp_path, capsys) -> None:
    folder = write_model(tmp_path / "model", certain=True)
    possible = next_tokens(folder, "a", "")
    other = next(token for token in "xyz" if token not in possible)
    found = suggestions(load(folder), "a", f"{other} x")
    assert (found.log_prob, found.excluded_at) == (-math.inf, 0)
    assert ended(suggest.main, [str(folder), "--source", "a", "--prefix", f"{other} x"]) == 0
    assert f"the model excludes {other!r} (token 1 of the prefix)" in capsys.readouterr().out


def test_what_the_command_prints(tmp_path, capsys) -> None:
    folder = write_model(tmp_path / "model", alpha=1.0)
    command = [str(folder), "--source", "a b", "--prefix", "x", "--top", "2"]
    assert ended(suggest.main, command) == 0
    lines = capsys.readouterr().out.splitlines()
    found = suggestions(load(folder), "a b", "x")
    assert lines[0] == f"prefix    {math.exp(found.log_prob):.6f}"
    assert lines[1:3] == [f"next      {c.prob:.6f}  {c.token}" for c in found.continuations[:2]]
    rest = found.continuations[2:]
    assert lines[3] == f"          {sum(c.prob for c in rest):.6f}  on {len(rest)} more"
    assert lines[4:] == ["forced    -"]


def test_prefixes_are_read_where_none_is_given(tmp_path, capsys, monkeypatch) -> None:
    folder = write_model(tmp_path / "model")
    outputs = []
    for arguments, text in (
        (["--source", "a b"], "x\n\nö\ny\n"),
        ([], "\na b\nx\n\nö\ny\n"),
    ):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert ended(suggest.main, [str(folder), *arguments]) == 0
        captured = capsys.readouterr()
        outputs.append(captured.out)
        assert captured.err == "suggest.py: 'ö' is not in the model's target vocabulary\n"
    assert outputs[0] == outputs[1]
    assert outputs[0].count("forced") == 3
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    assert ended(suggest.main, [str(folder)]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model", "--source", " ", "--prefix", "x"], "the source is blank"),
        (["model", "--source", "a", "--prefix", "x ö"], "'ö' is not in the model's target"),
        (["nowhere", "--source", "a", "--prefix", "x"], "nowhere: no such model folder"),
    ],
)
def test_what_cannot_be_answered_is_one_line(tmp_path, arguments, message) -> None:
    write_model(tmp_path / "model")
    assert message in refused(suggest.main, [tmp_path / arguments[0], *arguments[1:]])


def test_a_prefix_without_a_source_is_refused() -> None:
    assert "--prefix needs --source" in refused(suggest.main, ["model", "--prefix", "x"])


def test_the_package_offers_it(tmp_path) -> None:
    model = onmt_entmax.load(write_model(tmp_path / "model"))
    assert onmt_entmax.suggest(model, "a", "x") == suggestions(model, "a", "x")
    with pytest.raises(SuggestionError):
        onmt_entmax.suggest(model, "")


def test_a_source_that_training_never_saw_is_told_once(tmp_path, capsys, monkeypatch) -> None:
    folder = str(write_model(tmp_path / "model"))
    assert ended(suggest.main, [folder, "--source", "c a", "--prefix", "x"]) == 0
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.startswith("warning: 1 of 2 source tokens (50.00 %) not in the source vocab")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x\ny\n")))
    assert ended(suggest.main, [folder, "--source", "c a"]) == 0
    assert capsys.readouterr().err.splitlines() == [warning]
    assert suggestions(load(folder), "c a").unknown == ("c",)
    with pytest.raises(SuggestionError, match="target vocabulary"):
        suggestions(load(folder), "a", "X")
