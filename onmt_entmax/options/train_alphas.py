"""The options of `train` that choose softmax or an alpha-entmax, for attention and for outputs.

Each part of a network has two: `generator_function`, for example, names the function of the output
probabilities, and `generator_alpha` is the alpha of the function `entmax`. `train.py` converts the
two into one number, a field of `ModelConfig`.
"""

from collections.abc import Iterable, Mapping

from onmt_entmax.config import ALPHA, LEARNED, SHARED, Equals, Option, topics
from onmt_entmax.config.conditions import Condition
from onmt_entmax.rules import one_of

# The alpha of each function; `entmax` reads its alpha from an option of its own.
ALPHAS: Mapping[str, float | None] = {
    "softmax": 1.0,
    "entmax15": 1.5,
    "sparsemax": 2.0,
    "entmax": None,
}
# The alpha of a Transformer's attention may also be learned.
ATTENTION_ALPHAS: Mapping[str, float | str | None] = {**ALPHAS, LEARNED: LEARNED, SHARED: SHARED}


def _function_and_alpha(
    part: str,
    weights: str,
    *,
    functions: Iterable[str] = ALPHAS,
    topic: str,
    needs: Condition | None,
) -> dict[str, Option]:
    """Return the two options of a part of a network, by name.

    Args:
        part: how the names of both options begin.
        weights: what the help calls the result of the function.
        functions: names of the functions that the part may have.
        topic: heading in the help.
        needs: the condition under which the network has this part; None: it always has.
    """
    function = f"{part}_function"
    return {
        function: Option(
            "softmax", one_of(*functions), help=f"Function of {weights}.", topic=topic, needs=needs
        ),
        f"{part}_alpha": Option(
            1.5,
            ALPHA,
            help=f"Alpha of {weights}, if the function is entmax.",
            topic=topic,
            needs=Equals(function, "entmax"),
        ),
    }


def _of_transformer(part: str, weights: str) -> dict[str, Option]:
    """Return the two options of an attention of a Transformer; see `_function_and_alpha`."""
    is_transformer = Equals("decoder_type", "transformer")
    return _function_and_alpha(
        part,
        weights,
        functions=ATTENTION_ALPHAS,
        topic=topics.TRANSFORMER,
        needs=is_transformer,
    )


OPTIONS = {
    **_function_and_alpha(
        "global_attention",
        "a recurrent decoder's attention weights",
        topic=topics.SPARSE,
        needs=Equals("decoder_type", "rnn"),
    ),
    **_function_and_alpha("generator", "the output probabilities", topic=topics.SPARSE, needs=None),
    **_of_transformer("encoder_attention", "the weights of the encoder's self-attention"),
    **_of_transformer("decoder_attention", "the weights of the decoder's self-attention"),
    **_of_transformer("context_attention", "the weights of the decoder's attention to the source"),
}
