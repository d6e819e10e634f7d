"""A plan of `prepare --minutes` as text, and as lines of a configuration."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from onmt_entmax.cli.plan_lines import dropout_option, plan_text, training_options
from onmt_entmax.cli.planned_networks import Network
from onmt_entmax.cli.plans import Choice, Plan, Validations

MINUTES = 40
SECONDS = 60 * MINUTES
BATCH = 64
TRAINING_SHARE = 0.96  # of the time; the rest is for validations


@pytest.fixture
def plan() -> Plan:
    """A plan for a CPU, on which ten updates take a second."""
    network = Network(1, 1, size=400, batch=BATCH, products="bfloat16")
    choice = Choice(
        network,
        speed=10.0 * BATCH,
        pairs=15_000,
        passes=9.1,
        dropout=0.1,
        compared=2,
        makes_passes=True,
    )
    validations = Validations(count=5, loss_size=14_400, decode_size=5_760)
    return Plan(MINUTES, choice, validations, gpu=False, measured=["640 examples/s"])


def for_gpu(plan: Plan) -> Plan:
    """Return a plan as of a machine with a GPU."""
    network = replace(plan.choice.network, products="tf32")
    return replace(plan, gpu=True, choice=replace(plan.choice, network=network))


# --- updates ---


def test_updates_are_made_in_the_time_without_that_of_validations(plan: Plan) -> None:
    assert plan.updates == round(TRAINING_SHARE * SECONDS * 10)


def test_a_plan_has_at_least_one_update(plan: Plan) -> None:
    assert replace(plan, minutes=0.0001).updates == 1


# --- the configuration ---


def settings(plan: Plan) -> dict[str, Any]:
    """Return the lines of the configuration as options."""
    options: dict[str, Any] = yaml.safe_load("\n".join(training_options(plan)))
    return options


def test_a_plan_sets_options_of_train(plan: Plan) -> None:
    """Four validations lie equally far apart, and the fifth follows after half of that distance."""
    distance = round(TRAINING_SHARE * SECONDS * 10 / 4.5)  # updates
    assert settings(plan) == {
        "matmul_dtype": "bfloat16",
        "max_seconds": SECONDS,
        "valid_steps": distance,
        "valid_decode_size": 5_760,
        "valid_loss_size": 14_400,
        "save_checkpoint_steps": distance,
    }


def test_a_plan_for_a_gpu_sets_it_and_its_products(plan: Plan) -> None:
    for_a_gpu = {"matmul_dtype": "tf32", "gpu_ranks": [0]}
    assert settings(for_gpu(plan)) == settings(plan) | for_a_gpu


def test_a_plan_sets_the_dropout(plan: Plan) -> None:
    assert yaml.safe_load(dropout_option(plan)) == {"dropout": [0.1]}


def test_a_long_time_is_written_with_all_digits(plan: Plan) -> None:
    assert settings(replace(plan, minutes=99_999))["max_seconds"] == 99_999 * 60


def test_a_plan_of_one_update_is_validated_after_it(plan: Plan) -> None:
    assert settings(replace(plan, minutes=0.0001))["valid_steps"] == 1


# --- the text ---


def test_the_text_says_what_was_measured_and_chosen(plan: Plan) -> None:
    assert plan_text(plan) == [
        "Planned for 40 minutes of this machine's CPU, where it trained",
        "  640 examples/s",
        "Chosen: 1 layer of 400, batches of 64, bfloat16: the largest that makes the passes it "
        "needs, 5; about 9.1 passes over 15,000 rows.",
    ]


def test_the_text_of_one_minute_is_in_the_singular(plan: Plan) -> None:
    assert plan_text(replace(plan, minutes=1))[0].startswith("Planned for 1 minute of this")


def test_the_text_names_the_gpu(plan: Plan) -> None:
    assert "this machine's GPU" in plan_text(for_gpu(plan))[0]


def test_the_text_counts_hallucinated_pairs(plan: Plan) -> None:
    *_, line = plan_text(replace(plan, hallucinated=9_926))
    assert line.startswith("Of these rows, 9,926 are hallucinated, since there are at least 10 ")
