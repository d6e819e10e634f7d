"""Compare searches of random models with brute-force enumeration.

    python -m tests.faults.certificates --models 10000 --seed 1

Every model is small enough to list all its sequences. Each is searched once or more, with random
alphas from 1 to 3, beams, stopping rules, numbers of hypotheses and options, and every claim of the
result is checked against the list. Status 1, with the seeds to repeat, if one is wrong.
"""

from tests.faults.automaton_checks import (
    check_batch_of_expressions,
    check_network_expressions,
    check_table_expressions,
)
from tests.faults.ensemble_checks import check_sequence_ensemble, check_token_ensemble
from tests.faults.network_checks import (
    check_network_ensemble,
    check_network_options,
    check_networks,
)
from tests.faults.runner import Check, main
from tests.faults.table_checks import (
    check_beam,
    check_constraints,
    check_exact,
    check_penalties,
    check_reward,
)

CHECKS: dict[str, Check] = {
    "beam": check_beam,
    "constraints": check_constraints,
    "penalties": check_penalties,
    "length reward": check_reward,
    "exact": check_exact,
    "ensemble": check_token_ensemble,
    "sequence ensemble": check_sequence_ensemble,
    "automata": check_table_expressions,
    "automata, batch": check_batch_of_expressions,
    "network": check_networks,
    "network, options": check_network_options,
    "network, automata": check_network_expressions,
    "network ensemble": check_network_ensemble,
}


if __name__ == "__main__":
    raise SystemExit(main(CHECKS))
