"""The training loop: updates, validation, checkpoints and the end of a run."""

from __future__ import annotations

import gc
import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from onmt_entmax.checkpoint import checkpoint_steps, remember_best
from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.data.stream import Position, TrainingBatches
from onmt_entmax.memory import most_reserved, named_exhaustion
from onmt_entmax.model import SparseNMTModel, device_of
from onmt_entmax.nn.output import OutputLoss
from onmt_entmax.nn.transformer import learned_alphas
from onmt_entmax.processes import Processes
from onmt_entmax.train import graphs
from onmt_entmax.train.config import Outcome, TrainingConfig, value_at
from onmt_entmax.train.graphs import PaddedUpdates, UpdateConfig
from onmt_entmax.train.nonfinite import NonfiniteRule
from onmt_entmax.train.optimiser import (
    AttentionWarmup,
    MovingAverage,
    build_optimizer,
    learning_rate_schedule,
    learning_rates,
    set_learning_rate,
)
from onmt_entmax.train.progress import Standing
from onmt_entmax.train.records import Measurements, Records
from onmt_entmax.train.run_folder import RunFolder
from onmt_entmax.train.signals import collected_signals
from onmt_entmax.train.transfer import PendingValues, Transfer

# Updates that a GPU may be behind this process, a few tens of milliseconds.
_READ_BEHIND = 8

_SHORTER = (
    "leave long lines out with transforms: [filtertoolong], src_seq_length and tgt_seq_length, or "
    "make batch_size smaller"
)

Evaluate = Callable[[SparseNMTModel], dict[str, float]]


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Exclude existing objects from garbage collection; they live as long as the run."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def tf32_products(wanted: bool) -> Iterator[None]:
    """Let matrix products on a GPU round their factors to TF32 inside the block, if `wanted`."""
    if not wanted:
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@dataclass
class RunState:
    """State of a run besides weights and optimiser; saved with a checkpoint."""

    step: int = 0  # updates done
    seconds: float = 0.0
    decay: float = 1.0  # factor on the learning rate by decay_method: plateau
    previous_loss: float | None = None  # of the last validation
    best: float | None = None  # best value of `selection`
    best_step: int = -1
    best_planned: float | None = None  # best value in planned validations, for early stopping
    waited: int = 0  # planned validations since `best_planned`
    validated: int = -1  # step of the last validation
    skipped: int = 0  # updates skipped because they were not finite


