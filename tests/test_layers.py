"""Imports go one way: a folder imports from rows above it, never from below or beside."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT

PACKAGE = ROOT / "onmt_entmax"

# The order of the table in docs/architecture.md.
ROWS = [
    {"errors", "rules", "version"},
    {"exhaustion", "libraries", "strings", "systems"},
    {"opennmt"},
    {"config"},
    {"files", "sparse"},
    {"data", "huggingface"},
    {"memory", "query_checks", "token_warnings", "writing_warnings"},
    {"nn"},
    {"recurrence"},
    {"initial_weights"},
    {"model"},
    {"checkpoint", "reordering"},
    {"search"},
    {"prediction", "report"},
    {"inflection"},
    {"parallel"},
    {"train"},
    {"options"},
    {"ensembles"},
    {"line_reader"},
    {"line_answers", "line_search"},
    {"suggester", "translator"},
    {"model_groups", "pictures", "query_results", "training"},
    {"transducer"},
    {"inventory", "paradigm"},
    {"inflector"},
    {"page_description", "page_records"},
    {"answering"},
    {"cli", "__init__"},
    {"__main__"},
]
ROW_OF = {name: row for row, names in enumerate(ROWS) for name in names}


def folder_of(module: str) -> str:
    """Return the folder of a module, such as `search` of `onmt_entmax.search.beam`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports(path: Path) -> list[str]:
    """Return the modules of the package that a file imports while the program runs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    # Below an `if TYPE_CHECKING` nothing is imported.
    statements = [statement for statement in tree.body if not isinstance(statement, ast.If)]
    return [
        name
        for statement in statements
        for node in ast.walk(statement)
        for name in imported_names(node)
        if name.startswith("onmt_entmax")
    ]


def imported_names(node: ast.AST) -> list[str]:
    """Return the full names of the modules that one statement imports."""
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
    folder = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for module in imports(path):
        other = folder_of(module)
        assert other == folder or ROW_OF[other] < ROW_OF[folder], f"{folder} imports {module}"


def test_the_table_names_every_folder() -> None:
    folders = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in FILES}
    assert folders == set(ROW_OF)


def top_level_imports(path: Path) -> set[str]:
    """Return the top-level names of everything that a file imports."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {name.split(".")[0] for node in nodes for name in imported_names(node)}


def test_only_one_file_imports_opennmt() -> None:
    importers = [path for path in FILES if "onmt" in top_level_imports(path)]
    assert importers == [PACKAGE / "opennmt.py"]


def test_pyonmttok_is_imported_when_it_is_needed() -> None:
    """In one function, which says what to do without it: not every Python has it."""
    importers = [path for path in FILES if "pyonmttok" in top_level_imports(path)]
    assert importers == [PACKAGE / "libraries.py"]
    done_at_once = ast.parse(importers[0].read_text(encoding="utf-8")).body
    assert not [node for node in done_at_once if "pyonmttok" in imported_names(node)]


def test_the_package_never_imports_the_peer_library() -> None:
    assert not [path for path in FILES if "entmax" in top_level_imports(path)]


ALLOWED = {"onmt_entmax", "torch", "triton"} | set(sys.stdlib_module_names)
SPARSE = sorted((PACKAGE / "sparse").rglob("*.py"))


@pytest.mark.parametrize("path", SPARSE, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_sparse_needs_torch_alone(path: Path) -> None:
    assert top_level_imports(path) <= ALLOWED
    for module in imports(path):
        assert module.startswith("onmt_entmax.sparse")


def test_huggingface_needs_sparse_and_transformers_alone() -> None:
    path = PACKAGE / "huggingface.py"
    assert top_level_imports(path) <= ALLOWED | {"transformers"}
    assert set(imports(path)) <= {
        "onmt_entmax.sparse.arguments",
        "onmt_entmax.sparse.attention",
    }


def test_a_process_that_imports_entmax_loads_sparse_alone() -> None:
    code = (
        "import sys; from onmt_entmax import entmax, entmax_loss; "
        "loaded = {name.split('.')[1] for name in sys.modules if name.startswith('onmt_entmax.')}; "
        "assert loaded == {'sparse', 'version'}, loaded; "
        "assert not {'onmt', 'torchtext', 'yaml', 'sacrebleu'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
