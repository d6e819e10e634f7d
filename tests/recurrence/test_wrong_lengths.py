"""Lengths of sources and targets that an encoder or decoder refuses."""

import pytest
import torch
from torch import nn

from tests.recurrence.networks import (
    HIDDEN,
    SENTENCES,
    SOURCE_LENGTHS,
    TARGET_LENGTHS,
    Network,
    batch,
    fast_model,
)


@pytest.fixture
def decoder() -> nn.Module:
    """The decoder after the sources of the batch."""
    (encoder, decoder), (source, _) = fast_model(Network()), batch()
    states, bank, _ = encoder(source, SOURCE_LENGTHS)
    decoder.init_state(source, bank, states)
    return decoder


def test_sources_that_are_not_longest_first_are_refused() -> None:
    encoder, _ = fast_model(Network())
    source, _ = batch()
    with pytest.raises(ValueError, match="longest first"):
        encoder(source, SOURCE_LENGTHS.flip(0))


def test_a_target_length_beyond_the_steps_is_refused(decoder: nn.Module) -> None:
    _, target = batch()
    unread_bank = torch.zeros(1)  # lengths are checked first
    with pytest.raises(ValueError, match="a target length is 6"):
        decoder.teacher_forced(target, TARGET_LENGTHS + 1, unread_bank, SOURCE_LENGTHS)


def test_a_source_length_beyond_the_memory_bank_is_refused(decoder: nn.Module) -> None:
    _, target = batch()
    bank = torch.zeros(int(SOURCE_LENGTHS.max()), SENTENCES, HIDDEN).double()
    with pytest.raises(ValueError, match="from 1 to that of the memory bank"):
        decoder.teacher_forced(target, TARGET_LENGTHS, bank, SOURCE_LENGTHS + 1)
