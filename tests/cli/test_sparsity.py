"""`onmt-entmax sparsity`: its counts are those of the model's own probabilities and attention."""

import json
from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import save
from onmt_entmax.cli import sparsity as command
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.figures import sparsity
from onmt_entmax.model import build_model
from tests.commands import succeed
from tests.ended import ended, refused
from tests.models import small, words

VOCABULARIES = words("abcd", "uvwxyz")
SOURCES = ["a b a", "b", "c d a b", "d"]
TARGETS = ["u v", "w", "", "x q u z y"]


def write_model(folder: Path, alpha: float, seed: int = 0):
    torch.manual_seed(seed)
    config = small(global_attention_alpha=alpha, generator_alpha=alpha, param_init=3.0)
    model = build_model(config, VOCABULARIES).eval()
    save(folder, model, config, VOCABULARIES, {})
    return model


@pytest.fixture
def files(tmp_path) -> list[str]:
    for name, lines in (("src", SOURCES), ("tgt", TARGETS)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return ["--source", str(tmp_path / "src"), "--target", str(tmp_path / "tgt")]


@pytest.mark.parametrize("alpha", [1.0, 1.3, 2.0])
def test_counts_of_forced_decoding_are_the_models_own(tmp_path, files, alpha) -> None:
    model = write_model(tmp_path / "model", alpha)
    out = tmp_path / "out"
    arguments = [str(tmp_path / "model"), *files, "--out", str(out), "--batch_size", "3"]
    assert ended(command.main, arguments) == 0
    outputs, attended, places = [], [], []
    for source, target in zip(SOURCES, TARGETS, strict=True):
        ids = VOCABULARIES.target.encode(target.split())
        example = Example(VOCABULARIES.source.encode(source.split()), ids, 0)
        batch = make_batch([example], VOCABULARIES)
        with torch.no_grad():
            state, memory, lengths = model.encoder(batch.source, batch.source_lengths)
            model.decoder.init_state(batch.source, memory, state)
            hidden, found = model.decoder(batch.target[:-1], memory, memory_lengths=lengths)
            log_probs = model.generator.log_probs(hidden[:, 0])
        outputs += (log_probs > -torch.inf).sum(1).tolist()
        attended += (found["std"][:, 0] > 0).sum(1).tolist()
        places += range(1, len(ids) + 2)
    measured = json.loads((out / "sparsity.json").read_text())["model"]
    for side, expected in (("output", outputs), ("attention", attended)):
        forced = measured["forced"][side]
        assert forced["steps"] == len(expected) == sum(len(t.split()) + 1 for t in TARGETS)
        assert forced["mean"] == pytest.approx(sum(expected) / len(expected))
        assert forced["share_of_one"] == pytest.approx(expected.count(1) / len(expected))
        assert (forced["least"], forced["most"]) == (min(expected), max(expected))
        first = [n for n, place in zip(expected, places, strict=True) if place == 1]
        assert forced["by_position"]["1"] == {
            "steps": 4,
            "mean": pytest.approx(sum(first) / 4),
        }
        assert {name: cell["steps"] for name, cell in forced["by_rank"].items()} == {
            "1-10": 7,
            "unknown": 1,
            "end": 4,
        }
        assert forced["at_most"][str(max(expected))] == pytest.approx(1.0)
    if alpha == 1:
        assert measured["forced"]["output"]["mean"] == len(VOCABULARIES.target)
        assert measured["predicted"]["output"]["least"] == len(VOCABULARIES.target)
    else:
        assert measured["forced"]["output"]["mean"] < len(VOCABULARIES.target)


def test_the_command_compares_models_and_writes_all_files(tmp_path, files) -> None:
    write_model(tmp_path / "dense", 1.0)
    write_model(tmp_path / "sparse", 1.5)
    out = tmp_path / "deep" / "out"
    models = [tmp_path / "dense", tmp_path / "sparse", "--names", "soft", "sparse 1.5"]
    printed = succeed("onmt_entmax", "sparsity", *models, *files, "--out", out, "--limit", "3")
    assert "| soft | " in printed
    assert "| sparse 1.5 | " in printed
    assert json.loads((out / "sparsity.json").read_text())["soft"]["sentences"] == 3
    assert "## Output, along the models' own outputs" in (out / "sparsity.md").read_text()
    assert (out / "sparsity.pdf").read_bytes().startswith(b"%PDF")
    assert (out / "sparsity.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in out.iterdir()) == [
        f"sparsity.{ending}" for ending in ("json", "md", "pdf", "png")
    ]


def test_bad_input_is_one_line(tmp_path, files) -> None:
    def told(*arguments: object) -> str:
        return refused(command.main, arguments)

    model = str(tmp_path / "model")
    assert "no such model folder" in told(model, *files)
    write_model(tmp_path / "model", 1.5)
    assert told(model, *files, "--names", "a", "b").endswith("for 1 model")
    assert "different names" in told(model, model, *files)
    assert "no transform" in told(model, *files, "--transforms", "nothing")
    (tmp_path / "empty").write_text("")
    empty = str(tmp_path / "empty")
    assert "no sentence" in told(model, "--source", empty, "--target", empty)
    assert "--limit: must be a whole number" in told(model, *files, "--limit", "0")


@pytest.mark.parametrize(
    ("token", "name"),
    [(0, "unknown"), (3, "end"), (4, "1-10"), (13, "1-10"), (14, "11-100"), (10_004, "10001-")],
)
def test_classes_of_frequency(token, name) -> None:
    assert sparsity.rank_class(token, 3) == name


def test_numbers_in_tables() -> None:
    shown = [sparsity.number(value) for value in (12, 1.0, 3.14159, 17993.4)]
    assert shown == ["12", "1.00", "3.14", "17,993"]


def test_a_summary_of_counts() -> None:
    found = sparsity.Counts()
    found.add([1, 1, 2, 6], [4, 5, 4, 3], end=3)
    summary = found.summary()
    quantiles = {"5": 1.0, "25": 1.0, "50": 1.5, "75": 3.0, "95": pytest.approx(5.4)}
    assert summary["quantiles"] == quantiles
    assert summary["at_most"] == {"1": 0.5, "2": 0.75, "6": 1.0}
    assert summary["by_rank"] == {
        "1-10": {"steps": 3, "mean": pytest.approx(4 / 3)},
        "end": {"steps": 1, "mean": 6.0},
    }
    found.add([2] * 40, [4] * 40, end=3)
    places = found.summary()["by_position"]
    assert list(places) == [str(place) for place in range(1, 31)]
    assert places["30"] == {"steps": 11, "mean": 2.0}  # and later


def test_figures_stand_below_their_headings() -> None:
    """Attention and output, along the references and along the models' own outputs."""
    means = {("forced", "attention"): 1.25, ("forced", "output"): 2.25}
    means |= {("predicted", "attention"): 3.25, ("predicted", "output"): 4.25}
    model: dict[str, dict] = {"forced": {}, "predicted": {}}
    for (mode, side), mean in means.items():
        model[mode][side] = {"mean": mean, "share_of_one": mean / 10}
    head, _, row = (line.split(" | ") for line in sparsity.table3({"one": model}).splitlines())
    assert dict(zip(head[1::2], row[1::2], strict=True)) == {
        f"{sparsity.SIDES[side]}, {mode}": f"{mean:.2f}" for (mode, side), mean in means.items()
    }
    assert [cell.rstrip(" |") for cell in row[2::2]] == ["12.5%", "22.5%", "32.5%", "42.5%"]
