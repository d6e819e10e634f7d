"""Two attention heads for two kinds of source tokens, such as the tags and the lemma of a word.

After Peters and Martins (2019), "IT-IST at the SIGMORPHON 2019 Shared Task: Sparse Two-headed
Models for Inflection", made simple: they encode lemma and tags apart, here one encoder reads both,
and each head attends to its own kind. A sparse gate says how much of each goes into a step.

The last component of each source vector says whether its token is marked, see `marking`.
"""

from __future__ import annotations

import torch
from torch import Tensor, cat, nn, stack, tanh
from torch.nn.functional import pad

from onmt_entmax.mappings import entmax
from onmt_entmax.opennmt import sequence_mask


class TwoHeadedAttention(nn.Module):
    r"""Global attention with one head for marked source tokens and one for the others.

    With query q and source vectors m_j, head h has the weights p_h = entmax(q^T W_h m_j) over its
    own positions, the context c_h = sum_j p_hj m_j and the attentional vector
    o_h = tanh(V_h [c_h; q]), as in Luong et al. (2015). The gate g = sparsemax(U [o_1; o_2; q])
    mixes them: o = g_1 o_1 + g_2 o_2. The weights that are reported are g_1 p_1 + g_2 p_2. A head
    that has no position in a sentence attends to all of it.

    Args:
        dim: size of queries and source vectors.
        alpha: of the heads' weights; 1 is softmax, 2 is sparsemax.
    """

    def __init__(self, dim: int, alpha: float = 1.5) -> None:
        super().__init__()
        self.alpha = alpha
        self.linear_in = nn.Linear(dim, 2 * dim, bias=False)
        self.linear_out = nn.ModuleList(nn.Linear(2 * dim, dim, bias=False) for _ in range(2))
        self.gate = nn.Linear(3 * dim, 2)

    def forward(
        self,
        source: Tensor,
        memory_bank: Tensor,
        memory_lengths: Tensor | None = None,
        coverage: None = None,
    ) -> tuple[Tensor, Tensor]:
        """Attend to the source; names and layouts are those of `EntmaxGlobalAttention`.

        Args:
            source: queries, ``(batch, dim)`` for one step or ``(batch, tgt_len, dim)``.
            memory_bank: source vectors and marks, ``(batch, src_len, dim + 1)``.
            memory_lengths: ``(batch,)``; positions beyond get weight zero.
            coverage: must be None.
        """
        assert coverage is None, "coverage is refused in the configuration"
        queries = source.unsqueeze(1) if source.dim() == 2 else source
        batch, steps, dim = queries.shape
        regions = self.regions(memory_bank, memory_lengths)
        # Queries are padded with a zero for the mark, which is faster than copying the memory bank
        # without its last component in every step.
        asked = pad(self.linear_in(queries).view(batch, 2 * steps, dim), (0, 1))
        scores = (asked @ memory_bank.transpose(1, 2)).view(batch, steps, 2, -1)
        scores = scores.masked_fill(~regions.unsqueeze(1), -torch.inf)
        weights = entmax(scores, self.alpha)
        mixed = weights.view(batch, 2 * steps, -1) @ memory_bank
        contexts = mixed[:, :, :-1].reshape(batch, steps, 2, dim)
        outputs = [
            tanh(linear(cat([contexts[:, :, head], queries], dim=2)))
            for head, linear in enumerate(self.linear_out)
        ]
        gate = entmax(self.gate(cat([*outputs, queries], dim=2)), 2.0).unsqueeze(3)
        output = (gate * stack(outputs, dim=2)).sum(2)
        attended = (gate * weights).sum(2)
        if source.dim() == 2:
            return output.squeeze(1), attended.squeeze(1)
        return output.transpose(0, 1).contiguous(), attended.transpose(0, 1).contiguous()

    @staticmethod
    def regions(memory_bank: Tensor, lengths: Tensor | None) -> Tensor:
        """Which positions each head sees, ``(batch, 2, src_len)`` bool; see `forward`."""
        marked = memory_bank[:, :, -1] > 0.5
        real = torch.ones_like(marked)
        if lengths is not None:
            real = sequence_mask(lengths, max_len=marked.size(1)).to(marked.device)
        regions = stack([real & marked, real & ~marked], dim=1)
        return regions | (~regions.any(2, keepdim=True) & real.unsqueeze(1))

    def extra_repr(self) -> str:
        """What matters, for printing."""
        return f"alpha={self.alpha:g}"
