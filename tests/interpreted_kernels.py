"""A pytest plugin that halves the time of kernels in Triton's interpreter.

The interpreter replaces the functions of `triton.language` by NumPy's when a kernel starts, and
again whenever the kernel calls another function of Triton. Here that happens once: for
`triton.language` when a kernel starts, and for `triton.language.core`, which sums and maxima use
instead, before the first test.
"""

from typing import Any

import triton.language
from triton.runtime import interpreter


def _call(function: Any, *args: Any, **kwargs: Any) -> Any:
    return function.rewrite()(*args, **kwargs)


interpreter._patch_lang(triton.language.sum.fn)
interpreter.InterpretedFunction.__call__ = _call