class Trainer:
    """One training run.

    Args:
        model: trained in place, on its device.
        batches: the endless stream of training batches.
        config: see `TrainingConfig`.
        evaluate: returns at least `loss` and the selection measure on the development set. It is
            called in evaluation mode without gradients. None: no validation.
        run: the folder for checkpoints.
        records: the log; None in all processes but the first.
        processes: the processes of the run.
    """

    def __init__(
        self,
        model: SparseNMTModel,
        batches: TrainingBatches,
        config: TrainingConfig,
        evaluate: Evaluate | None,
        run: RunFolder,
        records: Records | None,
        processes: Processes,
    ) -> None:
        self.model, self.batches, self.config = model, batches, config
        self.evaluate, self.run, self.records = evaluate, run, records
        self.processes = processes
        self.state = RunState()
        self.optimizer = build_optimizer(model, config.optimizer)
        self.schedule = learning_rate_schedule(config.optimizer, config.train_steps)
        self.average = MovingAverage(model, config.average_decay, config.average_every)
        self.warmup = AttentionWarmup(model, config.attention_warmup_steps)
        self.nonfinite = NonfiniteRule(config.on_nonfinite == "skip", run.path, self._may_write)
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        model.matmul_dtype = torch.bfloat16 if config.matmul_dtype == "bfloat16" else None
        self.no_graphs: str | None = None  # why updates on a GPU are without graphs
        self.padded = self._padded_updates()
        self._transfer = Transfer(device_of(model))
        self._pending = PendingValues(self._delay())
        self._measurements = Measurements()
        self._started = time.monotonic()
        self._received = 0  # the signal that any process has received
        self._saved = -1  # the step that this run saved last

    def train(self) -> Outcome:
        """Train until a limit of the configuration or a signal; save the last state."""
        self.model.train()
        self._started = time.monotonic() - self.state.seconds
        self._name_best()
        if self.state.step == 0:
            self._report_alphas()
        stream = iter(self.batches)
        alone = self.processes.count == 1
        with frozen_heap(), collected_signals(alone) as received, closing(stream):
            outcome = self._finished()
            while outcome is None:
                epochs = self.batches.position.epoch
                with self.warmup.applied(self.state.step):
                    self._update(self._next_batches(stream), received)
                if self._due(epochs):
                    self._validate()
                elif self.state.step % self.config.save_checkpoint_steps == 0:
                    self._save()
                outcome = self._finished()
            # Signals are still collected here, so that the last state is saved.
            if outcome.signal is None and self.state.validated < self.state.step:
                self._validate(planned=False)
            self._save()
        return outcome

    def loss(self, batch: Batch) -> OutputLoss:
        """Return the loss, summed over all targets of a batch on the model's device."""
        return self.loss_of_states(*self.model.hidden_states(batch))

    def loss_of_states(self, hidden: Tensor, target: Tensor) -> OutputLoss:
        """Return the loss of targets ``(N,)`` given states ``(N, hidden)``.

        CUDA graphs record it: on a GPU, no shape in it may depend on a value.
        """
        pad = self.run.vocabularies.target.pad
        return self.model.generator.loss(hidden, target, pad, self.config.label_smoothing)

    def _next_batches(self, stream: Iterator[Batch]) -> list[Batch]:
        """Return the batches of the next update, for all processes together."""
        config, started = self.config, time.monotonic()
        count = value_at(config.accum_count, config.accum_steps, self.state.step)
        batches = list(islice(stream, count))
        self._measurements.waited(time.monotonic() - started)
        return batches

    def _padded_updates(self) -> PaddedUpdates | None:
        """Return updates on padded batches if the model is on a GPU and they cover it."""
        config, device = self.config, device_of(self.model)
        if device.type != "cuda" and not graphs.ON_CPU:
            return None
        if config.cuda_graphs == "off":
            self.no_graphs = "cuda_graphs is off"
        else:
            self.no_graphs = graphs.reason_against(self.model, self.optimizer)
        if self.no_graphs is not None:
            return None
        data, known = self.batches.config, self.run.vocabularies
        self.batches.shapes = Shapes(data.batch_size, data.batch_type)
        update = UpdateConfig(config.optimizer.max_grad_norm, config.cuda_graphs)
        pads, shapes = (known.source.pad, known.target.pad), self.batches.shapes
        return PaddedUpdates(self.model, self.optimizer, update, shapes, pads, self.loss_of_states)

    def _update(self, batches: Sequence[Batch], received: Sequence[int]) -> None:
        """Take one optimiser step on the gradient of all `batches` together."""
        self._set_dropout()
        with (
            named_exhaustion(partial(self.batches.longest_line, batches), _SHORTER),
            tf32_products(self.config.matmul_dtype == "tf32"),
        ):
            if self.padded is None:
                self._plain_update(batches, received)
            else:
                self._padded_update(self.padded, batches, received)
        self.state.step += 1
        self._report()

    def _size(self, batches: Sequence[Batch]) -> int:
        """Return what the loss of an update is divided by."""
        by_tokens = self.config.normalization == "tokens"
        return sum(_target_tokens(batch) if by_tokens else len(batch) for batch in batches)

    def _padded_update(
        self, padded: PaddedUpdates, batches: Sequence[Batch], received: Sequence[int]
    ) -> None:
        state, processes = self.state, self.processes
        size = self._size(batches)
        for batch in batches[processes.rank :: processes.count]:
            padded.accumulate(padded.pad(batch), 1 / size)
        processes.sum(padded.gradient)
        processes.sum(padded.measured)
        facts = padded.measured.new_zeros(2)
        facts[0] = received[0] if received else 0
        facts[1] = time.monotonic() - self._started if processes.writes else 0
        rates = learning_rates(self.config.optimizer, self._decay(state.step + 1))
        report = padded.finish(*rates)
        self.average.update(state.step + 1, padded.finite)
        values = torch.cat([report[:4], processes.sum(facts), report[4:]])
        self._pending.send(values, (state.step + 1, batches))
        self._read_values()

    def _plain_update(self, batches: Sequence[Batch], received: Sequence[int]) -> None:
        state, processes = self.state, self.processes
        set_learning_rate(self.optimizer, self.config.optimizer, self._decay(state.step + 1))
        size = self._size(batches)
        self.optimizer.zero_grad(set_to_none=True)
        measured = torch.zeros(6, device=device_of(self.model))
        for batch in batches[processes.rank :: processes.count]:
            result = self.loss(self._transfer(batch))
            (result.loss / size).backward()
            measured[:4] += torch.stack([value.detach().float() for value in result])
        measured[4] = received[0] if received else 0
        measured[5] = time.monotonic() - self._started if processes.writes else 0
        processes.sum_gradients(self.parameters)
        norm = nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None])
        values = torch.cat([processes.sum(measured), norm.view(1)])
        self._pending.send(values, (state.step + 1, batches))
        if self._pending.delay:
            # The optimiser itself skips a non-finite update; this process learns of it later.
            self.optimizer.found_inf = (~(values[0] + norm).isfinite()).float()  # type: ignore[attr-defined]
            self._step(norm)
            self._read_values()
        elif self._read_values():
            self._step(norm)

    def _step(self, norm: Tensor) -> None:
        """Clip the gradient, whose norm is given, and update the weights."""
        if self.config.optimizer.max_grad_norm > 0:
            nn.utils.clip_grads_with_norm_(
                self.parameters, self.config.optimizer.max_grad_norm, norm
            )
        self.optimizer.step()
        self.average.update(self.state.step + 1)

    def _read_values(self, everything: bool = False) -> bool:
        """Add the values that have arrived from the device; return whether all are finite.

        Only here does this process wait for the device.
        """
        finite = True
        for values, (step, batches) in self._pending.read(everything):
            loss, tokens, correct, support, received, seconds, norm = values
            self.state.seconds = seconds
            if received:  # signal numbers of several processes add up, so the sum names none
                alone = self.processes.count == 1
                self._received = int(received) if alone else signal.SIGTERM
            if self.nonfinite.skips(step, loss, norm, batches):
                self.state.skipped += 1
                finite = False
            else:
                self._measurements.add(loss, tokens, correct, support)
        return finite

    def _delay(self) -> int:
        """Return how many updates the values read may be behind.

        Reading waits for the GPU. It can be late if the optimiser skips an update by itself.
        """
        if device_of(self.model).type != "cuda":
            return 0
        if self.padded is not None:
            return _READ_BEHIND
        fused = all(group.get("fused") for group in self.optimizer.param_groups)
        return 1 if fused and self.config.average_decay == 0 else 0

    def _report(self) -> None:
        if self.records is None:
            return
        at = self._standing()
        self.records.advance(at)
        if self.state.step % self.config.report_every == 0:
            self._report_alphas()
            rate, _ = learning_rates(self.config.optimizer, self._decay(self.state.step))
            epoch = self.batches.position.epoch
            values = self._measurements.take() | {"learning_rate": rate, "epoch": epoch}
            if self.state.skipped:
                values["skipped"] = self.state.skipped
            reserved = most_reserved(device_of(self.model))
            if reserved:
                values["gpu_gb"] = reserved / 1e9
            self.records.training(at, values)

    def _standing(self) -> Standing:
        return Standing(self.state.step, self.batches.epochs, self.state.seconds)

    def _report_alphas(self) -> None:
        alphas = learned_alphas(self.model)
        if alphas and self.records is not None:
            self.records.alphas(self.state.step, alphas)

    def _decay(self, step: int) -> float:
        return self.schedule(step) * self.state.decay

    def _set_dropout(self) -> None:
        config, step = self.config, self.state.step
        if len(config.dropout_steps) > 1:
            self.model.update_dropout(
                value_at(config.dropout, config.dropout_steps, step),
                value_at(config.attention_dropout, config.dropout_steps, step),
            )

    def _due(self, epochs_before: int) -> bool:
        config, epoch = self.config, self.batches.position.epoch
        if config.valid_epochs is not None:
            return epoch // config.valid_epochs > epochs_before // config.valid_epochs
        return config.valid_steps is not None and self.state.step % config.valid_steps == 0

    def _validate(self, planned: bool = True) -> None:
        """Evaluate; lower the learning rate if the loss rose; save the model if it is the best.

        The extra validation at the end (not `planned`) changes neither the learning rate nor early
        stopping, so that a resumed run continues as if it had not stopped.
        """
        self._read_values(everything=True)
        state, config = self.state, self.config
        state.validated = state.step
        if self._saved == state.step:  # that checkpoint lacks this validation
            self._saved = -1
        if self.evaluate is None:
            if config.valid_epochs is not None or state.step % config.save_checkpoint_steps == 0:
                self._save()
            return
        values = self.processes.from_first(self._measure() if self.processes.writes else None)
        if planned:
            rose = state.previous_loss is not None and values["loss"] > state.previous_loss
            if rose and config.optimizer.decay_method == "plateau":
                state.decay *= config.optimizer.learning_rate_decay
            state.previous_loss = values["loss"]
        value = values[config.selection]
        # Of models without one right output, the newest has learned most.
        nothing_right = config.selection != "loss" and value == 0 == state.best
        better = nothing_right or self._better(value, state.best)
        if planned and self._better(value, state.best_planned):
            state.best_planned, state.waited = value, 0
        elif planned:
            state.waited += 1
        if better:
            state.best, state.best_step = value, state.step
        if self.records is not None:
            logged = values | {"seconds": round(state.seconds, 1)}
            self.records.validation(self._standing(), logged, state.best_step)
        if better:
            self._save()  # first, so that best.json never names a missing checkpoint
            self._name_best()
        elif state.step % config.save_checkpoint_steps == 0:
            self._save()

    def _better(self, value: float, best: float | None) -> bool:
        """Whether a value of `selection` is better than the best so far.

        A value that is not finite is better than none, and worse than any other.
        """
        sign = -1 if self.config.selection == "loss" else 1
        if best is None or sign * value > sign * best:
            return True
        return not math.isfinite(best) and math.isfinite(value)

    def _name_best(self) -> None:
        """Write best.json. A resumed run does so too: it may have been killed between saving and
        naming the best checkpoint."""
        state, path = self.state, self.run.path
        if not self.processes.writes or state.best is None:
            return
        if state.best_step in checkpoint_steps(path):
            remember_best(path, state.best_step, self.config.selection, state.best)

    def _measure(self) -> dict[str, float]:
        assert self.evaluate is not None
        self.model.eval()
        with torch.no_grad(), self.average.applied():
            values = self.evaluate(self.model)
        self.model.train()
        return values

    def _finished(self) -> Outcome | None:
        state, epoch = self.state, self.batches.position.epoch
        if self._received:
            return Outcome(state.step, signal.Signals(self._received).name, self._received)
        limit = self.config.reached(state.step, epoch, state.seconds, state.waited)
        return None if limit is None else Outcome(state.step, limit)

    def _save(self) -> None:
        if self._saved == self.state.step:
            return
        self._read_values(everything=True)
        saved = self.state_dict()  # collective: gathers the random states of all processes
        if self.processes.writes:
            with self.average.applied() as raw:
                self.run.save(self.state.step, self.model, saved | {"raw_weights": raw})
        self._saved = self.state.step

    def _may_write(self) -> bool:
        """Whether this process may write to the run folder."""
        return self.processes.writes

    def state_dict(self) -> dict[str, Any]:
        """Return what resuming needs besides the weights: tensors, numbers and dicts."""
        return {
            "run": asdict(self.state),
            "position": asdict(self.batches.position),
            "optimizer": graphs.portable(self.optimizer.state_dict()),
            "random": {
                "cpu": self.processes.gather(torch.random.get_rng_state()),
                "cuda": self.processes.gather(self._cuda_state()),
            },
        }

    def _cuda_state(self) -> Tensor:
        device = device_of(self.model)
        return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.empty(0)

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned: the position in the data and, for the same number
        of processes, the random states."""
        # A later minor version of the format may have more fields, which can be ignored.
        run = {name: value for name, value in saved["run"].items() if name in _names(RunState)}
        if run["waited"] == 0:  # a checkpoint of a version without `best_step`
            run.setdefault("best_step", run["validated"])
        run.setdefault("best_planned", run["best"])
        self.state = RunState(**run)
        if self.state.step in checkpoint_steps(self.run.path):
            self._saved = self.state.step  # this checkpoint itself
        position = saved["position"]
        self.batches.position = Position(**{name: position[name] for name in _names(Position)})
        # Its parameters, such as betas, are the configuration's, which the saved ones equal.
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({**saved["optimizer"], "param_groups": groups})
        self.average.restore(saved.get("raw_weights"))
        states, rank = saved["random"], self.processes.rank
        if len(states["cpu"]) == self.processes.count:
            torch.random.set_rng_state(states["cpu"][rank])
            if len(states["cuda"][rank]) and device_of(self.model).type == "cuda":
                torch.cuda.set_rng_state(states["cuda"][rank], device_of(self.model))


def _names(kind: type) -> list[str]:
    """Names of the fields of a dataclass."""
    return [field.name for field in fields(kind)]


def _target_tokens(batch: Batch) -> int:
    assert batch.target_lengths is not None, "training batches have targets"
    return int(batch.target_lengths.sum()) - len(batch)  # the start symbol is not predicted
