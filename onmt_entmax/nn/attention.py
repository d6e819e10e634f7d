"""The layer of global attention with alpha-entmax; `recurrence/` runs it over an LSTM's steps."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, cat, tanh

from onmt_entmax.nn.products import linear
from onmt_entmax.opennmt import GlobalAttention, sequence_mask
from onmt_entmax.sparse import entmax


class EntmaxGlobalAttention(GlobalAttention):
    """OpenNMT-py's `GlobalAttention` with alpha-entmax instead of softmax.

    Scores and projections are inherited (Luong et al. 2015: `dot`, `general`; Bahdanau et al. 2015:
    `mlp`). The weights are alpha-entmax of the scores (Peters et al. 2019, Eq. 10): exactly zero at
    irrelevant source positions, and at padding. A subclass may have its own ``score``.

    Args:
        dim: size of queries and source vectors.
        attn_type: "dot", "general" or "mlp".
        alpha: 1 is softmax, 2 is sparsemax.
    """

    def __init__(self, dim: int, attn_type: str = "general", alpha: float = 1.5) -> None:
        super().__init__(dim, attn_type=attn_type)
        self.alpha = alpha

    def forward(
        self,
        source: Tensor,
        memory_bank: Tensor,
        memory_lengths: Tensor | None = None,
        coverage: None = None,
    ) -> tuple[Tensor, Tensor]:
        """Attend to the source; argument names and shapes are OpenNMT-py's.

        Args:
            source: queries, ``(batch, dim)`` for one step or ``(batch, tgt_len, dim)``.
            memory_bank: source vectors, ``(batch, src_len, dim)``.
            memory_lengths: ``(batch,)``; positions beyond get weight zero. None: all are real.
            coverage: must be None.

        Returns:
            Attentional vectors and weights: ``(batch, dim)`` and ``(batch, src_len)`` for one
            step, else ``(tgt_len, batch, dim)`` and ``(tgt_len, batch, src_len)``.
        """
        assert coverage is None, "coverage is refused in the configuration"
        queries = source.unsqueeze(1) if source.dim() == 2 else source
        scores = self.score(queries, memory_bank)
        if memory_lengths is not None:
            mask = sequence_mask(memory_lengths, max_len=scores.size(-1)).unsqueeze(1)
            scores = scores.masked_fill(~mask, -float("inf"))
        weights = entmax(scores, self.alpha, dim=-1)
        context = weights @ memory_bank
        output = self.linear_out(cat([context, queries], dim=2))
        if self.attn_type != "mlp":
            output = tanh(output)
        if source.dim() == 2:
            return output.squeeze(1), weights.squeeze(1)
        return output.transpose(0, 1).contiguous(), weights.transpose(0, 1).contiguous()

    def extra_repr(self) -> str:
        """Return type and alpha, for printing."""
        return f"{self.attn_type}, alpha={self.alpha:g}"

    @property
    def can_project(self) -> bool:
        """Whether :meth:`project` has the same scores: those of OpenNMT-py's `dot` and `general`.

        Every other type, and every subclass with its own scores or output, runs as the module does.
        """
        return (
            self.attn_type in ("dot", "general")
            and _runs(self.score, GlobalAttention.score)
            and _runs(self.forward, EntmaxGlobalAttention.forward)
        )

    def project(
        self, bank: Tensor, dtype: torch.dtype | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return keys, values and the queries' weight of `dot` or `general` attention.

        For a context vector ``c = sum_j p_j m_j``, a query q and the attentional vector
        ``tanh(W_c c + W_q q)`` (Luong et al. 2015, Eq. 5), ``W_c c = sum_j p_j (W_c m_j)``: a step
        needs no product with W_c if the values are ``W_c m_j``. Likewise, the scores of `general`
        are ``m_j . W_a q = (W_a^T m_j) . q``.

        Args:
            bank: source vectors ``(batch, src_len, dim)``, contiguous.
            dtype: of the factors of products, see `product`.

        Returns:
            Keys and values like the bank, and W_q ``(dim, dim)``.

        Raises:
            ValueError: if the scores are not products of keys and queries, see `can_project`.
        """
        if not self.can_project:
            raise ValueError(f"scores of {type(self).__name__} ({self.attn_type}) are no products")
        context, query = self.linear_out.weight.split(self.dim, dim=1)
        flat, keys = bank.flatten(0, 1), bank
        if self.attn_type == "general":
            keys = linear(flat, self.linear_in.weight.t(), None, dtype).view_as(bank)
        return keys, linear(flat, context, None, dtype).view_as(bank), query


def _runs(method: Callable[..., Any], function: Callable[..., Any]) -> bool:
    """Return whether a bound method runs a class's function, replaced in no subclass or object."""
    return getattr(method, "__func__", None) is function


ATTENTIONS: dict[str, type[EntmaxGlobalAttention]] = {
    "dot": EntmaxGlobalAttention,
    "general": EntmaxGlobalAttention,
    "mlp": EntmaxGlobalAttention,
}
"""Class of each `global_attention`, called with size, type and alpha.

One class has OpenNMT-py's three types; a type that OpenNMT-py does not know needs one of its own.
"""
