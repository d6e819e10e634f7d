"""Write a plan of `prepare --minutes`: as text for the user, and as lines of `train.yaml`."""

from onmt_entmax.cli.plans import HALLUCINATED_PASSES, VALIDATION_SHARE, Choice, Plan
from onmt_entmax.cli.yaml_lines import with_comment
from onmt_entmax.errors import counted

PLANNED = "Planned for "
"""The first words of every plan's text, by which a planned configuration is recognised later"""

# --- text for the user ---


def plan_text(plan: Plan) -> list[str]:
    """Return what was measured, and what was chosen, as lines of text."""
    device = "GPU" if plan.gpu else "CPU"
    time = "1 minute" if plan.minutes == 1 else f"{plan.minutes:g} minutes"
    if plan.models > 1:
        time = f"{plan.models} models, {time} each,"
    lines = [
        f"{PLANNED}{time} of this machine's {device}, where it trained",
        *(f"  {line}" for line in plan.measured),
        f"Chosen: {plan.choice.network}: {reason(plan.choice)}.",
    ]
    if plan.hallucinated:
        lines.append(
            f"Of these rows, {plan.hallucinated:,} are hallucinated, since there are at least "
            f"{HALLUCINATED_PASSES:g} passes without; --hallucinate 0 leaves them out."
        )
    return lines


def reason(choice: Choice) -> str:
    """Return why a network was chosen, and how many passes over the data it makes."""
    needed = choice.network.passes
    if choice.compared == 1:
        why = "the only size measured"
    elif choice.makes_passes:
        why = f"the largest that makes the passes it needs, {needed}"
    else:
        why = f"the smallest, since none makes {needed} passes"
    return f"{why}; about {choice.passes:.3g} passes over {counted(choice.pairs, 'row')}"


# --- lines of YAML ---


def dropout_option(plan: Plan) -> str:
    """Return the dropout of a plan as a line of YAML."""
    pairs = "the data and hallucinated pairs" if plan.hallucinated else "the data"
    why = f"for {plan.choice.passes:.3g} passes over {pairs}; more passes need more"
    return with_comment(f"dropout: [{plan.choice.dropout}]", why)


def training_options(plan: Plan) -> list[str]:
    """Return the type of products, the time, the validations and the device, as lines of YAML."""
    lines = []
    products = plan.choice.network.products
    if products != "float32":
        lines.append(with_comment(f"matmul_dtype: {products}", "faster than float32 here"))
    lines.append(
        with_comment(
            f"max_seconds: {60 * plan.minutes:.10g}",
            f"{plan.minutes:g} minutes, validations included",
        )
    )
    lines += _validation_options(plan)
    if plan.gpu:
        lines.append(with_comment("gpu_ranks: [0]", "the GPU that was measured"))
    return lines


def _validation_options(plan: Plan) -> list[str]:
    """Return when to validate and to save, and on how many pairs, as lines of YAML."""
    validations = plan.validations
    # The last validation is at the end of the time, and is planned half an interval after the one
    # before. With a whole interval, slightly faster updates would add a validation just before it.
    every = max(round(plan.updates / (validations.count - 0.5)), 1)
    interval = f"{validations.count} validations, the last at the end"
    share = f"at most {VALIDATION_SHARE:.0%} of the time"
    return [
        with_comment(f"valid_steps: {every}", f"{interval}; they take {share}"),
        _size_option("valid_decode_size", validations.decode_size),
        _size_option("valid_loss_size", validations.loss_size),
        with_comment(
            f"save_checkpoint_steps: {every}", "after each validation; the best is kept, too"
        ),
    ]


def _size_option(option: str, size: int) -> str:
    """Return the number of validated pairs as a line of YAML; 0 stands for all pairs."""
    return with_comment(f"{option}: {size}", "pairs, a sample" if size else "all pairs")
