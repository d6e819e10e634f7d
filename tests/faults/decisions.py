"""Compare minimum Bayes risk and samples of random models with brute-force enumeration.

    python -m tests.faults.decisions --models 2000 --seed 1

The models are tables of probabilities, recurrent networks and Transformers, with alphas from 1 to
3, and ensembles of next tokens and of sequences. Status 1, with the seeds to repeat, if a decision
or a sample is wrong.
"""

from tests.faults.mbr_checks import (
    check_combined_decisions,
    check_ensemble_decisions,
    check_network_decisions,
    check_table_decisions,
)
from tests.faults.runner import Check, main
from tests.faults.sample_checks import (
    check_distinct_pairs,
    check_network_samples,
    check_table_samples,
)

CHECKS: dict[str, Check] = {
    "mbr": check_table_decisions,
    "mbr, network": check_network_decisions,
    "mbr, ensemble": check_ensemble_decisions,
    "mbr, combine": check_combined_decisions,
    "samples": check_table_samples,
    "samples, network": check_network_samples,
    "samples, distinct": check_distinct_pairs,
}


if __name__ == "__main__":
    raise SystemExit(main(CHECKS))
