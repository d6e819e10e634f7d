"""`onmt-entmax suggest` and `onmt_entmax.suggest`: against the model's own distributions."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import load, save
from onmt_entmax.cli import suggest
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.model import build_model
from onmt_entmax.suggester import suggest as suggestions
from tests.ended import ended, refused
from tests.models import small, words

VOCABULARIES = words("ab", "xyz")


def write_model(folder: Path, alpha: float = 1.5, options: dict | None = None) -> Path:
    """A model folder."""
    torch.manual_seed(2)
    config = small(generator_alpha=alpha, param_init=0.7)
    model = build_model(config, VOCABULARIES)
    with torch.no_grad():
        # No string has them, so that no probability is lost.
        model.generator.bias[[VOCABULARIES.target.pad, VOCABULARIES.target.bos]] = -100.0
    save(folder, model, config, VOCABULARIES, options or {})
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


@pytest.mark.parametrize(("prefix", "alpha"), [("", 1.5), ("x y z", 1.0)])
def test_every_possible_next_token_and_no_other_is_listed(
    tmp_path: Path, prefix: str, alpha: float
) -> None:
    folder = write_model(tmp_path / "model", alpha=alpha)
    found = suggestions(load(folder), "a b a", prefix)
    expected = next_tokens(folder, "a b a", prefix)
    assert {c.token: c.prob for c in found.continuations} == pytest.approx(expected, abs=1e-6)


def test_what_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_model(tmp_path / "model", alpha=1.0)
    found = suggestions(load(folder), "a b a", "x")
    first, *others = found.continuations
    told = suggest.text_of(replace(found, excluded_at=0), ["x"], 1).splitlines()
    assert told[:2] == [
        "the model excludes 'x' (token 1 of the prefix)",
        f"next      {first.prob:<8.6g}  {first.token}",
    ]
    rest = sum(continuation.prob for continuation in others)
    assert told[2] == f"          {rest:<8.6g}  on {len(others)} more"
    write_model(tmp_path / "model", options={"target_order": "right_to_left"})
    assert ended(suggest.main, [str(folder), "--source", "a", "--prefix", "x"]) == 0
    assert "from right to left, and so are prefixes read" in capsys.readouterr().err


def test_prefixes_are_read_where_none_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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
        assert captured.err == "suggest.py: 'ö' is not in the target vocabulary\n"
    assert outputs[0] == outputs[1]
    assert outputs[0].count("forced") == 3
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    assert ended(suggest.main, [str(folder)]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model", "--source", " ", "--prefix", "x"], "the source is blank"),
        (["model", "--source", "a", "--prefix", "x ö"], "'ö' is not in the target"),
        (["nowhere", "--source", "a", "--prefix", "x"], "nowhere: no such model folder"),
        (["model", "--prefix", "x"], "--prefix needs --source"),
    ],
)
def test_what_cannot_be_answered_is_one_line(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    write_model(tmp_path / "model")
    assert message in refused(suggest.main, [tmp_path / arguments[0], *arguments[1:]])
