"""Options of a search that are refused: values out of range, and options that need others."""

import re

import pytest

from onmt_entmax.search import Constraints, Penalties, SearchConfig, beam_search
from tests.search.table_steppers import TableStepper
from tests.search.tables import Table

UP_TO_A_MILLION = "must be a whole number from 0 to 1,000,000"


@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [
        (SearchConfig, "beam_size", 0, "must be a whole number from 1 to 10,000, not 0"),
        (SearchConfig, "n_best", -1, "must be a whole number from 0 to 1,000,000,000,000, not -1"),
        (SearchConfig, "max_length", -1, f"{UP_TO_A_MILLION}, not -1"),
        (SearchConfig, "stop", "never", "must be one of exhaustive, optimal, first, not 'never'"),
        (Constraints, "min_length", -1, f"{UP_TO_A_MILLION}, not -1"),
        (Constraints, "block_ngram_repeat", -1, f"{UP_TO_A_MILLION}, not -1"),
        (Penalties, "length_penalty", "gnmt", "must be one of none, wu, avg, not 'gnmt'"),
        (Penalties, "coverage_penalty", "sum", "must be one of none, wu, summary, not 'sum'"),
        (Penalties, "alpha", -0.5, "must be a number from 0 to 1,000, not -0.5"),
        (Penalties, "beta", float("nan"), "must be a number from 0 to 1,000, not nan"),
    ],
)
def test_a_value_out_of_range_is_refused(
    kind: type, name: str, value: object, message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(f'{name}: {message}')}$"):
        kind(**{name: value})


def test_a_coverage_penalty_of_a_model_without_attention_is_refused() -> None:
    config = SearchConfig(penalties=Penalties(coverage_penalty="summary", beta=1.0))
    with pytest.raises(ValueError, match="a coverage penalty needs a model with attention"):
        beam_search(TableStepper(), [Table(0, 1.0)], config)
