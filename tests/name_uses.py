"""Uses of names in Python code, found by their full names, however they were imported.

A name that is passed on, or looked up by `getattr`, is not found.
"""

import ast
from collections.abc import Iterator
from typing import NamedTuple


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
