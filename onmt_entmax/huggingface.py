"""Entmax attention for models of Hugging Face `transformers`: `attn_implementation="entmax"`.

    from onmt_entmax import huggingface

    huggingface.register(alpha=1.5)
    model = AutoModel.from_config(config, attn_implementation="entmax")

While a model trains, attention returns no weights and is fused; in evaluation mode it returns them,
for `output_attentions=True` and the tools that read it.

Neither entmax nor its alpha is saved with a model that has not run. To load one, register the same
alpha and name the attention again:

    model = AutoModel.from_pretrained(folder, attn_implementation="entmax")

A model that has run writes the name, but not alpha, to its `config.json`: it is then loaded with
entmax, or refused if the name is not registered.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from onmt_entmax.sparse.arguments import check_alpha_number
from onmt_entmax.sparse.attention import entmax_attention, entmax_attention_weights

Alpha = float | Callable[[nn.Module], float | Tensor]
# Arguments with which some models change the scores, and which entmax attention does not support.
_UNSUPPORTED = ("softcap", "position_bias", "s_aux", "cache")


def register(name: str = "entmax", alpha: Alpha = 1.5) -> None:
    """Register entmax attention under a name; see the module's docstring for how to load models.

    Args:
        name: value of `attn_implementation` that selects this attention.
        alpha: a number >= 1; or a function that returns it for an attention module, as a number or
            a tensor ``(heads,)``, for example ``lambda module: 1 + module.alpha_logits.sigmoid()``
            with a parameter that you have added to each of these modules.

    Raises:
        ValueError: if a number is below 1.
    """
    if not callable(alpha):
        check_alpha_number(alpha)

    def attend(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        scaling: float | None = None,
        dropout: float = 0.0,
        is_causal: bool | None = None,
        **others: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Return attention ``(batch, queries, heads, size)``, and the weights in evaluation.

        The arguments are those with which transformers calls an attention: `query`, `key` and
        `value` are ``(batch, heads, positions, size)``; there may be fewer heads of keys.
        """
        _refuse_unsupported(others)
        _record_implementation(module, name)
        options: dict[str, Any] = {
            "alpha": alpha(module) if callable(alpha) else alpha,
            "attn_mask": attention_mask,
            "is_causal": _needs_causal_mask(module, query, attention_mask, is_causal),
            "scale": scaling,
            "enable_gqa": True,
        }
        if module.training:
            output = entmax_attention(query, key, value, dropout_p=dropout, **options)
            return output.transpose(1, 2).contiguous(), None
        weights = entmax_attention_weights(query, key, **options).to(value.dtype)
        output = _weighted_values(weights, value)
        return output.transpose(1, 2).contiguous(), weights

    AttentionInterface.register(name, attend)
    # Masks of booleans, as for PyTorch's attention.
    AttentionMaskInterface.register(name, sdpa_mask)


def _refuse_unsupported(others: Mapping[str, Any]) -> None:
    """Refuse arguments with which a model changes the scores.

    Raises:
        ValueError: names the first such argument.
    """
    for argument in _UNSUPPORTED:
        if others.get(argument) is not None:
            raise ValueError(f"entmax attention does not support {argument} of this model")


def _needs_causal_mask(
    module: nn.Module, query: Tensor, attention_mask: Tensor | None, is_causal: bool | None
) -> bool:
    """Return whether a causal mask must be added, since no mask hides later keys from queries.

    A single query, as in generation, sees all keys.

    Args:
        module: the attention, whose attribute `is_causal` counts if the argument is None.
        query: ``(batch, heads, queries, size)``.
        attention_mask: the mask of the model, which would already be causal; None: there is none.
        is_causal: whether the model asks for causal attention; None: it does not say.
    """
    causal = getattr(module, "is_causal", False) if is_causal is None else is_causal
    return bool(causal) and attention_mask is None and query.shape[2] > 1


def _weighted_values(weights: Tensor, value: Tensor) -> Tensor:
    """Return the sums of values, whose heads several heads of weights may share.

    Args:
        weights: ``(batch, heads, queries, keys)``.
        value: ``(batch, heads of keys, keys, size)``.
    """
    sharing = weights.shape[1] // value.shape[1]
    if sharing > 1:
        value = value.repeat_interleave(sharing, dim=1)
    return weights @ value


def _record_implementation(module: nn.Module, name: str) -> None:
    """Write the name of the attention to the model's configuration, which is saved with it."""
    config = getattr(module, "config", None)
    if config is None or torch.compiler.is_compiling():
        return
    if getattr(config, "attn_implementation", None) != name:
        config.attn_implementation = name
