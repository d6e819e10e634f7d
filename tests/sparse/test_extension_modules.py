"""Loading the compiled C++ code: absent, broken, or switched off."""

import warnings
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from onmt_entmax.sparse.backends import cpu
from onmt_entmax.sparse.backends.extension_modules import load_extension
from tests.native_modules import assert_built


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of an extension module whose file is not machine code."""
    (tmp_path / f"broken_extension{EXTENSION_SUFFIXES[0]}").write_text("not machine code")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("ONMT_ENTMAX_NATIVE", raising=False)
    return "broken_extension"


def test_the_module_is_there_where_it_can_be_built() -> None:
    assert_built(cpu.module)


def test_a_module_that_was_not_built_is_none() -> None:
    assert load_extension("onmt_entmax.sparse.backends.not_built") is None


def test_a_module_that_cannot_be_loaded_is_none_with_a_warning(broken: str) -> None:
    with pytest.warns(RuntimeWarning, match="broken_extension cannot be loaded, .* slower"):
        assert load_extension(broken) is None


def test_a_broken_module_that_is_switched_off_is_not_tried(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONMT_ENTMAX_NATIVE", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_extension(broken) is None
