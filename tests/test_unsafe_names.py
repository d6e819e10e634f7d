"""The package uses no function that would run code of the data it reads.

These checks read the package's source. They find a function by its full name, however it was
imported, but not by `getattr`.
"""

import ast
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import yaml

from onmt_entmax.files import parsing, yaml_size
from tests.commands import ROOT

# The safe names of modules that have both safe and unsafe ones.
SAFE_NAMES = {
    "pickle": {"UnpicklingError", "dumps", "loads"},  # `loads` in one file, see below
    "yaml": {
        *("AliasEvent", "CollectionEndEvent", "CollectionStartEvent", "ScalarEvent"),
        *("MappingNode", "ScalarNode", "MarkedYAMLError", "YAMLError"),
        *("SafeLoader", "parse", "safe_dump"),
    },
}
# Modules and functions that run code, or load objects that may run code.
UNSAFE_NAMES = (
    *("cloudpickle", "dill", "joblib", "marshal", "numpy.load", "shelve"),
    *("compile", "eval", "exec"),
    *("torch.hub", "torch.jit.load", "torch.package"),
    "torch.distributed.all_gather_object",
    "torch.distributed.broadcast_object_list",
    "torch.distributed.gather_object",
    "torch.distributed.recv_object_list",
    "torch.distributed.scatter_object_list",
)


class Use(NamedTuple):
    """A place where code imports, reads or calls a name."""

    name: str
    """The full name, such as `torch.load`; in a star import, the module's with `.*`."""
    line: int
    call: ast.Call | None
    """The call, if the name is called here."""

    def is_of(self, name: str) -> bool:
        """Return whether this is the use of a name, or of something in a module of this name."""
        return f"{self.name}.".startswith(f"{name}.")


def imported(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the local name and the full name of each import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.lineno, alias.asname or alias.name, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                top, _, _ = alias.name.partition(".")
                yield node.lineno, alias.asname or top, alias.name if alias.asname else top


def full_name(node: ast.AST, imports: dict[str, str]) -> str:
    """Return the full name of an expression; empty for one that is not a name with attributes."""
    if isinstance(node, ast.Name):
        return imports.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        owner = full_name(node.value, imports)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def uses_in(code: str) -> list[Use]:
    """Return the uses of all names in some code."""
    tree = ast.parse(code)
    found = list(imported(tree))
    imports = {local: full for _, local, full in found}
    nodes = list(ast.walk(tree))
    calls = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}
    return [
        *(Use(full, line, None) for line, _, full in found),
        *(
            Use(name, node.lineno, calls.get(id(node)))
            for node in nodes
            if isinstance(node, (ast.Name, ast.Attribute))
            if (name := full_name(node, imports))
        ),
    ]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import pickle\npickle.loads(data)", "pickle.loads"),
        ("import pickle as p\np.loads(data)", "pickle.loads"),
        ("from pickle import loads\nloads(data)", "pickle.loads"),
        ("from pickle import loads as read\nread(data)", "pickle.loads"),
        ("from pickle import *", "pickle.*"),
        ("import torch.distributed as dist\ndist.gather_object", "torch.distributed.gather_object"),
        ("import torch\ntorch.hub.load(name)", "torch.hub.load"),
        ("import yaml\nyaml.load(data, yaml.FullLoader)", "yaml.FullLoader"),
        ("eval(text)", "eval"),
    ],
)
def test_a_name_is_found_however_it_was_imported(code: str, name: str) -> None:
    assert name in {use.name for use in uses_in(code)}


def test_a_method_is_not_found_as_a_function_of_its_name() -> None:
    assert "eval" not in {use.name for use in uses_in("model.eval()")}


Uses = dict[str, list[Use]]


@pytest.fixture(scope="module")
def uses() -> Uses:
    """The uses of names in the package, by file."""
    return {
        path.relative_to(ROOT).as_posix(): uses_in(path.read_text(encoding="utf-8"))
        for path in (ROOT / "onmt_entmax").rglob("*.py")
    }


@pytest.mark.parametrize("module", SAFE_NAMES)
def test_the_package_uses_only_safe_names_of_a_module(uses: Uses, module: str) -> None:
    names = {use.name for file_uses in uses.values() for use in file_uses if use.is_of(module)}
    assert module in names  # the package imports it: the check sees something
    assert names <= {module, *(f"{module}.{name}" for name in SAFE_NAMES[module])}


@pytest.mark.parametrize("name", UNSAFE_NAMES)
def test_the_package_does_not_use_an_unsafe_name(uses: Uses, name: str) -> None:
    assert not [
        f"{file}:{use.line}"
        for file, file_uses in uses.items()
        for use in file_uses
        if use.is_of(name)
    ]


def test_only_prefetching_unpickles(uses: Uses) -> None:
    """It reads from a process that it has started, by a pipe that no other process has."""
    files = {file for file in uses if any(use.is_of("pickle.loads") for use in uses[file])}
    assert files == {"onmt_entmax/data/prefetch.py"}


def test_torch_loads_weights_only(uses: Uses) -> None:
    loads = [
        (f"{file}:{use.line}", use.call)
        for file, file_uses in uses.items()
        for use in file_uses
        if use.is_of("torch.load")
    ]
    for where, call in loads:
        assert call is not None, f"{where}: torch.load is imported or passed on"
        keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert keywords.get("weights_only") == "True", where
    assert len(loads) >= 3


def test_yaml_is_loaded_by_safe_loaders() -> None:
    safe = {yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)}
    assert yaml_size._SafeLoader in safe
    assert safe & set(parsing._UniqueKeys.__mro__)
