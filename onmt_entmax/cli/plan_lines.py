"""A plan of `prepare --minutes` as lines: what was chosen and why, and the options of `train`."""

from collections.abc import Sequence
from dataclasses import dataclass

from onmt_entmax.cli.plans import (
    HALLUCINATED_PASSES,
    PLANNED_SHARE,
    VALIDATION_SHARE,
    Choice,
    Validations,
)
from onmt_entmax.cli.yaml_lines import explained


@dataclass(frozen=True)
class Plan:
    """What to train in a given time.

    Attributes:
        minutes: the time.
        choice: of a network.
        validations: how often to validate.
        gpu: whether a GPU was measured.
        measured: what was measured, for people.
        hallucinated: pairs to train on besides those of the user.
    """

    minutes: float
    choice: Choice
    validations: Validations
    gpu: bool
    measured: Sequence[str]
    hallucinated: int = 0

    @property
    def updates(self) -> int:
        """Updates that fit into the time at the measured speed, at least 1."""
        seconds = 60 * self.minutes * (1 - PLANNED_SHARE)
        return max(round(seconds * self.choice.speed / self.choice.network.batch), 1)

    @property
    def dropout_line(self) -> str:
        """The dropout, as a line of YAML."""
        pairs = "the data and hallucinated pairs" if self.hallucinated else "the data"
        why = f"for {self.choice.passes:.3g} passes over {pairs}; more passes need more"
        return explained(f"dropout: [{self.choice.dropout}]", why)

    @property
    def lines(self) -> list[str]:
        """What was measured and chosen."""
        device = "GPU" if self.gpu else "CPU"
        minutes = "1 minute" if self.minutes == 1 else f"{self.minutes:g} minutes"
        return [
            f"Planned for {minutes} of this machine's {device}, where it trained",
            *(f"  {line}" for line in self.measured),
            f"Chosen: {self.choice.network}: {self.choice.reason}.",
            *self._said_of_pairs,
        ]

    @property
    def _said_of_pairs(self) -> list[str]:
        """A line on hallucinated pairs, if there are some."""
        if not self.hallucinated:
            return []
        return [
            f"Of these rows, {self.hallucinated:,} are hallucinated, since there are at least "
            f"{HALLUCINATED_PASSES:g} passes without; --hallucinate 0 leaves them out."
        ]

    @property
    def settings(self) -> list[str]:
        """The options of time and validation, as lines of YAML."""
        validations = self.validations
        # The last one is at the end, and should not follow another one at once.
        every = max(round(self.updates / (validations.count - 0.5)), 1)
        times = f"{validations.count} times with the end"
        lines = [
            explained(f"max_seconds: {60 * self.minutes:.10g}", f"{self.minutes:g} minutes in all"),
            explained(
                f"valid_steps: {every}", f"{times}, in at most {VALIDATION_SHARE:.0%} of the time"
            ),
            _size_line("valid_decode_size", validations.decode_size),
            _size_line("valid_loss_size", validations.loss_size),
            explained(f"save_checkpoint_steps: {every}", "so often, and the best"),
        ]
        products = self.choice.network.products
        if products != "float32":
            lines.insert(0, explained(f"matmul_dtype: {products}", "faster than float32 here"))
        if self.gpu:
            lines.append(explained("gpu_ranks: [0]", "the GPU that was measured"))
        return lines


def _size_line(option: str, size: int) -> str:
    """Return the number of pairs of a validation as a line of YAML."""
    return explained(f"{option}: {size}", "a sample" if size else "all")
