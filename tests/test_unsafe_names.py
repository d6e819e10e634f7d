"""The package uses no function that would run code of the data it reads.

These checks read the package's source; `tests.name_uses` says which uses of a name they find.
"""

import ast

import pytest
import yaml

from onmt_entmax.files import parsing, yaml_size
from tests.commands import ROOT
from tests.name_uses import Use, uses_in

# The safe names of modules that have both safe and unsafe ones.
SAFE_NAMES = {
    "pickle": {"UnpicklingError", "dumps", "loads"},  # `loads` in one file, see below
    "yaml": {
        "AliasEvent", "CollectionEndEvent", "CollectionStartEvent", "MappingNode",
        "MarkedYAMLError", "Node", "SafeLoader", "ScalarEvent", "ScalarNode", "YAMLError",
        "parse", "safe_dump",
    },
}  # fmt: skip
# Modules and functions that run code, or load objects that may run code.
UNSAFE_NAMES = (
    "cloudpickle", "dill", "joblib", "marshal", "numpy.load", "shelve",
    "compile", "eval", "exec",
    "torch.hub", "torch.jit.load", "torch.package",
    "torch.distributed.all_gather_object",
    "torch.distributed.broadcast_object_list",
    "torch.distributed.gather_object",
    "torch.distributed.recv_object_list",
    "torch.distributed.scatter_object_list",
)  # fmt: skip


Uses = dict[str, list[Use]]
"""Uses of names, by file."""


@pytest.fixture(scope="module")
def uses() -> Uses:
    """The uses of names in the package."""
    uses = {
        path.relative_to(ROOT).as_posix(): uses_in(path.read_text(encoding="utf-8"))
        for path in (ROOT / "onmt_entmax").rglob("*.py")
    }
    assert len(uses) > 100, "the package was not found"
    return uses


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
    """Two files load: one what `torch.save` wrote, the other messages between processes."""
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
    assert len(loads) == 2


def test_yaml_is_loaded_by_safe_loaders() -> None:
    safe = {yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)}
    assert yaml_size.SafeLoader in safe
    assert safe & set(parsing._UniqueKeys.__mro__)
