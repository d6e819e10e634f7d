#!/usr/bin/env python
"""The sizes of the code: files, functions, docstrings, tests; what docs/architecture.md quotes.

python tools/style.py
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_files(*folders: str) -> list[Path]:
    """Python files that are not empty, below folders of the repository."""
    found = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return sorted(path for path in found if path.stat().st_size)


def lines(path: Path) -> int:
    """Lines of a file."""
    return path.read_text(encoding="utf-8").count("\n")


def functions(path: Path) -> Iterator[Function]:
    """Every function and method of a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, Function):
            yield node


def length(function: Function) -> int:
    """Lines of a function, docstring included."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def arguments(function: Function) -> int:
    """Arguments of a function, `self` not counted."""
    names = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return sum(name.arg not in ("self", "cls", "ctx") for name in names)


def describe(title: str, paths: list[Path]) -> None:
    """Print the sizes of a group of files."""
    sizes = {path: lines(path) for path in paths}
    found = [(length(f), arguments(f), f, path) for path in paths for f in functions(path)]
    longest = max(found, key=lambda item: item[0])
    most = max(found, key=lambda item: item[1])
    public = [f for _, _, f, _ in found if not f.name.startswith("_")]
    documented = sum(ast.get_docstring(f) is not None for f in public)
    largest = max(paths, key=lambda path: sizes[path])
    print(title)
    print(f"  files {len(paths)}, lines {sum(sizes.values())}, median {median(sizes.values()):.0f}")
    print(f"  largest file {sizes[largest]} ({largest.relative_to(ROOT)})")
    print(f"  functions: median {median(item[0] for item in found):.0f} lines, ", end="")
    print(f"longest {longest[0]} ({longest[2].name} in {longest[3].relative_to(ROOT)})")
    print(f"  most arguments {most[1]} ({most[2].name} in {most[3].relative_to(ROOT)})")
    print(f"  public functions with a docstring {100 * documented / max(len(public), 1):.0f} %")


def main() -> None:
    """Print everything."""
    package, tools, tests = (python_files(name) for name in ("onmt_entmax", "tools", "tests"))
    describe("package", package)
    describe("tools", tools)
    describe("tests", tests)
    source = sum(map(lines, [*package, *tools]))
    checked = sum(f.name.startswith("test_") for path in tests for f in functions(path))
    ratio = sum(map(lines, tests)) / source
    print(f"test functions {checked}, test lines a line of package and tools {ratio:.2f}")


if __name__ == "__main__":
    main()
