"""The columns that `predict --details` adds: a table is recognised to have them."""

import pytest

from onmt_entmax.strings.details import DETAILS, has_details

HEADING = ("lemma", "form", *DETAILS)
FIRST = ("go", "went", "1", "0.9", "optimal", "")
WITHOUT_OUTPUT = ("be", "", "", "", "none", "no form ended within the length limit")


@pytest.mark.parametrize(
    "table",
    [
        pytest.param([HEADING, FIRST], id="a heading"),
        pytest.param([FIRST], id="no heading"),
        pytest.param([FIRST, WITHOUT_OUTPUT], id="a row without an output, which has no rank"),
    ],
)
def test_details_are_recognised(table: list[tuple[str, ...]]) -> None:
    assert has_details(table)


@pytest.mark.parametrize(
    "table",
    [
        pytest.param([], id="no rows"),
        pytest.param([HEADING], id="a heading alone"),
        pytest.param([FIRST, ("go", "went")], id="a row with fewer columns"),
        pytest.param([("1", "0.9", "optimal", "")], id="no other column"),
        pytest.param([("go", "went", "1", "0.9", "maybe", "")], id="an unknown certificate"),
        pytest.param([("go", "went", "V", "0.9", "only", "")], id="a rank that is no number"),
    ],
)
def test_other_tables_have_no_details(table: list[tuple[str, ...]]) -> None:
    assert not has_details(table)
