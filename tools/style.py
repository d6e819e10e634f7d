"""Print the sizes of the code and the documents: files, lines, functions and words."""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent


def files(folder: str, *endings: str) -> list[Path]:
    """Return the files below a folder of the repository, except for empty ones."""
    found = (path for ending in endings for path in (ROOT / folder).rglob(f"*.{ending}"))
    return sorted(path for path in found if path.stat().st_size)


def lines(paths: list[Path]) -> list[int]:
    """Return the number of lines of each file."""
    return [path.read_text(encoding="utf-8").count("\n") for path in paths]


def functions(path: Path) -> list[ast.FunctionDef]:
    """Return the functions and methods of a Python file."""
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [node for node in tree if isinstance(node, ast.FunctionDef)]


def main() -> None:
    """Print everything."""
    groups = {
        "package": files("onmt_entmax", "py"),
        "C++": files("onmt_entmax", "cpp", "h"),
        "tools": files("tools", "py"),
        "tests": files("tests", "py"),
    }
    print(f"{'':10}{'files':>8}{'lines':>8}{'largest':>9}{'functions':>11}{'median lines':>14}")
    for name, paths in groups.items():
        sizes = lines(paths)
        row = f"{name:10}{len(paths):8,}{sum(sizes):8,}{max(sizes):9,}"
        if name != "C++":
            lengths = [
                (node.end_lineno or node.lineno) - node.lineno + 1
                for path in paths
                for node in functions(path)
            ]
            row += f"{len(lengths):11,}{median(lengths):14.0f}"
        print(row)
    documents = sorted([*ROOT.glob("*.md"), *files("docs", "md"), *files("data", "md")])
    words = {path: len(path.read_text(encoding="utf-8").split()) for path in documents}
    print(f"\ndocuments {len(words)}, words {sum(words.values()):,}")
    for path, count in words.items():
        print(f"  {path.relative_to(ROOT)!s:32}{count:8,}")


if __name__ == "__main__":
    main()
