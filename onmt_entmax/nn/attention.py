"""Global attention with alpha-entmax: the layer that builds a model and defines its weights.

Training and search run it step by step in `onmt_entmax.nn.lstm`.
"""

from __future__ import annotations

from torch import Tensor, cat, tanh

from onmt_entmax.opennmt import GlobalAttention, sequence_mask
from onmt_entmax.sparse.arguments import alpha_text
from onmt_entmax.sparse.functional import entmax


class EntmaxGlobalAttention(GlobalAttention):
    """OpenNMT-py's `GlobalAttention` with alpha-entmax instead of softmax.

    Scores and projections are inherited (Luong et al. 2015: `dot`, `general`; Bahdanau et al. 2015:
    `mlp`). The weights are alpha-entmax of the scores (Peters et al. 2019, Eq. 10): exactly zero at
    irrelevant source positions, and at padding.

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
        return f"{self.attn_type}, alpha={alpha_text(self.alpha)}"
