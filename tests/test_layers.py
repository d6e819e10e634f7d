"""Imports go one way: a room imports from rows above it, never from below or beside."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "onmt_entmax"
TOOLS = ROOT / "tools"

# The table of docs/architecture.md: row, and which rooms stand there.
ROWS = [
    {"errors", "version", "opennmt"},
    {"files", "mappings", "processes"},
    {"losses", "text", "locks"},
    {"modules"},
    {"model"},
    {"checkpoint"},
    {"records", "search"},
    {"training", "reports"},
    {"validation"},
    {"options", "sharding"},
    {"suggestion", "translation"},
    {"experiment", "inflection"},
    {"commands", "__init__"},
]
ROW_OF = {room: row for row, rooms in enumerate(ROWS) for room in rooms}


def room_of(module: str) -> str:
    """`onmt_entmax.search.beam` is in the room `search`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports(path: Path) -> list[str]:
    """Modules of the package that a file imports while the program runs."""
    found = []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:  # below an `if TYPE_CHECKING` nothing is imported
        found += [
            name
            for inner in ast.walk(node)
            if not isinstance(node, ast.If)
            for name in imported_names(inner)
        ]
    return [name for name in found if name.startswith("onmt_entmax")]


def imported_names(node: ast.AST) -> list[str]:
    """Full names of the modules that one statement imports."""
    if isinstance(node, ast.ImportFrom) and node.module is not None:
        if node.module == "onmt_entmax":
            return [f"onmt_entmax.{alias.name}" for alias in node.names]
        return [node.module]
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return []


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for module in imports(path):
        other = room_of(module)
        assert other == room or ROW_OF[other] < ROW_OF[room], f"{room} must not import {module}"


def test_the_table_names_every_room() -> None:
    rooms = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in FILES}
    assert rooms == set(ROW_OF)


def test_only_one_file_imports_opennmt() -> None:
    for path in FILES:
        if path.name != "opennmt.py":
            names = [
                n for node in ast.walk(ast.parse(path.read_text())) for n in imported_names(node)
            ]
            assert not [name for name in names if name.split(".")[0] == "onmt"], path


def test_the_package_never_imports_the_oracle() -> None:
    for path in FILES:
        names = [n for node in ast.walk(ast.parse(path.read_text())) for n in imported_names(node)]
        assert not [name for name in names if name.split(".")[0] == "entmax"], path


def test_tools_are_commands_and_their_parts_are_in_folders() -> None:
    commands = {path.stem for path in TOOLS.glob("*.py")}
    for path in TOOLS.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.parent == TOOLS:
            assert 'if __name__ == "__main__":' in text, f"{path} is no command"
        names = {n for node in ast.walk(ast.parse(text)) for n in imported_names(node)}
        assert not names & commands, f"{path} imports a command"


@pytest.mark.parametrize(
    "path", [*FILES, *TOOLS.rglob("*.py")], ids=lambda path: str(path.relative_to(ROOT))
)
def test_files_and_functions_stay_readable(path: Path) -> None:
    """No file above 400 lines, no function above 60."""
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 60, node.name
