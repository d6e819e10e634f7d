"""Counts of verified certificates: each is confirmed, contradicted or undecided."""

import pytest

from onmt_entmax.report.optional_counts import VerificationCounts
from onmt_entmax.search.verify import Verification

CONFIRMED, CONTRADICTED, UNDECIDED = (Verification(agrees) for agrees in (True, False, None))


@pytest.mark.parametrize(
    ("verifications", "counts", "text"),
    [
        pytest.param([], {}, "", id="no sentence"),
        pytest.param(
            [CONFIRMED, CONTRADICTED],
            {"verified": 2, "disagreements": 1},
            "2 recomputed in float64, 1 not as certified",
            id="none undecided",
        ),
        pytest.param(
            [CONFIRMED, CONTRADICTED, UNDECIDED, UNDECIDED],
            {"verified": 4, "disagreements": 1, "undecided": 2},
            "4 recomputed in float64, 1 not as certified, 2 undecided",
            id="undecided ones are no disagreements",
        ),
    ],
)
def test_each_verification_is_counted_once(
    verifications: list[Verification], counts: dict[str, int], text: str
) -> None:
    verified = VerificationCounts()
    for verification in verifications:
        verified.add(verification)
    assert (verified.as_dict(), verified.text()) == (counts, text)
