"""The names that the package offers: completed and documented."""

import inspect
from types import ModuleType

import pytest

import onmt_entmax
import onmt_entmax.sparse

modules = pytest.mark.parametrize(
    "module", [onmt_entmax, onmt_entmax.sparse], ids=lambda module: module.__name__
)


@modules
def test_public_names_alone_are_completed(module: ModuleType) -> None:
    assert dir(module) == sorted(module.__all__)


def can_be_documented(value: object) -> bool:
    """Return whether a value can have a docstring; others, such as texts, have their type's."""
    return inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value)


@modules
def test_public_names_are_documented(module: ModuleType) -> None:
    values = {name: getattr(module, name) for name in module.__all__}
    undocumented = [
        name for name, value in values.items() if can_be_documented(value) and not value.__doc__
    ]
    assert undocumented == []
