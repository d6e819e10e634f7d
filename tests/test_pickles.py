"""No file and no message can run code: whatever is read, nothing is unpickled."""

import ast
import io
import pickle
from pathlib import Path

import pytest
import torch
import yaml

from onmt_entmax.checkpoint import STATE, CheckpointError, read_training_state, save
from onmt_entmax.files import parsing, yaml_size
from onmt_entmax.files.checksums import write_list
from onmt_entmax.model import build_model
from onmt_entmax.parallel.messages import packed, unpacked
from tests.commands import ROOT
from tests.evil import Evil
from tests.models import BRNN, VOCABULARIES

PACKAGE = ROOT / "onmt_entmax"


def test_a_message_of_another_process_runs_nothing(tmp_path: Path) -> None:
    with pytest.raises(pickle.UnpicklingError):
        unpacked(packed([Evil(tmp_path / "harm")]))
    assert not (tmp_path / "harm").exists()


def test_such_a_message_does_harm_if_it_is_unpickled(tmp_path: Path) -> None:
    """Otherwise the test before would show nothing."""
    content = packed([Evil(tmp_path / "harm")])
    torch.load(io.BytesIO(content.numpy().tobytes()), weights_only=False)
    assert (tmp_path / "harm").exists()


def test_a_training_state_runs_nothing(tmp_path: Path) -> None:
    save(tmp_path / "model", build_model(BRNN, VOCABULARIES), BRNN, VOCABULARIES, {}, {"a": 1})
    torch.save({"run": Evil(tmp_path / "harm")}, tmp_path / "model" / STATE)
    write_list(tmp_path / "model")
    with pytest.raises(CheckpointError, match="cut short or damaged"):
        read_training_state(tmp_path / "model")
    assert not (tmp_path / "harm").exists()


Uses = dict[str, list[tuple[str, ast.Call | None]]]


def dotted(node: ast.AST) -> str:
    """Return a name such as `torch.load`; empty for any other expression."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


@pytest.fixture(scope="module")
def uses() -> Uses:
    """The places in the package that have a name, each with the call of it, if it is called."""
    uses: Uses = {}
    for path in PACKAGE.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        called = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}
        for node in nodes:
            if name := dotted(node):
                where = f"{path.relative_to(ROOT)}:{node.lineno}"  # type: ignore[attr-defined]
                uses.setdefault(name, []).append((where, called.get(id(node))))
    return uses


def test_torch_loads_weights_only(uses: Uses) -> None:
    for where, call in uses["torch.load"]:
        assert call is not None, f"{where}: torch.load is passed on"
        keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert keywords.get("weights_only") == "True", where
    assert len(uses["torch.load"]) >= 3


@pytest.mark.parametrize(
    ("names", "allowed"),
    [
        # `prefetch` reads from a process that it has started, by a pipe that no other one has.
        pytest.param(
            ("pickle.loads", "pickle.load", "pickle.Unpickler"),
            {"onmt_entmax/data/prefetch.py"},
            id="pickle",
        ),
        pytest.param(
            ("yaml.full_load", "yaml.unsafe_load", "yaml.Loader", "yaml.UnsafeLoader"),
            set(),
            id="YAML",
        ),
        pytest.param(
            ("marshal.loads", "shelve.open", "joblib.load", "eval", "exec", "torch.hub.load"),
            set(),
            id="other formats and code",
        ),
        pytest.param(
            ("dist.broadcast_object_list", "dist.all_gather_object", "dist.gather_object"),
            set(),
            id="objects of other processes",
        ),
    ],
)
def test_nothing_else_runs_what_it_reads(
    uses: Uses, names: tuple[str, ...], allowed: set[str]
) -> None:
    files = {where.split(":")[0] for name in names for where, _ in uses.get(name, ())}
    assert files == allowed


def test_yaml_is_loaded_by_safe_loaders_alone(uses: Uses) -> None:
    safe = {yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)}
    loaders = {
        ast.unparse(keyword.value)
        for name in ("yaml.load", "yaml.parse")
        for _, call in uses.get(name, ())
        if call is not None
        for keyword in call.keywords
        if keyword.arg == "Loader"
    }
    assert loaders == {"_SafeLoader"}
    assert yaml_size._SafeLoader in safe
    assert safe & set(parsing._UniqueKeys.__mro__)
