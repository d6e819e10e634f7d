"""Which modules each part of the package may import.

A *part* is a folder of the package, or a module beside these folders. Imports go one way: each part
imports only from rows above its own in the tables of docs/architecture.md.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.commands import ROOT

PACKAGE = ROOT / "onmt_entmax"
FILES = sorted(PACKAGE.rglob("*.py"))
SPARSE = sorted((PACKAGE / "sparse").rglob("*.py"))
HUGGINGFACE = PACKAGE / "huggingface.py"

# What `sparse` may import: its own package, these libraries and the standard library.
ALLOWED = {"onmt_entmax", "torch", "triton"} | set(sys.stdlib_module_names)

# The parts of each row of these tables; a row may have several.
ROWS = [
    {"errors", "free_memory", "rules", "version"},
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
    {"proven_outputs", "report"},
    {"analogous_outputs", "inflection", "prediction"},
    {"parallel"},
    {"train"},
    {"options"},
    {"ensembles"},
    {"line_memory", "line_reader"},
    {"line_answers", "line_search"},
    {"suggester", "translator"},
    {"group_search", "model_groups", "pictures", "query_results", "training"},
    {"prediction_builder"},
    {"transducer"},
    {"inventory", "paradigm"},
    {"inflector", "page_example", "page_queries"},
    {"page_description", "page_paradigms", "page_records"},
    {"answering"},
    {"cli", "__init__"},
    {"__main__"},
]
ROW_OF = {part: row for row, parts in enumerate(ROWS) for part in parts}


def part_of(module: str) -> str:
    """Return the part to which a module belongs, such as `search` for `onmt_entmax.search.beam`."""
    names = module.split(".")
    return names[1] if len(names) > 1 else "__init__"


def statements_in(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements in a piece of code, at any depth.

    Expressions, which are most of the nodes that `ast.walk` visits, contain no imports.
    """
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for statement in getattr(node, part, ()):
            yield statement
            yield from statements_in(statement)


def imported_names(node: ast.AST) -> list[str]:
    """Return the full names of the modules that one statement imports."""
    if isinstance(node, ast.ImportFrom):
        if node.module is None or node.level:
            raise ValueError(f"line {node.lineno}: write relative imports with their full names")
        if node.module == "onmt_entmax":
            return [f"onmt_entmax.{alias.name}" for alias in node.names]
        return [node.module]
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return []


def imports_in(tree: ast.Module) -> list[str]:
    """Return the modules of the package that code imports while it runs."""
    return [
        name
        for statement in tree.body
        if not (isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING")
        for node in (statement, *statements_in(statement))
        for name in imported_names(node)
        if name.startswith("onmt_entmax")
    ]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> list[str]:
    """Return the modules of the package that a file imports while the program runs."""
    return imports_in(tree_of(path))


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import onmt_entmax.model", ["onmt_entmax.model"]),
        ("from onmt_entmax import model", ["onmt_entmax.model"]),
        ("from onmt_entmax.search.beam import beam", ["onmt_entmax.search.beam"]),
        ("def f():\n    import onmt_entmax.model", ["onmt_entmax.model"]),
        ("if condition:\n    import onmt_entmax.model", ["onmt_entmax.model"]),
        ("if condition:\n    pass\nelse:\n    import onmt_entmax.model", ["onmt_entmax.model"]),
        ("try:\n    pass\nexcept E:\n    import onmt_entmax.model", ["onmt_entmax.model"]),
        ("match x:\n    case 1:\n        import onmt_entmax.model", ["onmt_entmax.model"]),
        ("if TYPE_CHECKING:\n    import onmt_entmax.model", []),
        ("import torch", []),
    ],
)
def test_an_import_is_found(code: str, names: list[str]) -> None:
    assert imports_in(ast.parse(code)) == names


@pytest.mark.parametrize("code", ["from . import model", "from .model import build_model"])
def test_a_relative_import_is_refused(code: str) -> None:
    with pytest.raises(ValueError, match="line 1: write relative imports with their full names"):
        imports_in(ast.parse(code))


def part_with(path: Path) -> str:
    """Return the part to which a file belongs."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def may_import(part: str, module: str) -> bool:
    """Return whether a part may import a module: its own, or one of a row above."""
    other = part_of(module)
    return other == part or ROW_OF[other] < ROW_OF[part]


def test_imports_go_one_way() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {module}"
        for path in FILES
        for module in imports(path)
        if not may_import(part_with(path), module)
    ]
    assert wrong == []


def test_the_table_names_every_part() -> None:
    assert set(map(part_with, FILES)) == set(ROW_OF)


@cache
def top_level_imports(path: Path) -> set[str]:
    """Return the top-level names of everything that a file imports."""
    statements = statements_in(tree_of(path))
    return {name.split(".")[0] for node in statements for name in imported_names(node)}


def test_only_one_file_imports_opennmt() -> None:
    importers = [path for path in FILES if "onmt" in top_level_imports(path)]
    assert importers == [PACKAGE / "opennmt.py"]


def test_only_one_file_imports_pyonmttok() -> None:
    """That file says what to do if pyonmttok is missing, as it is for some Pythons."""
    importers = [path for path in FILES if "pyonmttok" in top_level_imports(path)]
    assert importers == [PACKAGE / "libraries.py"]


def test_pyonmttok_is_imported_by_a_function_only() -> None:
    """Otherwise the file itself could not be imported without pyonmttok."""
    statements = tree_of(PACKAGE / "libraries.py").body
    assert not [statement for statement in statements if "pyonmttok" in imported_names(statement)]


def test_the_package_does_not_import_the_library_entmax() -> None:
    """It is a peer, with which tests and benchmarks compare."""
    assert not [path for path in FILES if "entmax" in top_level_imports(path)]


def test_sparse_imports_no_library_but_torch_and_triton() -> None:
    assert SPARSE
    assert [path for path in SPARSE if not top_level_imports(path) <= ALLOWED] == []


def test_sparse_imports_no_other_part() -> None:
    of_the_package = [(path, module) for path in SPARSE for module in imports(path)]
    assert of_the_package
    assert [pair for pair in of_the_package if part_of(pair[1]) != "sparse"] == []


def test_huggingface_imports_no_library_but_torch_and_transformers() -> None:
    assert top_level_imports(HUGGINGFACE) <= ALLOWED | {"transformers"}


def test_huggingface_imports_two_modules_of_sparse() -> None:
    assert set(imports(HUGGINGFACE)) == {
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
